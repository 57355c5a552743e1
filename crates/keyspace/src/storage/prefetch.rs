//! Has the CPU fetch memory before it is needed. Knows nothing of what is there.

/// Bytes that come into the cache together.
const LINE_BYTES: usize = 64;

/// Has the CPU fetch all of a slice, without waiting for any of it. A search in it that jumps about would wait for each
/// line it comes to.
#[inline]
pub(crate) fn prefetch<T>(items: &[T]) {
    prefetch_at(items.as_ptr(), items.len());
}

/// The same for `count` items that begin at an address, whether there is anything yet or not.
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
