//! Procedural macros of the `rt` runtime.
