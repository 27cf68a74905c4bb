//! The stress twin of `cancellation_token.rs`: real threads, many trees, a time limit.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::cancellation_token::CancellationToken;

/// Trees that several threads grow, prune and wait in while they are cancelled: everybody who waits goes on.
#[test]
fn everybody_is_cancelled_in_a_tree_that_changes() {
    const ROUNDS: usize = 500;
    const THREADS: usize = 3;
    limited(|| {
        for round in 0..ROUNDS {
            let root = CancellationToken::new();
            let made = Arc::new(AtomicUsize::new(0));
            let over = Arc::new(AtomicBool::new(false));
            let threads: Vec<_> = (0..THREADS)
                .map(|i| {
                    let (mine, made) = (root.child_token(), made.clone());
                    let over = over.clone();
                    thread::spawn(move || {
                        let mut tokens = vec![mine];
                        let mut n = i;
                        loop {
                            n = n.wrapping_mul(25_173).wrapping_add(13_849);
                            let at = (n >> 4) % tokens.len();
                            match n % 5 {
                                0..3 => tokens.push(tokens[at].child_token()),
                                3 if tokens.len() > 1 => drop(tokens.swap_remove(at)),
                                _ => drop(tokens[at].child_token()),
                            }
                            made.fetch_add(1, SeqCst);
                            if tokens[0].is_cancelled() || tokens.len() > 200 {
                                break;
                            }
                        }
                        for token in &tokens {
                            block_on(token.cancelled());
                        }
                        // `cancel` may still be at it elsewhere; there is nothing that it could add.
                        assert!(over.load(SeqCst));
                        assert!(tokens[0].child_token().is_cancelled());
                    })
                })
                .collect();
            while made.load(SeqCst) < round % 60 {
                thread::yield_now();
            }
            over.store(true, SeqCst);
            root.cancel();
            for thread in threads {
                thread.join().unwrap();
            }
        }
    });
}
