//! Loom models of every protocol between threads of `rt`, one file per structure in `tests/`.

pub mod count_drop;
#[cfg(rt_loom)]
pub mod model;
pub mod scheduler;
#[cfg(not(rt_loom))]
pub mod stress;
