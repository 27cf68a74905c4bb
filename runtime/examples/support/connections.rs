//! Counts open connections, tells all of them when it is time to end, and waits until they are gone.

use std::collections::HashMap;
use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// All connections of a server.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// Set once, under the lock of `state`; read without it on every poll of a connection.
    closing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    next_id: u64,
    /// Who wants to know about `closing`.
    connections: HashMap<u64, Waker>,
    /// Who waits for `open` to be 0.
    drain: Option<Waker>,
}

impl Connections {
    /// Counts one more, until the returned value is dropped.
    pub(crate) fn open(self: &Arc<Self>) -> Connection {
        let mut state = self.lock();
        state.open += 1;
        state.next_id += 1;
        Connection {
            id: state.next_id,
            waker: None,
            all: Arc::clone(self),
        }
    }

    /// Tells all connections, those of the future too, that they should end.
    pub(crate) fn close(&self) {
        let wakers = {
            let mut state = self.lock();
            self.closing.store(true, Ordering::Relaxed);
            mem::take(&mut state.connections)
        };
        // Not under the lock: a waker may run code that takes it.
        for waker in wakers.into_values() {
            waker.wake();
        }
    }

    /// Waits until no connection is open.
    pub(crate) async fn all_gone(&self) {
        poll_fn(|cx| {
            let waker = cx.waker().clone();
            let mut state = self.lock();
            if state.open == 0 {
                return Poll::Ready(());
            }
            let old = state.drain.replace(waker);
            drop(state);
            drop(old);
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics under this lock.
        self.state.lock().unwrap()
    }
}

/// One open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    /// The waker that `Connections` holds for this connection, so that a poll by the same task costs no lock.
    waker: Option<Waker>,
    all: Arc<Connections>,
}

impl Connection {
    /// Ready once the connection should end.
    pub(crate) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Relaxed: the flag guards no data, and `close` wakes whoever registered before the flag was set.
        if self.all.closing.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        if self
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            return Poll::Pending;
        }
        let (kept, ours) = (cx.waker().clone(), cx.waker().clone());
        let mut state = self.all.lock();
        if self.all.closing.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        let old = state.connections.insert(self.id, kept);
        drop(state);
        drop(old);
        self.waker = Some(ours);
        Poll::Pending
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        state.open -= 1;
        let own = state.connections.remove(&self.id);
        let drain = if state.open == 0 {
            state.drain.take()
        } else {
            None
        };
        drop(state);
        drop(own);
        if let Some(drain) = drain {
            drain.wake();
        }
    }
}
