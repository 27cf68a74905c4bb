//! What a source may be asked for ([`Interest`]) and what it is ready for ([`Ready`]).

use std::fmt;
use std::ops;

const READABLE: u8 = 1;
const WRITABLE: u8 = 1 << 1;
const READ_CLOSED: u8 = 1 << 2;
const WRITE_CLOSED: u8 = 1 << 3;
const PRIORITY: u8 = 1 << 4;
const ERROR: u8 = 1 << 5;

/// What a caller wants to know about a source.
///
/// # Examples
/// ```
/// use rt_io::Interest;
///
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable());
/// assert_eq!(both.remove(Interest::WRITABLE), Some(Interest::READABLE));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interest(u8);

impl Interest {
    /// Data can be read, or the reading half is closed.
    pub const READABLE: Interest = Interest(READABLE);
    /// Data can be written, or the writing half is closed.
    pub const WRITABLE: Interest = Interest(WRITABLE);
    /// Out-of-band data (`EPOLLPRI`).
    pub const PRIORITY: Interest = Interest(PRIORITY);
    /// An error is pending.
    pub const ERROR: Interest = Interest(ERROR);

    /// Whether this includes [`Interest::READABLE`].
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.0 & READABLE != 0
    }

    /// Whether this includes [`Interest::WRITABLE`].
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// Whether this includes [`Interest::PRIORITY`].
    #[must_use]
    pub const fn is_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// Whether this includes [`Interest::ERROR`].
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// Both interests; the same as `|`.
    #[must_use = "this returns the sum and leaves `self` as it is"]
    pub const fn add(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// This without `other`, or `None` if nothing is left.
    #[must_use = "this returns the rest and leaves `self` as it is"]
    pub const fn remove(self, other: Interest) -> Option<Interest> {
        match self.0 & !other.0 {
            0 => None,
            rest => Some(Interest(rest)),
        }
    }

    /// What satisfies this interest: a closed half counts as ready, since the operation returns at once.
    #[must_use]
    pub const fn mask(self) -> Ready {
        let mut bits = self.0;
        if self.is_readable() {
            bits |= READ_CLOSED;
        }
        if self.is_writable() {
            bits |= WRITE_CLOSED;
        }
        Ready(bits)
    }

    /// What the selector is asked for. It reports errors and hang-ups unasked.
    pub(crate) fn to_mio(self) -> mio::Interest {
        let mut sum: Option<mio::Interest> = None;
        let mut add = |one: mio::Interest| sum = Some(sum.map_or(one, |sum| sum | one));
        if self.is_readable() {
            add(mio::Interest::READABLE);
        }
        if self.is_writable() {
            add(mio::Interest::WRITABLE);
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.is_priority() {
            add(mio::Interest::PRIORITY);
        }
        sum.unwrap_or(mio::Interest::READABLE)
    }
}

impl ops::BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.add(other)
    }
}

impl ops::BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bits(f, self.0)
    }
}

/// What a source is ready for.
///
/// Readiness is a hint: an operation may still say `WouldBlock`, as when another task was faster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ready(u8);

impl Ready {
    /// Ready for nothing.
    pub const EMPTY: Ready = Ready(0);
    /// Data can be read.
    pub const READABLE: Ready = Ready(READABLE);
    /// Data can be written.
    pub const WRITABLE: Ready = Ready(WRITABLE);
    /// The reading half is closed.
    pub const READ_CLOSED: Ready = Ready(READ_CLOSED);
    /// The writing half is closed.
    pub const WRITE_CLOSED: Ready = Ready(WRITE_CLOSED);
    /// Out-of-band data lies ready.
    pub const PRIORITY: Ready = Ready(PRIORITY);
    /// An error is pending.
    pub const ERROR: Ready = Ready(ERROR);
    /// Everything.
    pub const ALL: Ready =
        Ready(READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | PRIORITY | ERROR);

    /// What an event of the selector says. Errors and hang-ups wake both directions: whoever operates next learns why.
    pub(crate) fn from_event(event: &mio::event::Event) -> Ready {
        let mut bits = 0;
        if event.is_readable() {
            bits |= READABLE;
        }
        if event.is_writable() {
            bits |= WRITABLE;
        }
        if event.is_read_closed() {
            bits |= READ_CLOSED;
        }
        if event.is_write_closed() {
            bits |= WRITE_CLOSED;
        }
        if event.is_error() {
            bits |= ERROR | READABLE | WRITABLE;
        }
        // `EPOLLHUP` sets both.
        if bits & (READ_CLOSED | WRITE_CLOSED) == READ_CLOSED | WRITE_CLOSED {
            bits |= READABLE | WRITABLE;
        }
        if event.is_priority() {
            bits |= PRIORITY;
        }
        Ready(bits)
    }

    /// The bits, for the readiness word.
    #[inline]
    pub(crate) const fn bits(self) -> usize {
        self.0 as usize
    }

    /// The lowest bits of the readiness word.
    #[inline]
    pub(crate) const fn from_word(word: usize) -> Ready {
        Ready(word as u8 & Self::ALL.0)
    }

    /// Whether this is [`Ready::EMPTY`].
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a read returns at once: with data, with the end or with an error.
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.0 & (READABLE | READ_CLOSED) != 0
    }

    /// Whether a write returns at once.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 & (WRITABLE | WRITE_CLOSED) != 0
    }

    /// Whether the reading half is closed: what is left in the buffer can be read, then comes the end.
    #[must_use]
    pub const fn is_read_closed(self) -> bool {
        self.0 & READ_CLOSED != 0
    }

    /// Whether the writing half is closed.
    #[must_use]
    pub const fn is_write_closed(self) -> bool {
        self.0 & WRITE_CLOSED != 0
    }

    /// Whether out-of-band data lies ready.
    #[must_use]
    pub const fn is_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// Whether an error is pending.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// Whether this has every bit of `other`.
    #[must_use]
    pub const fn contains(self, other: Ready) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of this satisfies `interest`.
    #[must_use]
    pub const fn satisfies(self, interest: Interest) -> bool {
        self.0 & interest.mask().0 != 0
    }
}

impl ops::BitOr for Ready {
    type Output = Ready;

    fn bitor(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }
}

impl ops::BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Ready) {
        self.0 |= other.0;
    }
}

impl ops::BitAnd for Ready {
    type Output = Ready;

    fn bitand(self, other: Ready) -> Ready {
        Ready(self.0 & other.0)
    }
}

impl ops::Sub for Ready {
    type Output = Ready;

    fn sub(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bits(f, self.0)
    }
}

fn write_bits(f: &mut fmt::Formatter<'_>, bits: u8) -> fmt::Result {
    let names = [
        (READABLE, "READABLE"),
        (WRITABLE, "WRITABLE"),
        (READ_CLOSED, "READ_CLOSED"),
        (WRITE_CLOSED, "WRITE_CLOSED"),
        (PRIORITY, "PRIORITY"),
        (ERROR, "ERROR"),
    ];
    let mut any = false;
    for (bit, name) in names {
        if bits & bit != 0 {
            if any {
                f.write_str(" | ")?;
            }
            f.write_str(name)?;
            any = true;
        }
    }
    if any { Ok(()) } else { f.write_str("EMPTY") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_half_satisfies_its_own_direction_only() {
        assert!(Ready::READ_CLOSED.satisfies(Interest::READABLE));
        assert!(!Ready::READ_CLOSED.satisfies(Interest::WRITABLE));
        assert!(Ready::WRITE_CLOSED.satisfies(Interest::WRITABLE));
        assert!(!Ready::PRIORITY.satisfies(Interest::READABLE));
    }

    #[test]
    fn debug_lists_the_bits() {
        let both = Ready::READABLE | Ready::ERROR;
        assert_eq!(format!("{both:?}"), "READABLE | ERROR");
        assert_eq!(format!("{:?}", Ready::EMPTY), "EMPTY");
        assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    }
}
