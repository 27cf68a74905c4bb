//! Behaviour of `rt-io` as its users see it.

mod copy;
mod duplex;
mod support;
