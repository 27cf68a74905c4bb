//! Behaviour of the runtime, seen from outside.

mod basic;
mod blocking;
mod coop;
mod examples;
mod hyper;
mod join_set;
mod join_set_runtime;
mod limit;
mod local;
mod local_runtime;
mod macros;
mod support;
mod task_local;
mod time;
mod timeouts;
