//! `cubinder.toml`: which manifests, which targets, which options.
