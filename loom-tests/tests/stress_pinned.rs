//! `spawn_local` inside pinned tasks on real threads: futures that are not `Send` are woken, aborted and awaited from
//! other threads, and the runtime ends in the middle of it. Each is dropped once, on the thread that made it.
#![cfg(not(rt_loom))]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};

use rt::runtime::{Builder, UnhandledPanic};
use rt::sync::oneshot;
use rt::task::{AbortHandle, spawn_local, yield_now};
use rt_loom_tests::stress::limited;

const ROUNDS: usize = 300;
const TASKS: usize = 40;

/// Not `Send`, and knows its thread.
struct Local {
    count: Rc<Cell<usize>>,
    home: ThreadId,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Local {
    fn drop(&mut self) {
        if thread::current().id() == self.home {
            self.count.set(self.count.get() + 1);
            self.dropped.fetch_add(1, SeqCst);
        }
    }
}

/// What the threads outside get of each local task.
type Strings = (oneshot::Sender<()>, AbortHandle);

fn round(number: usize) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .unhandled_panic(UnhandledPanic::Ignore)
        .build()
        .expect("a runtime");
    let made = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::new(AtomicUsize::new(0));
    let (to, strings) = mpsc::channel::<Strings>();
    let mut pinned = Vec::new();
    for worker in 0..2 {
        let (made, dropped, to) = (made.clone(), dropped.clone(), to.clone());
        let task = runtime.handle().spawn_pinned(worker, move || async move {
            let home = thread::current().id();
            let count = Rc::new(Cell::new(0));
            let mut tasks = Vec::new();
            for n in 0..TASKS {
                let (wake, woken) = oneshot::channel();
                made.fetch_add(1, SeqCst);
                let local = Local {
                    count: count.clone(),
                    home,
                    dropped: dropped.clone(),
                };
                let task = spawn_local(async move {
                    let local = local;
                    if n % 5 == 4 {
                        panic!("now and then one panics");
                    }
                    yield_now().await;
                    let _ = woken.await;
                    if thread::current().id() != local.home {
                        // Found at the end: it will not count as dropped.
                        std::mem::forget(local);
                    }
                });
                let _ = to.send((wake, task.abort_handle()));
                tasks.push(task);
                if n % 8 == 0 {
                    yield_now().await;
                }
            }
            drop(to);
            for task in tasks {
                let _ = task.await;
            }
            assert_eq!(count.get(), TASKS);
        });
        pinned.push(task.expect("a worker"));
    }
    drop(to);
    let (even, odd): (mpsc::Sender<Strings>, _) = mpsc::channel();
    let pull = |strings: mpsc::Receiver<Strings>, pass: Option<mpsc::Sender<Strings>>| {
        for (n, (wake, abort)) in strings.into_iter().enumerate() {
            match &pass {
                Some(pass) if n % 2 == 0 => {
                    let _ = pass.send((wake, abort));
                }
                _ if n % 3 == 0 => abort.abort(),
                _ => {
                    let _ = wake.send(());
                    if n % 7 == 0 {
                        abort.abort();
                    }
                }
            }
        }
    };
    let one = thread::spawn(move || pull(strings, Some(even)));
    let two = thread::spawn(move || pull(odd, None));
    if number.is_multiple_of(2) {
        for task in pinned {
            runtime.block_on(task).expect("no panic");
        }
    }
    drop(runtime);
    one.join().expect("no panic");
    two.join().expect("no panic");
    assert_eq!(dropped.load(SeqCst), made.load(SeqCst));
}

#[test]
fn each_local_task_of_a_worker_ends_once_and_there() {
    limited(|| {
        std::panic::set_hook(Box::new(|info| {
            let text = info.to_string();
            if !text.contains("now and then") {
                eprintln!("{text}");
            }
        }));
        (0..ROUNDS).for_each(round);
    });
}
