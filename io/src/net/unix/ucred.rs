//! Who is at the other end of a Unix stream.

/// Credentials of the process at the other end, as they were when the connection was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UCred {
    pub(super) pid: Option<i32>,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl UCred {
    /// User id.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// Group id.
    #[must_use]
    pub const fn gid(&self) -> u32 {
        self.gid
    }

    /// Process id, where the system tells it. The process may have ended meanwhile.
    #[must_use]
    pub const fn pid(&self) -> Option<i32> {
        self.pid
    }
}
