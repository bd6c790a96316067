//! TOML to a spanned syntax tree.
