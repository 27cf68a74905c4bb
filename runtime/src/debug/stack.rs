//! What of a stack is worth telling: what lies inside of the runtime's own frames, without the standard library's
//! wrapping.

use rt_io::stack::{Frame, symbolise};

/// Functions through which the runtime polls a future. Everything further out is the runtime, its thread, and whoever
/// called `block_on`.
const POLLED_BY: [&str; 4] = [
    "rt::task::cell::",
    "rt::task::harness::",
    "rt::scheduler::",
    "rt::debug::",
];

/// Functions that only pass on.
const WRAPPING: [&str; 6] = [
    "core::ops::function::",
    "core::panic::unwind_safe::",
    "core::future::future::",
    "std::panicking::",
    "std::panic::catch_unwind",
    "__rust_try",
];

/// More lines than this are left out in the middle of nowhere.
const MOST: usize = 40;

/// The lines of a stack, the innermost first.
pub(super) fn lines(addresses: &[usize]) -> Vec<String> {
    let frames = symbolise(addresses);
    let end = frames
        .iter()
        .position(|frame| is_any(frame, &POLLED_BY))
        .unwrap_or(frames.len());
    let mut lines: Vec<String> = frames[..end]
        .iter()
        .filter(|frame| !is_any(frame, &WRAPPING))
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

/// Whether a function, or the type it belongs to, is in one of these modules.
fn is_any(frame: &Frame, modules: &[&str]) -> bool {
    frame.name.as_deref().is_some_and(|name| {
        // `<rt::task::cell::Cell<F, S>>::poll`, `<alloc::boxed::Box<F> as core::future::future::Future>::poll`.
        let name = name.trim_start_matches('<');
        let name = match name.split_once(" as ") {
            Some((_, as_trait))
                if frame
                    .name
                    .as_deref()
                    .is_some_and(|name| name.starts_with('<')) =>
            {
                if modules.iter().any(|module| as_trait.starts_with(module)) {
                    return true;
                }
                name
            }
            _ => name,
        };
        modules.iter().any(|module| name.starts_with(module))
    })
}
