//! What of a stack is worth telling: what lies inside of the runtime's own frames, without the standard library's
//! wrapping.

use rt_io::stack::{Frame, symbolise};

/// Places through which the runtime polls a future. Everything further out is the runtime, its thread, and whoever called
/// `block_on`.
const POLLED_BY: Places = Places {
    modules: &[
        "rt::task::cell::",
        "rt::task::harness::",
        "rt::scheduler::",
        "rt::debug::",
    ],
    files: &["task/cell.rs", "task/harness.rs", "scheduler/", "debug/"],
};

/// Places that only pass on.
const WRAPPING: Places = Places {
    modules: &[
        "core::ops::function::",
        "core::panic::unwind_safe::",
        "core::future::future::",
        "std::panicking::",
        "std::panic::catch_unwind",
        "__rust_try",
    ],
    files: &[
        "core/src/ops/function.rs",
        "core/src/panic/unwind_safe.rs",
        "core/src/future/future.rs",
        "std/src/panicking.rs",
        "std/src/panic.rs",
    ],
};

/// Told by the path of the function; or, since line tables alone have names without paths, by the file.
struct Places {
    modules: &'static [&'static str],
    files: &'static [&'static str],
}

/// More lines than this are left out in the middle of nowhere.
const MOST: usize = 40;

/// The lines of a stack, the innermost first.
pub(super) fn lines(addresses: &[usize]) -> Vec<String> {
    let frames = symbolise(addresses);
    let own = own_sources();
    let end = frames
        .iter()
        .position(|frame| POLLED_BY.has(frame, &own))
        .unwrap_or(frames.len());
    let mut lines: Vec<String> = frames[..end]
        .iter()
        .filter(|frame| !WRAPPING.has(frame, "/library/"))
        .map(line)
        .collect();
    let mut hidden = frames.len() - end;
    if lines.len() > MOST {
        hidden += lines.len() - MOST;
        lines.truncate(MOST);
    }
    if hidden > 0 {
        lines.push(format!("... {hidden} more of the runtime and its thread"));
    }
    lines
}

/// Where the standard library keeps a function is not what its user calls it.
fn line(frame: &Frame) -> String {
    let text = frame.to_string();
    match text.strip_prefix("std::thread::functions::") {
        Some(rest) => format!("std::thread::{rest}"),
        None => text,
    }
}

/// Where the sources of this crate lie, as line tables name them.
fn own_sources() -> String {
    // `runtime/src/debug/stack.rs`
    file!().trim_end_matches("debug/stack.rs").to_owned()
}

impl Places {
    /// Whether a function, or the type or trait it belongs to, is in one of these places; `root` is what comes before the
    /// names of the files.
    fn has(&self, frame: &Frame, root: &str) -> bool {
        let file = frame.file.as_ref().and_then(|file| file.to_str());
        if let Some((_, file)) = file.and_then(|file| file.split_once(root))
            && self.files.iter().any(|own| file.starts_with(own))
        {
            return true;
        }
        // `<rt::task::cell::Cell<F, S>>::poll`, `<alloc::boxed::Box<F> as core::future::future::Future>::poll`
        let Some(name) = frame.name.as_deref() else {
            return false;
        };
        let starts = |name: &str| self.modules.iter().any(|module| name.starts_with(module));
        match name.strip_prefix('<') {
            Some(inner) => {
                starts(inner)
                    || inner
                        .split_once(" as ")
                        .is_some_and(|(_, of_trait)| starts(of_trait))
            }
            None => starts(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, file: &str) -> Frame {
        Frame {
            address: 0,
            name: Some(name.to_owned()),
            file: Some(file.into()),
            line: Some(1),
        }
    }

    #[test]
    fn the_runtime_is_known_by_name_or_by_file() {
        let own = own_sources();
        let in_own = format!("/home/me/{own}task/cell.rs");
        for (name, file) in [
            ("rt::task::harness::poll", "?"),
            ("<rt::task::cell::Cell<F, S>>::poll", "?"),
            ("poll<app::main::{async_block}>", in_own.as_str()),
        ] {
            assert!(POLLED_BY.has(&frame(name, file), &own), "{name} {file}");
        }
        for (name, file) in [
            ("app::rt::task::cell::poll", "/home/me/app/src/task/cell.rs"),
            ("rt::time::sleep::Sleep::poll", "?"),
        ] {
            assert!(!POLLED_BY.has(&frame(name, file), &own), "{name} {file}");
        }
    }

    #[test]
    fn wrapping_is_left_out() {
        for (name, file) in [
            ("__rust_try", "?"),
            (
                "<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<()>>::call_once",
                "?",
            ),
            (
                "call_once<app::f, ()>",
                "/rustc/0/library/core/src/ops/function.rs",
            ),
        ] {
            assert!(
                WRAPPING.has(&frame(name, file), "/library/"),
                "{name} {file}"
            );
        }
        let sleep = frame(
            "std::thread::functions::sleep",
            "/rustc/0/library/std/src/thread/functions.rs",
        );
        assert!(!WRAPPING.has(&sleep, "/library/"));
        assert!(line(&sleep).starts_with("std::thread::sleep at "));
    }
}
