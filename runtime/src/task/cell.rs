//! One task's allocation: header, scheduler, and the future that becomes the output.
#![expect(
    unsafe_code,
    reason = "the future and the output share one place, guarded by the state word"
)]

use std::future::Future;
use std::mem::MaybeUninit;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicU32 as PlainU32;
use std::task::{Context, Poll};

use rt_sync::primitive::atomic::AtomicU32;
use rt_sync::primitive::cell::UnsafeCell;
use rt_sync::wait::WaitSlot;

use super::cold::ColdSlot;
use super::header::{Header, Links, Vtable};
use super::memory::{Memory, Size};
use super::state::State;
use super::steps::Steps;
use super::{Id, JoinError, Schedule, try_id};

/// What a task is called, and where it was spawned.
pub(super) type Place = (Id, Option<Arc<str>>, &'static Location<'static>);

/// See `task/mod.rs` for the access rules.
#[repr(C)]
pub(super) struct Cell<F: Future, S> {
    /// First, so that a pointer to the cell is a pointer to the header.
    pub(super) header: Header,
    pub(super) scheduler: S,
    stage: UnsafeCell<Stage<F>>,
}

enum Stage<F: Future> {
    Future(F),
    Output(Result<F::Output, JoinError>),
    Empty,
}

impl<F: Future, S: Schedule> Cell<F, S> {
    /// The size of memory in which such a task can be made, if there is one.
    pub(super) const SIZE: Option<Size> = Size::of::<Self>();

    /// Makes a task on the heap; the future is moved once, into its final place.
    #[inline]
    pub(super) fn allocate(
        future: F,
        scheduler: S,
        vtable: &'static Vtable,
        place: Place,
        listed: bool,
    ) -> NonNull<Header> {
        let mut cell = Box::<Self>::new_uninit();
        Self::write(&mut cell, future, scheduler, vtable, place, listed);
        // Written in full just now; a box of the same layout.
        NonNull::from(Box::leak(cell)).cast()
    }

    /// As [`allocate`](Self::allocate), in memory of [`SIZE`](Self::SIZE).
    #[inline]
    pub(super) fn make_in(
        memory: Memory,
        future: F,
        scheduler: S,
        vtable: &'static Vtable,
        place: Place,
        listed: bool,
    ) -> NonNull<Header> {
        assert_eq!(Some(memory.size()), Self::SIZE, "memory of another size");
        let mut at = memory.into_raw().cast::<MaybeUninit<Self>>();
        // SAFETY: large enough and aligned, by its size, and ours alone.
        let cell = unsafe { at.as_mut() };
        Self::write(cell, future, scheduler, vtable, place, listed);
        at.cast()
    }

    /// In place: a future of some size is not copied by way of the stack.
    #[inline(always)]
    fn write(
        cell: &mut MaybeUninit<Self>,
        future: F,
        scheduler: S,
        vtable: &'static Vtable,
        (id, name, site): Place,
        listed: bool,
    ) {
        cell.write(Cell {
            header: Header {
                state: State::new(listed),
                vtable,
                wait: WaitSlot::new(),
                steps: Steps::new(),
                list_key: AtomicU32::new(0),
                links: UnsafeCell::new(Links::default()),
                id,
                parent: try_id(),
                joiner: PlainU32::new(0),
                group: PlainU32::new(0),
                site,
                cold: ColdSlot::new(name),
                join_waker: UnsafeCell::new(None),
            },
            scheduler,
            stage: UnsafeCell::new(Stage::Future(future)),
        });
    }

    /// # Safety
    /// `ptr` is the header of a live task of these very types.
    #[inline]
    pub(super) unsafe fn from_header<'a>(ptr: NonNull<Header>) -> &'a Self {
        // SAFETY: `repr(C)` with the header first; types by the caller's promise.
        unsafe { ptr.cast::<Self>().as_ref() }
    }

    /// # Safety
    /// As [`from_header`](Self::from_header), and no reference to the task is left.
    pub(super) unsafe fn free(ptr: NonNull<Header>) {
        // SAFETY: made by `Box::leak` in `allocate`, and the caller is the last.
        drop(unsafe { Box::from_raw(ptr.cast::<Self>().as_ptr()) });
    }

    /// Drops what is in the cell, but for the scheduler, which takes the memory.
    ///
    /// # Safety
    /// As [`free`](Self::free), but of a task that [`make_in`](Self::make_in) made.
    pub(super) unsafe fn recycle(ptr: NonNull<Header>) {
        let Some(size) = Self::SIZE else {
            unreachable!("made in memory of no size");
        };
        let cell = ptr.cast::<Self>().as_ptr();
        // SAFETY: the task is whole, and the caller the last.
        let header = unsafe { &raw mut (*cell).header };
        // SAFETY: as above.
        let scheduler = unsafe { &raw mut (*cell).scheduler };
        // SAFETY: as above.
        let stage = unsafe { &raw mut (*cell).stage };
        // SAFETY: moved out once; it is not dropped in place.
        let scheduler = unsafe { scheduler.read() };
        // SAFETY: given up in `make_in`. Freed when this unwinds, and used by nobody before the rest is dropped.
        let memory = unsafe { Memory::from_raw(ptr.cast(), size) };
        // SAFETY: dropped once. Should a destructor panic, the header is leaked at worst, never a future that is pinned.
        unsafe { stage.drop_in_place() };
        // SAFETY: as above.
        unsafe { header.drop_in_place() };
        scheduler.recycle(memory);
    }

    /// Polls the future in place.
    ///
    /// # Safety
    /// The caller has the stage, and is where the scheduler lets the future run (task/mod.rs, rules 2 and 5).
    #[inline]
    pub(super) unsafe fn poll(&self, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.stage.with_mut(|stage| {
            // SAFETY: rule 2: nobody else looks at the stage while it is ours.
            let stage = unsafe { &mut *stage };
            let Stage::Future(future) = stage else {
                unreachable!("a task was polled after its end");
            };
            // SAFETY: the cell is on the heap and the future is dropped in place before it is overwritten (`set`).
            let future = unsafe { Pin::new_unchecked(future) };
            future.poll(cx)
        })
    }

    /// Drops what the stage holds and puts the output there.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline]
    pub(super) unsafe fn set_output(&self, output: Result<F::Output, JoinError>) {
        if !std::mem::needs_drop::<F>() {
            self.stage.with_mut(|stage| {
                // SAFETY: rule 2. A future stands there, which has no destructor.
                unsafe { ptr::write(stage, Stage::Output(output)) };
            });
            return;
        }
        // SAFETY: the caller's promise; passed on.
        unsafe { self.set(Stage::Output(output)) };
    }

    /// Drops the future, or the output. A destructor that panics leaves the stage empty.
    ///
    /// # Safety
    /// As [`poll`](Self::poll); or the task is complete and the output is the caller's (rule 4).
    pub(super) unsafe fn clear(&self) {
        // SAFETY: the caller's promise; passed on.
        unsafe { self.set(Stage::Empty) };
    }

    /// Takes the output out.
    ///
    /// # Safety
    /// The task is complete and the output is the caller's (rule 4).
    pub(super) unsafe fn take(&self) -> Option<Result<F::Output, JoinError>> {
        self.stage.with_mut(|stage| {
            // SAFETY: rule 4: nobody else looks at the stage. What is moved out is an output, which is not pinned.
            match unsafe { ptr::replace(stage, Stage::Empty) } {
                Stage::Output(output) => Some(output),
                Stage::Future(_) => unreachable!("the output of a task was read before its end"),
                Stage::Empty => None,
            }
        })
    }

    /// Whether the output is a panic that nobody took, and which.
    ///
    /// # Safety
    /// As [`take`](Self::take).
    pub(super) unsafe fn peek_error(&self) -> Option<&JoinError> {
        self.stage.with(|stage| {
            // SAFETY: rule 4: nobody else changes the stage.
            match unsafe { &*stage } {
                Stage::Output(Err(error)) => Some(error),
                _ => None,
            }
        })
    }

    /// # Safety
    /// As [`poll`](Self::poll) or [`clear`](Self::clear).
    unsafe fn set(&self, next: Stage<F>) {
        struct Write<F: Future> {
            to: *mut Stage<F>,
            next: Option<Stage<F>>,
        }
        impl<F: Future> Drop for Write<F> {
            fn drop(&mut self) {
                // What stood there is dropped by now, even if its destructor panicked half-way.
                if let Some(next) = self.next.take() {
                    // SAFETY: `to` comes from the cell, and its old content was dropped in place.
                    unsafe { ptr::write(self.to, next) };
                }
            }
        }
        self.stage.with_mut(|stage| {
            let _write = Write {
                to: stage,
                next: Some(next),
            };
            // SAFETY: nobody else looks at the stage; `_write` fills it again, also when this unwinds. Dropping in
            // place keeps the promise that pins the future.
            unsafe { ptr::drop_in_place(stage) };
        });
    }
}
