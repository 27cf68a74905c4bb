//! Each primitive against a simple model of what it should do: random steps on one thread, from a seed that is printed
//! when something differs. What threads do to each other is for `loom-tests`.
#![cfg(not(rt_loom))]

mod broadcast;
mod given_up;
mod mpsc;
mod notify;
mod permits;
mod queue;
mod support;
