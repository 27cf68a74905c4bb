//! Behaviour of the runtime, seen from outside.

mod basic;
mod support;
