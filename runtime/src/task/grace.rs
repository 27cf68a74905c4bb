//! The time limit of a graceful cancel.

use std::sync::Arc;
use std::time::Duration;

use super::Meta;
use super::raw::TaskRef;
use crate::scheduler::Shared;

/// Aborts `task` when `grace` is over, unless it ends before. Without a runtime to keep the time: at once.
///
/// A task keeps the time. It holds a reference to the one that is to end; a callback of that one ends it. So neither
/// keeps the other beyond its end. Of many calls, those that would be over later than one before them start nothing.
pub(crate) fn abort_after(runtime: Option<&Arc<Shared>>, task: TaskRef, grace: Duration) {
    let Some(shared) = runtime else {
        task.abort();
        return;
    };
    if !task.header().cold.get_or_init().starts_grace(grace) {
        return;
    }
    let target = Counting(task.clone());
    let meta = Meta {
        name: Some(Arc::from("rt: grace of a cancel")),
        ..Meta::here()
    };
    let timer = shared.spawn(
        async move {
            crate::time::sleep(grace).await;
            target.0.abort();
        },
        meta,
    );
    task.on_done(Box::new(move |_| timer.abort()));
}

/// In the task that keeps the time. If that goes early, with its runtime, another call starts another.
struct Counting(TaskRef);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.header().cold.get_or_init().end_grace();
    }
}
