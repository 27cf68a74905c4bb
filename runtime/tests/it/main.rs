//! Behaviour of the runtime, seen from outside.

mod basic;
mod examples;
mod hyper;
mod limit;
mod macros;
mod support;
