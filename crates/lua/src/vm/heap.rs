//! The memory of one Lua state: counted, limited, and quick for small objects. Knows nothing of what is stored.
//!
//! A script makes and drops a dozen small objects per call. Lua tells the size when it frees, so a free list per
//! size class needs no header and no search; what is larger goes to the global allocator.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Sizes are rounded up to this; it is also the alignment of everything.
const GRAIN: usize = 16;
/// Above this, objects are the global allocator's.
const SMALL_MAX: usize = 512;
const CLASSES: usize = SMALL_MAX / GRAIN;
/// Small objects are cut from chunks of this size, kept until the state ends.
const CHUNK: usize = 32 * 1024;
/// What [`Heap::has_room`] leaves, at most.
const RESERVE_MAX: usize = 64 * 1024;

/// Bytes that all heaps of the process have of the global allocator.
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// What all Lua states hold, garbage and what they keep for later included.
pub fn total_bytes() -> usize {
    TOTAL.load(Relaxed)
}

pub(super) struct Heap {
    used: usize,
    /// The limit in force: `bytes_max`, or none while it is lifted.
    allowed: usize,
    bytes_max: usize,
    /// The limit for what [`Heap::has_room`] is asked for.
    bytes_max_with_reserve: usize,
    free: [*mut Free; CLASSES],
    /// The uncut rest of the newest chunk.
    rest: *mut u8,
    rest_bytes: usize,
    chunks: Vec<*mut u8>,
}

struct Free {
    next: *mut Free,
}

impl Heap {
    /// Without a limit, and with that lifted.
    pub(super) fn new() -> Self {
        Heap {
            used: 0,
            allowed: usize::MAX,
            bytes_max: usize::MAX,
            bytes_max_with_reserve: usize::MAX,
            free: [null_mut(); CLASSES],
            rest: null_mut(),
            rest_bytes: 0,
            chunks: Vec::new(),
        }
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.used
    }

    /// What the state holds of the global allocator's, about: what it uses, or what small objects were ever cut from.
    pub(super) fn footprint_bytes(&self) -> usize {
        self.used.max(self.chunks.len() * CHUNK)
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Sets the limit, which stays lifted if it is.
    pub(super) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.bytes_max_with_reserve = bytes_max - (bytes_max / 16).min(RESERVE_MAX);
        if self.allowed != usize::MAX {
            self.allowed = bytes_max;
        }
    }

    /// From here on no request is refused; one that the system refuses ends the process, as it does for a `Vec`.
    #[inline]
    pub(super) fn lift_limit(&mut self) {
        self.allowed = usize::MAX;
    }

    /// From here on the limit holds. False: more is in use already.
    #[inline]
    pub(super) fn enforce_limit(&mut self) -> bool {
        self.allowed = self.bytes_max;
        self.used <= self.bytes_max
    }

    /// May so many bytes more be used while the limit is lifted? A little is left for what cannot ask, and for a script
    /// that continues after the error: the collector works only when something is allocated.
    #[inline]
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.used + bytes <= self.bytes_max_with_reserve
    }

    /// `lua_Alloc`: null means "not enough memory", which Lua turns into an error of the script. Shrinking never fails.
    ///
    /// # Safety
    /// `block` is null or was returned by this heap for `old` bytes and not freed since.
    #[inline]
    pub(super) unsafe fn resize(&mut self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        let old = if block.is_null() { 0 } else { old };
        if new == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.release(block, old) };
            self.used -= old;
            return null_mut();
        }
        if new > old && new - old > self.allowed.saturating_sub(self.used) {
            return null_mut();
        }
        // SAFETY: the caller's promise.
        let moved = unsafe { self.obtain(block, old, new) };
        if !moved.is_null() {
            self.used = self.used - old + new;
        }
        moved
    }

    /// # Safety
    /// As for [`Heap::resize`], with `new` above zero.
    #[inline]
    unsafe fn obtain(&mut self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        if block.is_null() {
            return if new <= SMALL_MAX { self.take(class_of(new)) } else { self.large(new) };
        }
        let (small_before, small_after) = (old <= SMALL_MAX, new <= SMALL_MAX);
        if small_before && small_after && class_of(old) == class_of(new) {
            return block;
        }
        if !small_before && !small_after {
            // SAFETY: a large block came from the global allocator with this layout.
            let moved = unsafe { realloc(block, layout(old), new) };
            if moved.is_null() {
                return self.refused(new);
            }
            TOTAL.fetch_add(new.wrapping_sub(old), Relaxed);
            return moved;
        }
        let moved = if small_after { self.take(class_of(new)) } else { self.large(new) };
        if moved.is_null() {
            // A block is never too large for what it is freed as later, unless it is the global allocator's.
            return if new < old && small_before { block } else { moved };
        }
        // SAFETY: both blocks are live, distinct, and at least as long as the shorter of the two sizes.
        unsafe {
            std::ptr::copy_nonoverlapping(block, moved, old.min(new));
            self.release(block, old);
        }
        moved
    }

    #[inline]
    fn take(&mut self, class: usize) -> *mut u8 {
        let head = self.free[class];
        if head.is_null() {
            return self.cut((class + 1) * GRAIN);
        }
        // SAFETY: a block on a free list is ours and begins with the link that `release` wrote.
        self.free[class] = unsafe { (*head).next };
        head.cast()
    }

    #[cold]
    fn cut(&mut self, bytes: usize) -> *mut u8 {
        if self.rest_bytes < bytes {
            // What is left of the old chunk goes to the free lists.
            while self.rest_bytes >= GRAIN {
                let class = class_of(self.rest_bytes.min(SMALL_MAX));
                let size = (class + 1) * GRAIN;
                let piece: *mut Free = self.rest.cast();
                // SAFETY: the rest is a live, aligned part of the newest chunk with at least `size` bytes.
                unsafe {
                    (*piece).next = self.free[class];
                    self.rest = self.rest.add(size);
                }
                self.free[class] = piece;
                self.rest_bytes -= size;
            }
            let chunk = self.large(CHUNK);
            if chunk.is_null() {
                return null_mut();
            }
            self.chunks.push(chunk);
            self.rest = chunk;
            self.rest_bytes = CHUNK;
        }
        let block = self.rest;
        // SAFETY: the chunk has at least `bytes` left.
        self.rest = unsafe { self.rest.add(bytes) };
        self.rest_bytes -= bytes;
        block
    }

    fn large(&self, bytes: usize) -> *mut u8 {
        if bytes > isize::MAX as usize - GRAIN {
            return self.refused(bytes);
        }
        // SAFETY: the layout is not empty.
        let block = unsafe { alloc(layout(bytes)) };
        if block.is_null() {
            return self.refused(bytes);
        }
        TOTAL.fetch_add(bytes, Relaxed);
        block
    }

    /// The system has no memory: Lua raises an error, but no error may be raised while the limit is lifted.
    #[cold]
    fn refused(&self, bytes: usize) -> *mut u8 {
        if self.allowed == usize::MAX {
            handle_alloc_error(layout(bytes.min(isize::MAX as usize - GRAIN)));
        }
        null_mut()
    }

    /// # Safety
    /// `block` is null or was returned by this heap for `bytes` bytes.
    #[inline]
    unsafe fn release(&mut self, block: *mut u8, bytes: usize) {
        if block.is_null() || bytes == 0 {
            return;
        }
        if bytes > SMALL_MAX {
            // SAFETY: a large block came from the global allocator with this layout.
            unsafe { dealloc(block, layout(bytes)) };
            TOTAL.fetch_sub(bytes, Relaxed);
            return;
        }
        let class = class_of(bytes);
        let freed: *mut Free = block.cast();
        // SAFETY: the block is ours again, aligned, and at least a link long.
        unsafe { (*freed).next = self.free[class] };
        self.free[class] = freed;
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        for &chunk in &self.chunks {
            // SAFETY: chunks came from `large(CHUNK)`, and the state that used them is closed.
            unsafe { dealloc(chunk, layout(CHUNK)) };
        }
        TOTAL.fetch_sub(self.chunks.len() * CHUNK, Relaxed);
    }
}

fn class_of(bytes: usize) -> usize {
    (bytes - 1) / GRAIN
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, GRAIN).expect("Lua asks for less than isize::MAX bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(bytes_max: usize) -> Heap {
        let mut heap = Heap::new();
        heap.set_bytes_max(bytes_max);
        heap.enforce_limit();
        heap
    }

    #[test]
    fn blocks_keep_their_bytes_whatever_happens_around_them() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut heap = limited(1 << 20);
        let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
        let mut refused = 0;
        let rounds = if cfg!(miri) { 500 } else { 20_000 };
        for _ in 0..rounds {
            let size = if random.bool() { random.usize(1..700) } else { random.usize(1..9000) };
            let mark = random.u8(..);
            if blocks.len() > 200 || (!blocks.is_empty() && random.u8(..) < 80) {
                let (block, bytes, _) = blocks.swap_remove(random.usize(..blocks.len()));
                // SAFETY: the block is live and of this size.
                unsafe { heap.resize(block, bytes, 0) };
            } else if !blocks.is_empty() && random.bool() {
                let at = random.usize(..blocks.len());
                let (block, bytes, old) = blocks[at];
                // SAFETY: the block is live and of this size; the bytes read are within both sizes.
                unsafe {
                    let moved = heap.resize(block, bytes, size);
                    if moved.is_null() {
                        refused += 1;
                        continue;
                    }
                    assert!((0..bytes.min(size)).all(|i| *moved.add(i) == old));
                    std::ptr::write_bytes(moved, mark, size);
                    blocks[at] = (moved, size, mark);
                }
            } else {
                // SAFETY: a new block, written within its size.
                unsafe {
                    let block = heap.resize(null_mut(), 0, size);
                    if block.is_null() {
                        refused += 1;
                        continue;
                    }
                    std::ptr::write_bytes(block, mark, size);
                    blocks.push((block, size, mark));
                }
            }
            assert_eq!(heap.used_bytes(), blocks.iter().map(|b| b.1).sum::<usize>());
        }
        println!("refused {refused}");
        for (block, bytes, mark) in blocks {
            // SAFETY: the block is live and of this size.
            unsafe {
                assert!((0..bytes).all(|i| *block.add(i) == mark));
                heap.resize(block, bytes, 0);
            }
        }
        assert_eq!(heap.used_bytes(), 0);
    }

    #[test]
    fn the_limit_holds() {
        let mut heap = limited(1000);
        // SAFETY: blocks are freed with the size they were made with.
        unsafe {
            let block = heap.resize(null_mut(), 0, 900);
            assert!(!block.is_null());
            assert!(heap.resize(null_mut(), 0, 101).is_null());
            assert!(heap.resize(block, 900, 1001).is_null());
            let block = heap.resize(block, 900, 1000);
            assert!(!block.is_null());
            heap.resize(block, 1000, 0);
        }
    }

    #[test]
    fn a_lifted_limit_refuses_nothing_and_is_noticed_afterwards() {
        let mut heap = limited(1000);
        heap.lift_limit();
        assert!(heap.has_room(900) && !heap.has_room(1000));
        // SAFETY: the block is freed with the size it was made with.
        unsafe {
            let block = heap.resize(null_mut(), 0, 1001);
            assert!(!block.is_null());
            assert!(!heap.has_room(0) && !heap.enforce_limit());
            assert!(heap.resize(null_mut(), 0, 1).is_null());
            heap.resize(block, 1001, 0);
            assert!(heap.enforce_limit());
        }
    }
}
