//! What `loom-tests` and `benches` reach into. Not part of the public interface: it changes without notice.

/// The pool of threads and the handshake inside it.
pub mod blocking {
    pub use crate::blocking::*;
}

/// The waiting and the firing side of timers.
pub mod time {
    pub use crate::time::clock::Clock;
    pub use crate::time::current::{Guard, enter, with_current};
    pub use crate::time::timer::{Outcome, Timer};
    pub use crate::time::timers::Timers;
}

/// The queue behind `LocalSet` and `JoinSet`.
pub mod task {
    pub use crate::task::wake_queue::WakeQueue;
}
