//! Content-addressed cache of code objects.
