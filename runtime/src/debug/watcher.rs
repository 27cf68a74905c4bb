//! The watcher: a thread of the full debug mode, which looks around and reports. It does nothing else: what the runtime
//! does, it does without it.
//!
//! The monitor looks at the polls; where there is none the watcher does: on the current-thread flavour, and after
//! [`Builder::monitor(false)`](crate::runtime::Builder::monitor).

use std::sync::{Arc, Condvar, Mutex, Once, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::{deadlock, grants, polls, stuck_pool};
use crate::scheduler::Shared;
use crate::unpoisoned::lock;

/// Between two looks, if nothing asks for more: what is looked for lasts a second or for ever.
const TICK: Duration = Duration::from_millis(100);

/// The watcher's bed: outlives the runtime, so that the watcher need not keep it alive.
#[derive(Default)]
pub(super) struct Bed(Arc<(Mutex<bool>, Condvar)>);

impl Bed {
    pub(super) fn close(&self) {
        let (closed, condvar) = &*self.0;
        *lock(closed) = true;
        condvar.notify_all();
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.close();
    }
}

pub(super) fn start(shared: &Arc<Shared>) {
    static WARM: Once = Once::new();
    // So that the first report comes while its poll still blocks.
    WARM.call_once(|| {
        let reader = thread::Builder::new().name("rt-reporter".to_owned());
        let _ = reader.spawn(rt_io::stack::warm_up);
    });
    let (weak, bed) = (Arc::downgrade(shared), Arc::clone(&shared.debug.watcher.0));
    let tick = if looks_at_polls(shared) {
        shared.debug.look_each().min(TICK)
    } else {
        TICK
    };
    let builder = thread::Builder::new().name(shared.config.thread_name("watcher"));
    rt_sync::grants::watch();
    // Without it there are fewer reports.
    let _ = builder.spawn(move || watch(&weak, &bed.0, &bed.1, tick));
}

fn looks_at_polls(shared: &Shared) -> bool {
    shared.is_current_thread() || !shared.config.monitor
}

fn watch(shared: &Weak<Shared>, closed: &Mutex<bool>, condvar: &Condvar, tick: Duration) {
    let mut last = Instant::now();
    let mut deadlock = deadlock::Look::default();
    let mut stuck_pool = stuck_pool::Look::default();
    loop {
        let guard = lock(closed);
        let (guard, _) = condvar
            .wait_timeout_while(guard, tick, |closed| !*closed)
            .unwrap_or_else(PoisonError::into_inner);
        if *guard {
            return;
        }
        drop(guard);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let now = Instant::now();
        if looks_at_polls(&shared) {
            for seat in shared.seats.snapshot().iter() {
                polls::look(&shared, seat, now);
            }
        }
        if now.duration_since(last) >= TICK {
            last = now;
            deadlock.look(&shared, now);
            stuck_pool.look(&shared, now);
            grants::look(&shared);
            shared.debug.sink.tell_omitted(Some(now));
        }
    }
}
