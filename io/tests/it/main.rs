//! Behaviour of `rt-io` as its users see it.

mod async_fd;
mod copy;
mod driver;
mod duplex;
mod exec;
mod pipe;
mod readiness;
mod support;
mod tcp;
mod udp;
mod unix;
