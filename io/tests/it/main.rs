//! Behaviour of `rt-io` as its users see it.

mod copy;
mod driver;
mod duplex;
mod exec;
mod readiness;
mod support;
mod tcp;
