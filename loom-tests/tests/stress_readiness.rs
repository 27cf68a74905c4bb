//! The stress twin of `readiness.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::thread::{self};

use rt_io::driver::readiness::{Direction, Readiness};
use rt_io::driver::{Interest, Ready};
use rt_loom_tests::stress::{block_on, limited};

struct Source {
    bytes: AtomicUsize,
    readiness: Readiness,
}

impl Source {
    fn event(&self, ready: Ready, woken: &mut Vec<Waker>) {
        self.readiness.set(ready, woken);
        woken.drain(..).for_each(Waker::wake);
    }

    fn read(&self) -> io::Result<usize> {
        match self.bytes.swap(0, Relaxed) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }

    async fn readable(&self) -> bool {
        let mut key = None;
        let mask = Interest::READABLE.mask();
        poll_fn(|cx| {
            let mut seen = self.readiness.load();
            if !seen.has(mask) {
                match self.readiness.wait(&mut key, mask, cx.waker()) {
                    Some(now) => seen = now,
                    None => return Poll::Pending,
                }
            }
            if let Some(key) = key.take() {
                self.readiness.forget(key);
            }
            Poll::Ready(!seen.is_closed())
        })
        .await
    }
}

#[test]
fn every_byte_is_read_and_the_close_is_heard() {
    const BYTES: usize = 300_000;
    limited(|| {
        let source = Arc::new(Source {
            bytes: AtomicUsize::new(0),
            readiness: Readiness::new(Ready::READABLE),
        });
        let driver = {
            let source = Arc::clone(&source);
            thread::spawn(move || {
                let mut woken = Vec::new();
                for number in 0..BYTES {
                    source.bytes.fetch_add(1, Relaxed);
                    source.event(Ready::READABLE | Ready::WRITABLE, &mut woken);
                    // Some gaps are long enough for the reader to park.
                    for _ in 0..number % 64 {
                        std::hint::spin_loop();
                    }
                }
                // The last byte must be read without the help of the close.
                while source.bytes.load(Relaxed) != 0 {
                    thread::yield_now();
                }
                source.readiness.close(&mut woken);
                woken.drain(..).for_each(Waker::wake);
            })
        };
        let watcher = {
            let source = Arc::clone(&source);
            thread::spawn(move || block_on(async { while source.readable().await {} }))
        };
        let mut seen = 0;
        while let Some(read) = block_on(poll_fn(|cx| {
            source
                .readiness
                .poll_op(Direction::Read, cx.waker(), || source.read(), |_| true)
        })) {
            seen += read.unwrap();
        }
        assert_eq!(seen, BYTES);
        driver.join().unwrap();
        watcher.join().unwrap();
    });
}
