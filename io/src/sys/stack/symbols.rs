//! Names and lines of addresses.
//!
//! Functions of the C library are named by its own table: where its debug information is installed, reading that takes
//! seconds and says nothing that helps.
#![expect(unsafe_code, reason = "asks the loader for names")]

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;

use crate::stack::Frame;

/// Libraries that every program has, by the beginning of their file names.
const SYSTEM: [&str; 6] = [
    "libc.",
    "libm.",
    "libpthread.",
    "ld-",
    "linux-vdso",
    "libgcc_s.",
];

/// The functions at these addresses, as [`capture`](super::capture) gives them; one address may be several functions,
/// inlined into each other.
#[must_use]
pub fn symbolise(addresses: &[usize]) -> Vec<Frame> {
    let mut frames = Vec::with_capacity(addresses.len());
    for (number, address) in addresses.iter().enumerate() {
        // A return address may lie behind the call's line, even behind its function.
        let inside = if number == 0 { *address } else { address - 1 };
        if let Some(frame) = of_system(*address, inside) {
            frames.push(frame);
            continue;
        }
        let found = functions(*address, inside);
        frames.extend(with_line(*address, inside, found));
    }
    frames
}

/// How far before an instruction without a line one with a line is looked for.
const LOOK_BACK: usize = 32;

/// Code that the compiler has made up belongs to no line; that of the code before it, in the same function, says where.
fn with_line(address: usize, inside: usize, found: Vec<Frame>) -> Vec<Frame> {
    let function = |frames: &[Frame]| frames.last().and_then(|frame| frame.name.clone());
    let has_line = |frames: &[Frame]| frames.iter().all(|frame| frame.line.is_some());
    let name = function(&found);
    if name.is_none() || has_line(&found) {
        return found;
    }
    (1..=LOOK_BACK)
        .map(|back| functions(address, inside - back))
        .take_while(|before| function(before) == name)
        .find(|before| has_line(before))
        .unwrap_or(found)
}

/// The functions at one address, the innermost first; at least one frame, perhaps without a name.
fn functions(address: usize, inside: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    backtrace::resolve(std::ptr::without_provenance_mut(inside), |symbol| {
        frames.push(Frame {
            address,
            // Without the hash at its end.
            name: symbol.name().map(|name| format!("{name:#}")),
            file: symbol.filename().map(ToOwned::to_owned),
            line: symbol.lineno(),
        });
    });
    if frames.is_empty() {
        frames.push(Frame {
            address,
            name: None,
            file: None,
            line: None,
        });
    }
    frames
}

/// The function of the C library at this address.
fn of_system(address: usize, inside: usize) -> Option<Frame> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    let at = ptr::without_provenance::<libc::c_void>(inside);
    // SAFETY: the place is ours, and any address may be asked for.
    if unsafe { libc::dladdr(at, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: filled in by the call above, which did not fail.
    let info = unsafe { info.assume_init() };
    let file = c_text(info.dli_fname)?;
    let file_name = Path::new(file).file_name()?.to_str()?;
    SYSTEM
        .iter()
        .any(|system| file_name.starts_with(system))
        .then(|| Frame {
            address,
            // Functions that are not exported have no name there.
            name: Some(
                c_text(info.dli_sname)
                    .map_or_else(|| format!("a function of {file_name}"), str::to_owned),
            ),
            file: None,
            line: None,
        })
}

/// A name that the loader keeps; libraries that every program has are not unloaded.
fn c_text<'a>(text: *const libc::c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: it ends with a zero, and stays there as long as its library.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
