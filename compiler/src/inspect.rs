//! What a library, a bundle, a cubin or an engine contains.
