//! `rt`: a multi-threaded async runtime.
