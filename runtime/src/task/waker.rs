//! The waker of a task: the task's own pointer and one reference.
//!
//! # The spare reference
//! Most polls that return `Pending` have cloned their waker once. That would count one reference up, and the end of the
//! poll the one of the `Runnable` down: two changes that cancel out. So the first clone on the polling thread takes over
//! the `Runnable`'s reference, which the thread marks as spare while it polls (`id.rs`), and counts nothing; the end of
//! the poll then has none to drop. This is sound because another reference keeps the task alive until its end: that of
//! its live list, which only whoever ends it takes out ([`Schedule::PINS`](super::Schedule::PINS)).
#![expect(unsafe_code, reason = "a raw waker is built on the reference count")]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::header::Header;
use super::id::take_spare;
use super::transition::Wake;

static WAKER: RawWakerVTable = RawWakerVTable::new(clone, wake_by_value, wake_by_ref, drop_waker);

/// A waker that lives no longer than one poll and so needs no reference of its own.
///
/// # Safety
/// The task stays alive while the value does: the caller holds a `Runnable`'s reference.
#[inline]
pub(super) unsafe fn borrowed(ptr: NonNull<Header>) -> ManuallyDrop<Waker> {
    // SAFETY: the vtable expects the pointer of a live task; `ManuallyDrop` keeps `drop_waker` from running, so no
    // reference is given up that was never taken.
    ManuallyDrop::new(unsafe { Waker::new(ptr.as_ptr().cast_const().cast(), &WAKER) })
}

/// # Safety
/// `data` is the pointer of a task to which the waker holds a reference.
#[inline]
unsafe fn header<'a>(data: *const ()) -> &'a Header {
    // SAFETY: the caller's promise.
    unsafe { &*data.cast::<Header>() }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    if !take_spare(data.cast()) {
        // SAFETY: called on a live waker of ours.
        unsafe { header(data) }.state.ref_inc();
    }
    RawWaker::new(data, &WAKER)
}

unsafe fn wake_by_value(data: *const ()) {
    // SAFETY: called on a live waker of ours.
    let header = unsafe { header(data) };
    match header.state.wake_by_value(&header.steps) {
        Wake::Nothing => {}
        // SAFETY: the waker's reference became a `Runnable`, which `schedule` takes.
        Wake::Submit => unsafe { (header.vtable.schedule)(NonNull::from(header)) },
        // SAFETY: the waker's reference was the last.
        Wake::Dealloc => unsafe { (header.vtable.dealloc)(NonNull::from(header)) },
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: called on a live waker of ours.
    let header = unsafe { header(data) };
    if header.state.wake_by_ref(&header.steps) == Wake::Submit {
        // SAFETY: `Submit` made us the owner of a `Runnable`, which `schedule` takes.
        unsafe { (header.vtable.schedule)(NonNull::from(header)) };
    }
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: called on a live waker of ours, which is not used again.
    let header = unsafe { header(data) };
    if header.state.ref_dec(1) {
        // SAFETY: that was the last reference.
        unsafe { (header.vtable.dealloc)(NonNull::from(header)) };
    }
}
