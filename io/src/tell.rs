//! Lines on standard error, for what nobody else takes.

use std::fmt;
use std::io::{self, Write};

/// Writes a line behind `rt: `, in one piece, so that lines of several threads do not mix. If nobody reads standard error any
/// more, nothing is told: whoever has something to tell must not panic for that, as `eprintln` does.
pub fn to_stderr(text: &dyn fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "rt: {text}");
}
