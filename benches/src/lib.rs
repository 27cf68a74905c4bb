//! Comparisons of `rt` with its peers: tokio, smol, and event loops written by hand.
//!
//! ```text
//! cargo bench -p rt-benches -- --quick             the whole table within two minutes
//! cargo bench -p rt-benches -- echo --workers 1    only rows whose name contains `echo`, one worker
//! cargo bench -p rt-benches -- --csv table.csv     every sample of every cell as CSV as well
//! cargo run --profile bench -p rt-benches --bin instructions -- --peer tokio
//! cargo run --profile bench -p rt-benches --bin instructions -- --gate
//! ```
//!
//! # How a cell is measured
//! Every sample is a child process that starts one peer, warms it up, runs the row's workload and answers with
//! numbers ([`child`]). The workload is one generic function for all peers ([`peer`]). Samples of the peers
//! alternate (A B C A B C ...), so that a machine that slows down slows all of them, and the table shows the median of
//! each and the ratio of the medians. Single figures are of this machine and this minute; ratios travel better.
//!
//! # Where things are
//! [`rows`]: one file a group of rows; its head says which question it answers and what would mislead. [`goal`]:
//! what a row is meant to reach. [`report`]: medians, the table, the CSV. [`serve`] and [`load`]: both ends of the
//! echo and HTTP rows; [`server`]: how a row holds a server. [`roles`]: what a child does. [`callgrind`]:
//! instruction counts, which are stable enough to gate on where times are not.
//!
//! # Which profile
//! The bench profile: `lto = "fat"` and one codegen unit, as a user who cares for speed compiles. All peers need about a
//! sixth fewer instructions with it than in the plain release profile, so compare figures of one profile only.
//!
//! Channels between tasks are `futures-channel`'s for all peers, so that a row compares schedulers and not channels.

pub mod busy;
pub mod callgrind;
pub mod child;
pub mod goal;
pub mod load;
pub mod options;
pub mod peer;
pub mod report;
pub mod roles;
pub mod rows;
pub mod serve;
pub mod server;
pub mod stalls;
pub mod usage;
