//! `rt`: a multi-threaded async runtime.

pub mod task;
