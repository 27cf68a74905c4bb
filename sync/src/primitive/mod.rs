//! The one switch between the types of `std` and those of loom.
//!
//! Modelled code (everything with a model in `loom-tests/`) imports atomics, cells, locks, `Arc` and threads from
//! here and only from here. Under `--cfg rt_loom` they are loom's, which explores every interleaving that the memory
//! model allows; otherwise they are those of `std`, and the wrappers below compile to nothing.
//!
//! loom treats a `SeqCst` access as acquire-release. A store that must be seen before a later load (Dekker's pattern)
//! therefore needs an explicit [`fence`](atomic::fence)`(SeqCst)` on both sides; that is right on real machines too.

#[cfg(rt_loom)]
mod loom;
#[cfg(not(rt_loom))]
mod short;
#[cfg(not(rt_loom))]
mod std;

#[cfg(rt_loom)]
pub use self::loom::*;
#[cfg(not(rt_loom))]
pub use self::std::*;
