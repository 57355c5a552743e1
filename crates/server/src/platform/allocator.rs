//! The allocator: jemalloc, with a running count of the bytes it has handed out. Knows size classes; refuses to
//! know what memory is for.
//!
//! `maxmemory` has to be compared with memory in use before every write, and jemalloc's own statistics take a lock and
//! a walk over all arenas to bring up to date. So each thread counts in its own cell, without contention, and the sum
//! of the cells is the memory in use.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use tikv_jemallocator::Jemalloc;

/// jemalloc that counts.
pub(crate) struct Counting;

/// jemalloc's options, which it reads before `main`: it asks for huge pages. Those that the process may have are
/// decided in [`huge_pages`](super::huge_pages).
// SAFETY: jemalloc looks for a C string behind a pointer of this name, and reads it; no other symbol has the name.
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: &[u8; 11] = b"thp:always\0";

/// Cells for threads; those beyond share the last one.
const CELLS: usize = 64;

#[repr(align(128))]
struct Cell128(AtomicI64);

static COUNTS: [Cell128; CELLS] = [const { Cell128(AtomicI64::new(0)) }; CELLS];
static NEXT_CELL: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's cell; `usize::MAX` until its first allocation. No destructor, so that allocations while the
    /// thread ends still find it.
    static CELL: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Bytes in use, size classes included.
pub(crate) fn used() -> u64 {
    COUNTS.iter().map(|cell| cell.0.load(Relaxed)).sum::<i64>().max(0) as u64
}

/// Has a thread of jemalloc's own give pages that are no longer used back to the operating system, within ten seconds
/// or so. Without it that is done by the next allocation from the same arena: on a worker while clients wait, or, after
/// FLUSHALL on an idle server, never.
pub(crate) fn give_back_in_background() {
    let begun = tikv_jemalloc_ctl::max_background_threads::write(1)
        .and_then(|()| tikv_jemalloc_ctl::background_thread::write(true));
    if let Err(error) = begun {
        tracing::warn!(%error, "freed memory is returned late: the allocator could not start its background thread");
    }
}

/// Gives all unused pages back to the operating system.
pub(crate) fn purge_allocator() {
    // 4096 is jemalloc's MALLCTL_ARENAS_ALL.
    const PURGE_ALL: &std::ffi::CStr = c"arena.4096.purge";
    let (none, no_len) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the name is a valid mallctl key that takes no value and returns none, for which all pointers are null.
    let code = unsafe { tikv_jemalloc_sys::mallctl(PURGE_ALL.as_ptr(), none, no_len, none, 0) };
    if code != 0 {
        tracing::warn!(code, "the allocator did not purge");
    }
}

#[inline]
fn count(by: i64) {
    let cell = CELL.try_with(|cell| {
        let mut index = cell.get();
        if index == usize::MAX {
            index = NEXT_CELL.fetch_add(1, Relaxed).min(CELLS - 1);
            cell.set(index);
        }
        index
    });
    match cell {
        // The owner is the only writer of its cell: a plain load and store is enough.
        Ok(index) if index < CELLS - 1 => {
            let cell = &COUNTS[index].0;
            cell.store(cell.load(Relaxed) + by, Relaxed);
        }
        _ => {
            COUNTS[CELLS - 1].0.fetch_add(by, Relaxed);
        }
    }
}

/// The size jemalloc really sets aside: multiples of 16 up to 128, then four classes for each doubling.
#[inline]
fn class_size(size: usize) -> i64 {
    let rounded = match size {
        0..=8 => 8,
        9..=128 => size.next_multiple_of(16),
        _ => {
            let spacing = (size - 1).ilog2() - 2;
            (((size - 1) >> spacing) + 1) << spacing
        }
    };
    rounded as i64
}

// SAFETY: every call is handed to jemalloc unchanged; counting touches no memory that is handed out.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(class_size(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { Jemalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(class_size(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-class_size(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { Jemalloc.dealloc(ptr, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(class_size(new_size) - class_size(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { Jemalloc.realloc(ptr, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_jemalloc_rounds_them() {
        for (size, class) in [
            (1, 8),
            (8, 8),
            (9, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (257, 320),
            (1025, 1280),
            (5000, 5120),
            (1 << 20, 1 << 20),
        ] {
            assert_eq!(class_size(size), class, "{size}");
        }
    }

    #[test]
    fn freed_memory_is_no_longer_counted() {
        // Other tests allocate at the same time: the block is large enough to be seen among them.
        const BLOCK: u64 = 256 << 20;
        let before = used();
        let block = vec![0u8; BLOCK as usize];
        assert!(used() >= before + BLOCK / 2);
        drop(block);
        assert!(used() < before + BLOCK / 2);
    }
}
