//! Looking inside: metrics and dumps, seen from outside.

mod dump;
mod metrics;
mod pains;
mod support;
