//! What does a task group cost over bare tasks?
//!
//! # What would mislead
//! Both sides are ours and measured in one process, one after the other. 1,000 children are spawned and then awaited, so the
//! figure is that of a burst; the bare side keeps its handles in a vector, as one has to without a group.

use std::convert::Infallible;

use rt::task::TaskGroup;

use super::{Micro, cpu_on_worker};
use crate::goal::Goal;
use crate::peer::{PeerId, Rt};
use crate::report::Metric;

/// The rows of this file.
pub const ROWS: &[Micro] = &[Micro {
    name: "group against bare spawn",
    metrics: &[
        Metric {
            name: "child",
            unit: "ns",
            goals: &[],
        },
        Metric {
            name: "ratio",
            unit: "",
            goals: &[Goal::AtMost(1.3)],
        },
    ],
    quick: 200_000,
    full: 2_000_000,
    quick_rounds: 5,
    each_workers: true,
    peers: &[PeerId::Rt],
    sample: |_, workers, n| {
        let group = cpu_on_worker::<Rt, _>(workers, n, groups);
        let bare = cpu_on_worker::<Rt, _>(workers, n, bare);
        vec![group, group / bare]
    },
}];

const CHILDREN: u64 = 1000;

async fn groups(operations: u64) {
    for _ in 0..operations.div_ceil(CHILDREN) {
        let done = TaskGroup::<Infallible>::scope(async |group| {
            for _ in 0..CHILDREN {
                drop(group.spawn(async {}));
            }
        })
        .await;
        assert!(done.is_ok());
    }
}

async fn bare(operations: u64) {
    for _ in 0..operations.div_ceil(CHILDREN) {
        let children: Vec<_> = (0..CHILDREN).map(|_| rt::spawn(async {})).collect();
        for child in children {
            assert!(child.await.is_ok());
        }
    }
}
