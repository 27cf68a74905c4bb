//! Tasks that may fail, and whose failure somebody should hear of: `spawn_result`.
//!
//! In debug mode the task keeps the text of its error, from the moment at which its future returns it. If the output is
//! then dropped with nobody having taken it, by the task itself or with its handle, the text is reported.

use std::fmt::{self, Display, Write};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use rt_sync::wake_batch::discard;

use super::report::{Report, ReportKind, ReportedTask};
use super::sink::Sink;
use crate::context;
use crate::task::Header;

/// Longer texts are cut.
const MOST: usize = 300;

/// What a task that failed tells if nobody takes its error.
pub(crate) struct Failure {
    sink: Arc<Sink>,
    text: String,
}

impl Failure {
    /// Nobody has taken the error of this task.
    #[cold]
    pub(crate) fn tell(self, task: &Header) {
        let text = format!("failed: {} (nobody retrieved the error)", self.text);
        let task = ReportedTask {
            wait: None,
            ..ReportedTask::of(task)
        };
        self.sink.report(Report {
            site: Some(task.site),
            task: Some(task),
            ..Report::new(ReportKind::UnretrievedError, &self.sink.runtime, text)
        });
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure").finish_non_exhaustive()
    }
}

pin_project! {
    /// A future whose error is kept as text.
    pub(crate) struct Told<F> {
        #[pin]
        future: F,
    }
}

impl<F> Told<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future }
    }
}

impl<F, T, E> Future for Told<F>
where
    F: Future<Output = Result<T, E>>,
    E: Display,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let result = ready!(self.project().future.poll(cx));
        if let Err(error) = &result {
            keep(error);
        }
        Poll::Ready(result)
    }
}

#[cold]
fn keep(error: &dyn Display) {
    let sink = context::with(|cx| {
        let debug = &cx?.shared.debug;
        debug.notes_polls().then(|| Arc::clone(&debug.sink))
    });
    if let Some(sink) = sink {
        let text = text_of(error);
        crate::task::keep_failure(Failure { sink, text });
    }
}

/// The text of an error, cut. `Display` is user code: it may fail, and it may panic.
fn text_of(error: &dyn Display) -> String {
    struct Cut(String);
    impl Write for Cut {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let left = MOST - self.0.len();
            if text.len() <= left {
                self.0.push_str(text);
                return Ok(());
            }
            let end = (0..=left).rev().find(|end| text.is_char_boundary(*end));
            self.0.push_str(&text[..end.unwrap_or(0)]);
            self.0.push_str("...");
            Err(fmt::Error)
        }
    }
    let mut cut = Cut(String::new());
    let written = catch_unwind(AssertUnwindSafe(|| {
        // An error says that the text was cut.
        let _ = write!(cut, "{error}");
    }));
    if let Err(payload) = written {
        discard(payload);
    }
    cut.0
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(text_of(&"short"), "short");
        let cut = text_of(&"ä".repeat(MOST));
        assert_eq!(cut, format!("{}...", "ä".repeat(MOST / 2)));
    }

    #[test]
    fn a_text_that_panics_is_not_there() {
        struct Bad(Arc<()>);
        impl Display for Bad {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                panic_any(self.0.clone())
            }
        }
        let payload = Arc::new(());
        assert_eq!(text_of(&Bad(payload.clone())), "");
        assert_eq!(Arc::strong_count(&payload), 1, "the payload is kept");
    }
}
