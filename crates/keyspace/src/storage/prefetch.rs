//! Prefetches memory before it is needed. Knows nothing of its contents.

/// The size of a cache line.
const LINE_BYTES: usize = 64;

/// Prefetches all of a slice. A binary search in it would otherwise wait for each cache line it visits.
#[inline]
pub(crate) fn prefetch<T>(items: &[T]) {
    prefetch_at(items.as_ptr(), items.len());
}

/// Prefetches `count` items from an address on, initialised or not.
#[inline]
pub(crate) fn prefetch_at<T>(first: *const T, count: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..count * size_of::<T>()).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching has no effect that a program can see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.cast::<i8>().wrapping_add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (first, count);
}
