//! That a type is not `Send` or not `Sync`: `<T as Unsync<_>>::check()` would be ambiguous if it were.

pub(crate) trait Unsync<A> {
    fn check() {}
}

pub(crate) trait Unsend<A> {
    fn check() {}
}

pub(crate) struct IsSync;
pub(crate) struct IsSend;

impl<T: ?Sized> Unsync<()> for T {}
impl<T: ?Sized + Sync> Unsync<IsSync> for T {}
impl<T: ?Sized> Unsend<()> for T {}
impl<T: ?Sized + Send> Unsend<IsSend> for T {}
