//! The cost of an operation: CPU time of the thread, and calls of the allocator. Knows nothing of what is measured.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// What one operation costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// CPU time of the thread, so that other processes do not count.
    pub ns: f64,
    /// Blocks taken from the allocator, or moved by it to grow.
    pub allocations: f64,
}

/// How long an operation is measured.
#[derive(Clone, Copy)]
pub struct Meter {
    /// Operations that are timed together: the clock is a system call.
    pub operations: u32,
    /// How many times that many are timed; the fastest counts, as the one that was disturbed least.
    pub batches: u32,
}

impl Meter {
    /// The cost of one operation. What `prepare` makes for each is not counted.
    pub fn measure<T>(self, mut prepare: impl FnMut(u32) -> T, mut operation: impl FnMut(T)) -> Cost {
        let mut batch = |counted: bool| {
            let inputs: Vec<T> = (0..self.operations).map(&mut prepare).collect();
            COUNTING.set(counted);
            let (allocated, began) = (ALLOCATIONS.get(), cpu_ns());
            for input in inputs {
                operation(black_box(input));
            }
            let cost = (cpu_ns() - began, ALLOCATIONS.get() - allocated);
            COUNTING.set(false);
            cost
        };
        batch(false); // Buffers have grown, caches are warm.
        let (_, allocations) = batch(true);
        let ns = (0..self.batches).map(|_| batch(false).0).min().expect("there is a batch");
        let each = |sum: u64| sum as f64 / f64::from(self.operations);
        Cost { ns: each(ns), allocations: each(allocations) }
    }
}

/// The median time of some rounds. Allocations are the same in each.
pub fn median(rounds: &[Cost]) -> Cost {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    sorted[sorted.len() / 2]
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The system's allocator, which counts while an operation is measured for it. A program that measures has it as its
/// `#[global_allocator]`.
pub struct CountingAllocator;

// Each thread counts its own. Constants without destructors: an allocator may use them at any time.
thread_local! {
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    if COUNTING.get() {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
}

// SAFETY: every method passes its arguments on to `System` and returns what that returns.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    const METER: Meter = Meter { operations: 10, batches: 2 };

    // One test: the counter is the process's.
    #[test]
    fn allocations_of_the_operation_count_and_no_others() {
        let copied = METER.measure(|_| vec![1u8; 100], |bytes| drop(black_box(bytes.clone())));
        assert_eq!(copied.allocations, 1.0);
        let read = METER.measure(|_| vec![1u8; 100], |bytes| drop(black_box(bytes)));
        assert_eq!(read.allocations, 0.0);
        let grown = METER.measure(|_| Vec::with_capacity(1), |mut bytes: Vec<u8>| bytes.extend_from_slice(&[0; 100]));
        assert_eq!(grown.allocations, 1.0);
    }

    #[test]
    fn the_median_is_that_of_the_time() {
        let cost = |ns| Cost { ns, allocations: 0.0 };
        assert_eq!(median(&[cost(3.0), cost(1.0), cost(9.0)]).ns, 3.0);
    }
}
