//! Two futures, or trees of futures, side by side.

use std::pin::Pin;

use pin_project_lite::pin_project;

pin_project! {
    /// A node of a tree of futures: its parts are pinned when it is.
    #[derive(Debug)]
    pub struct Pair<A, B> {
        #[pin]
        left: A,
        #[pin]
        right: B,
    }
}

impl<A, B> Pair<A, B> {
    /// Both in one.
    #[inline]
    pub fn new(left: A, right: B) -> Self {
        Self { left, right }
    }

    /// Both parts, pinned.
    #[inline]
    pub fn split(self: Pin<&mut Self>) -> (Pin<&mut A>, Pin<&mut B>) {
        let this = self.project();
        (this.left, this.right)
    }
}
