//! Behaviour of the runtime, seen from outside.

mod basic;
mod coop;
mod examples;
mod hyper;
mod join_set;
mod limit;
mod local;
mod macros;
mod support;
mod task_local;
