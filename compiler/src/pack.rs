//! Drafts and code objects become a bundle.
