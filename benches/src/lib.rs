//! Comparisons of `rt` with its peers.
