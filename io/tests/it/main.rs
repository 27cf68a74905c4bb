//! Behaviour of `rt-io` as its users see it.

mod async_fd;
mod cancellation;
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
mod compat;
mod coop;
mod copy;
mod driver;
mod duplex;
mod exec;
mod ext;
mod false_readiness;
mod pipe;
mod readiness;
mod recv_buf;
mod stdio;
mod support;
mod tcp;
mod udp;
mod unix;
