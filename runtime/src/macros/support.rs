//! What the macros write refers to here. No part of the public interface.

mod join;
mod maybe_done;
mod pair;
mod random;
mod try_join;

use std::future::poll_fn;

pub use std::task::Context;

pub use rt_macros::{join_at, select_at, try_join_at};
pub use std::future::{Future, IntoFuture};
pub use std::pin::{Pin, pin};
pub use std::result::Result::{Err, Ok};
pub use std::task::Poll;
pub use std::{panic, unreachable};

pub use self::join::{Join, JoinTree, join};
pub use self::maybe_done::{MaybeDone, maybe_done};
pub use self::pair::Pair;
pub use self::random::random_below;
pub use self::try_join::{TryJoin, TryJoinTree, try_join};

/// The future of a `select!`.
#[inline]
pub fn select_fn<T, P>(mut poll: P) -> impl Future<Output = T>
where
    P: FnMut(&mut Context<'_>) -> Poll<T>,
{
    poll_fn(move |cx| rt_sync::wait::of_parts(|| poll(cx)))
}

/// Whether a `select!` may poll its branches. If the task has no budget left, it is woken instead: a branch that
/// spends budget would be `Pending` for that alone, and one that does not would win each time.
#[inline]
pub fn proceed(cx: &Context<'_>) -> bool {
    let proceed = rt_sync::coop::budget_left();
    if !proceed {
        cx.waker().wake_by_ref();
    }
    proceed
}
