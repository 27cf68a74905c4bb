//! Behaviour of the runtime, seen from outside.

mod bad_luck;
mod bad_luck_places;
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
mod pains_closures;
mod pains_costs;
mod pains_ends;
mod pains_sockets;
mod pains_stalls;
mod pains_support;
mod pains_timers;
mod support;
mod task_local;
mod time;
mod timeouts;
mod urgent;
