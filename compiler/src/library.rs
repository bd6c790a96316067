//! Putting a bundle into a prebuilt shared library.
