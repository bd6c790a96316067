//! The translation unit of one launch of one variant.
