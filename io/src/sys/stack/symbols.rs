//! Names and lines of addresses.

use crate::stack::Frame;

/// The functions at these addresses, as [`capture`](super::capture) gives them; one address may be several functions,
/// inlined into each other.
#[must_use]
pub fn symbolise(addresses: &[usize]) -> Vec<Frame> {
    let mut frames = Vec::with_capacity(addresses.len());
    for (number, address) in addresses.iter().enumerate() {
        // A return address may lie behind the call's line, even behind its function.
        let inside = if number == 0 { *address } else { address - 1 };
        let before = frames.len();
        backtrace::resolve(std::ptr::without_provenance_mut(inside), |symbol| {
            frames.push(Frame {
                address: *address,
                // Without the hash at its end.
                name: symbol.name().map(|name| format!("{name:#}")),
                file: symbol.filename().map(ToOwned::to_owned),
                line: symbol.lineno(),
            });
        });
        if frames.len() == before {
            frames.push(Frame {
                address: *address,
                name: None,
                file: None,
                line: None,
            });
        }
    }
    frames
}
