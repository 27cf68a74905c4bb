//! The time limit of a graceful cancel.

use std::sync::Arc;
use std::time::Duration;

use super::Meta;
use super::raw::TaskRef;
use crate::scheduler::Shared;

/// Aborts `task` when `grace` is over, unless it ends before. Without a runtime to keep the time: at once.
///
/// A task keeps the time. It holds a reference to the one that is to end; a callback of that one ends it. So neither
/// keeps the other beyond its end.
pub(crate) fn abort_after(runtime: Option<&Arc<Shared>>, task: TaskRef, grace: Duration) {
    let Some(shared) = runtime else {
        task.abort();
        return;
    };
    let target = task.clone();
    let meta = Meta {
        name: Some(Arc::from("rt: grace of a cancel")),
        ..Meta::here()
    };
    let timer = shared.spawn(
        async move {
            crate::time::sleep(grace).await;
            target.abort();
        },
        meta,
    );
    task.on_done(Box::new(move |_| timer.abort()));
}
