//! What `loom-tests` and `benches` reach into. Not part of the public interface: it changes without notice.

/// The pool of threads and the handshake inside it.
pub mod blocking {
    pub use crate::blocking::*;
}

/// Futures that are polled only when they are woken.
pub mod future {
    pub use crate::future::pool::Pool;
}

/// The waiting and the firing side of timers.
pub mod time {
    pub use crate::time::clock::Clock;
    pub use crate::time::current::{Guard, enter, with_current};
    pub use crate::time::timer::{Outcome, Timer};
    pub use crate::time::timers::Timers;
}

/// Tasks under a scheduler of one's own; the queue behind `LocalSet` and `JoinSet`.
pub mod task {
    pub use crate::task::error::PanicReport;
    pub use crate::task::group::member::member_on;
    pub use crate::task::header::Header;
    pub use crate::task::memory::{Memory, Size};
    pub use crate::task::raw::{Runnable, TaskRef};
    pub use crate::task::schedule::{
        Meta, NewTask, Schedule, new_task, size_of_task, spawn_in, spawn_listed,
    };
    pub use crate::task::stock::{Freed, Stock};
    pub use crate::task::wake_queue::WakeQueue;
}

/// What threads of a scheduler tell each other.
pub mod scheduler {
    pub use crate::scheduler::attendance::Attendance;
    pub use crate::scheduler::bed::{Bed, Sleep};
    pub use crate::scheduler::driver_lock::DriverLock;
    pub use crate::scheduler::idle::{GROUP, Idle, Rest};
    pub use crate::scheduler::live::LiveTasks;
    pub use crate::scheduler::next_slot::NextSlot;
    pub use crate::scheduler::park::Park;
    pub use crate::scheduler::seat::{RootFlag, Wakeup};
}
