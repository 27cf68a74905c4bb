//! The runtime: how it is built, held, entered and ended.
//!
//! `#[rt::main]` makes one and runs `main` on it. [`Builder`] makes one by hand, [`Runtime`] owns it, and [`Handle`]s
//! reach it from anywhere.

mod builder;
pub(crate) mod config;
pub(crate) mod entry;
mod handle;
pub(crate) mod metrics;
pub(crate) mod panics;
#[expect(
    clippy::module_inception,
    reason = "the type Runtime has a file of its own"
)]
mod runtime;
mod workers;

pub use self::builder::Builder;
pub use self::entry::{
    block_in_place, bridge, spawn, spawn_blocking, spawn_compute, spawn_pinned, spawn_result,
    try_bridge,
};
pub use self::handle::{BlockOnError, EnterGuard, Handle, RuntimeFlavor, TryCurrentError};
pub use self::metrics::{Histogram, PoolMetrics, RuntimeMetrics, TimeShares, WorkerMetrics};
pub use self::panics::UnhandledPanic;
pub use self::runtime::Runtime;
/// Feature `metrics`: a runtime's counters for Prometheus.
#[cfg(feature = "metrics")]
pub mod prometheus {
    pub use super::metrics::prometheus::Collector;
}

pub use crate::debug::{Report, ReportKind, ReportedTask};
