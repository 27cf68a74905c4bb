//! `#[rt::main]` and `#[rt::test]` as users write them.

use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use crate::support::{Limit, within_limit};

#[rt::main]
async fn by_default() -> thread::ThreadId {
    rt::spawn(async { thread::current().id() }).await.unwrap()
}

#[test]
fn main_runs_tasks_and_returns_their_result() {
    within_limit(|| {
        by_default();
        // Each call has a runtime of its own.
        by_default();
    });
}

#[rt::main(flavor = "current_thread")]
async fn on_this_thread() -> thread::ThreadId {
    rt::spawn(async { thread::current().id() }).await.unwrap()
}

#[test]
fn main_with_current_thread_stays_on_the_thread() {
    within_limit(|| assert_eq!(on_this_thread(), thread::current().id()));
}

#[rt::main(flavor = "multi_thread", worker_threads = 2)]
async fn workers() -> usize {
    rt::runtime::Handle::current().metrics().num_workers
}

#[test]
fn main_with_worker_threads() {
    within_limit(|| assert_eq!(workers(), 2));
}

#[rt::main(name = "web", worker_threads = 1)]
async fn named() -> String {
    rt::runtime::Handle::current().name().to_owned()
}

#[test]
fn main_with_a_name() {
    within_limit(|| assert_eq!(named(), "web"));
}

#[rt::main]
async fn parse(text: &str) -> Result<i32, Box<dyn std::error::Error>> {
    if text.is_empty() {
        // Only with the type of the output known does `into` compile.
        return Err("nothing to parse".into());
    }
    let number = text.parse::<i32>()?;
    Ok(rt::spawn(async move { number + 1 }).await?)
}

#[test]
fn arguments_question_mark_and_return() {
    within_limit(|| {
        assert_eq!(parse("41").unwrap(), 42);
        assert_eq!(parse("").unwrap_err().to_string(), "nothing to parse");
        assert!(parse("x").unwrap_err().is::<std::num::ParseIntError>());
    });
}

/// The names that the macro uses inside belong to the user here.
#[rt::main]
async fn own_names(runtime: u8, future: u8, output: u8) -> u8 {
    runtime + future + output
}

#[rt::main]
async fn opaque(value: &u8) -> impl Iterator<Item = u8> + use<> {
    std::iter::repeat_n(*value, 2)
}

#[rt::main]
async fn generic<T: Clone>(value: &T) -> (T, T) {
    (value.clone(), value.clone())
}

#[rt::main]
async fn exit_code() -> ExitCode {
    ExitCode::from(7)
}

#[rt::main]
async fn empty() {}

struct Method(u8);

impl Method {
    #[rt::main]
    async fn call(&self) -> u8 {
        self.0
    }
}

#[test]
fn shapes_of_functions() {
    within_limit(|| {
        assert_eq!(own_names(1, 2, 3), 6);
        assert_eq!(opaque(&4).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(generic(&"x"), ("x", "x"));
        assert_eq!(
            format!("{:?}", exit_code()),
            format!("{:?}", ExitCode::from(7))
        );
        empty();
        assert_eq!(Method(5).call(), 5);
    });
}

#[rt::main]
async fn panics() {
    panic!("out of the body");
}

#[test]
fn a_panic_of_the_body_reaches_the_caller() {
    within_limit(|| {
        let payload = std::panic::catch_unwind(panics).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"out of the body"));
    });
}

mod elsewhere {
    pub(crate) use rt as runtime_crate;
}

#[rt::test(crate = "crate::macros::elsewhere::runtime_crate")]
async fn crate_may_be_elsewhere() {
    let _limit = Limit::new();
    rt::spawn(async {}).await.unwrap();
}

#[rt::test]
async fn test_runs_on_this_thread() {
    let _limit = Limit::new();
    let here = thread::current().id();
    let not_send = Rc::new(here);
    let there = rt::spawn(async { thread::current().id() }).await.unwrap();
    assert_eq!(there, *not_send);
}

#[rt::test(flavor = "multi_thread", worker_threads = 1)]
async fn test_with_a_worker() {
    let _limit = Limit::new();
    assert_eq!(rt::runtime::Handle::current().metrics().num_workers, 1);
    assert_eq!(rt::spawn(async { 1 }).await.unwrap(), 1);
}

#[rt::test]
async fn test_returns_a_result() -> io::Result<()> {
    let _limit = Limit::new();
    let listener = rt::net::TcpListener::bind("127.0.0.1:0").await?;
    assert_ne!(listener.local_addr()?.port(), 0);
    Ok(())
}

#[rt::test]
#[should_panic(expected = "as it should")]
async fn test_keeps_other_attributes() {
    let _limit = Limit::new();
    panic!("as it should");
}

#[rt::test(start_paused = true)]
async fn test_with_a_paused_clock() {
    let _limit = Limit::new();
    let (real, ours) = (std::time::Instant::now(), rt::time::Instant::now());
    let hour = Duration::from_secs(3600);
    rt::time::sleep(hour).await;
    assert!(ours.elapsed() >= hour);
    assert!(real.elapsed() < hour / 60, "the clock was not paused");
}
