//! Guards that cancel a token when they are dropped.

use super::CancellationToken;

/// Cancels its token when it is dropped. Made by [`CancellationToken::drop_guard`].
#[derive(Debug)]
#[must_use = "dropping the guard cancels the token"]
pub struct DropGuard {
    token: Option<CancellationToken>,
}

/// Cancels its token when it is dropped. Made by [`CancellationToken::drop_guard_ref`].
#[derive(Debug)]
#[must_use = "dropping the guard cancels the token"]
pub struct DropGuardRef<'a> {
    token: Option<&'a CancellationToken>,
}

impl DropGuard {
    pub(super) fn new(token: CancellationToken) -> Self {
        Self { token: Some(token) }
    }

    /// Gives the token back, and cancels nothing.
    pub fn disarm(mut self) -> CancellationToken {
        self.token.take().expect("only `disarm` takes it")
    }
}

impl<'a> DropGuardRef<'a> {
    pub(super) fn new(token: &'a CancellationToken) -> Self {
        Self { token: Some(token) }
    }

    /// Gives the token back, and cancels nothing.
    pub fn disarm(mut self) -> &'a CancellationToken {
        self.token.take().expect("only `disarm` takes it")
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.token {
            token.cancel();
        }
    }
}

impl Drop for DropGuardRef<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            token.cancel();
        }
    }
}
