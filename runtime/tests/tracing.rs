//! Reports as events of `tracing`: needs the feature of that name. A binary of its own, since the subscriber is the process's.

#[path = "debug/support.rs"]
mod support;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rt::runtime::{Builder, ReportKind};
use rt::task::LocalSet;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use self::support::{Reports, within_limit};

const LONG: Duration = Duration::from_secs(40);

/// An event: its level, its target, and its fields as text.
struct Told {
    level: Level,
    target: String,
    fields: HashMap<&'static str, String>,
}

/// Passes on what it is told.
struct Listens {
    sender: Mutex<Sender<Told>>,
    spans: AtomicU64,
}

impl Subscriber for Listens {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Fields(HashMap<&'static str, String>);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                self.0.insert(field.name(), format!("{value:?}"));
            }
        }
        let mut fields = Fields(HashMap::new());
        event.record(&mut fields);
        let told = Told {
            level: *event.metadata().level(),
            target: event.metadata().target().to_owned(),
            fields: fields.0,
        };
        let _ = self.sender.lock().unwrap().send(told);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What the process is told, from the first call on. The tests take turns.
fn told(test: impl FnOnce(&Receiver<Told>)) {
    static RECEIVER: OnceLock<Mutex<Receiver<Told>>> = OnceLock::new();
    let receiver = RECEIVER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        let listens = Listens {
            sender: Mutex::new(sender),
            spans: AtomicU64::new(0),
        };
        tracing::subscriber::set_global_default(listens).expect("the only subscriber");
        Mutex::new(receiver)
    });
    let receiver = receiver.lock().expect("no test before this one failed");
    test(&receiver);
    assert!(receiver.try_recv().is_err(), "more was told");
}

fn text(told: &Told) -> &str {
    &told.fields["message"]
}

#[test]
fn a_report_is_an_event_with_its_kind_and_its_runtime() {
    within_limit(|| {
        told(|events| {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .debug(false)
                .name("traced")
                .build()
                .unwrap();
            let entered = runtime.enter();
            let builder = rt::task::Builder::new().name("bee");
            drop(builder.spawn(async { panic!("out of honey") }).unwrap());
            let event = events.recv_timeout(LONG).expect("an event");
            assert_eq!(event.level, Level::WARN);
            assert_eq!(event.target, "rt");
            assert_eq!(event.fields["kind"], "UnretrievedPanic");
            assert_eq!(event.fields["runtime"], "traced");
            for part in ["runtime 'traced'", "'bee'", "tracing.rs:", "out of honey"] {
                assert!(text(&event).contains(part), "{}", text(&event));
            }
            drop(entered);
        });
    });
}

#[test]
fn the_hook_of_a_runtime_goes_before_tracing() {
    within_limit(|| {
        told(|events| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(1).debug(false);
            let reports = Reports::of(&mut builder);
            let runtime = builder.build().unwrap();
            drop(runtime.spawn(async { panic!("for the hook") }));
            reports.next(ReportKind::UnretrievedPanic);
            drop(runtime);
            assert!(reports.rest(Duration::from_millis(1)).is_empty());
            assert!(events.try_recv().is_err());
        });
    });
}

/// A set of local tasks that any executor polls: there is no hook to ask.
#[test]
fn what_belongs_to_no_runtime_is_an_event_too() {
    within_limit(|| {
        told(|events| {
            let set = LocalSet::new();
            drop(set.spawn_local(async { panic!("on its own") }));
            futures_lite::future::block_on(set);
            let event = events.recv_timeout(LONG).expect("an event");
            assert_eq!(event.target, "rt");
            assert!(text(&event).contains("on its own"), "{}", text(&event));
        });
    });
}

/// The other side of the next test; alone it does nothing.
#[test]
fn plays_a_child() {
    let Some(subscriber) = std::env::var_os("RT_TEST_CHILD") else {
        return;
    };
    /// Takes no interest in anything.
    struct Deaf;
    impl Subscriber for Deaf {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            false
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }
    if subscriber == "deaf" {
        tracing::subscriber::set_global_default(Deaf).expect("the only subscriber");
    }
    let runtime = Builder::new_multi_thread().name("child").build().unwrap();
    let task = runtime.spawn(async { panic!("out of honey") });
    while !task.is_finished() {
        std::thread::yield_now();
    }
    drop(task);
    // What was noticed is told before the runtime is gone.
    drop(runtime);
    let set = LocalSet::new();
    drop(set.spawn_local(async { panic!("on its own") }));
    futures_lite::future::block_on(set);
}

#[test]
fn without_a_subscriber_reports_go_to_standard_error() {
    within_limit(|| {
        let reports_with = |subscriber: &str| {
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "plays_a_child", "--nocapture"])
                .env("RT_TEST_CHILD", subscriber)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            let text = String::from_utf8(output.stderr).unwrap();
            let reports = text.lines().filter(|line| line.starts_with("rt: "));
            reports.map(str::to_owned).collect::<Vec<_>>()
        };
        let reports = reports_with("none");
        assert_eq!(reports.len(), 2, "{reports:?}");
        assert!(
            reports[0].starts_with("rt: runtime 'child': "),
            "{reports:?}"
        );
        assert!(reports[0].contains("out of honey"), "{reports:?}");
        assert!(reports[1].contains("on its own"), "{reports:?}");
        // It was asked, and did not want to know.
        assert!(reports_with("deaf").is_empty());
    });
}
