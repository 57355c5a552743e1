//! One name with its value in one allocation. Knows how the bytes lie; refuses to know what they mean to a
//! command.
//!
//! A key of the keyspace is an `Entry`, and so is a field of a large hash: a name, a small value inline or a
//! large one (an object of type `O`) behind a pointer, and a deadline only when there is one. The handle is a single pointer, so a
//! table slot costs eight bytes. A name and a value in boxes of their own would cost two more allocations and
//! 40 more bytes for every key; that is why this module is written with `unsafe`, the only one in the crate.
//!
//! ```text
//! offset 0   u32  length of the name
//!        4   u32  length of the body (8 when it is a pointer)
//!        8   u32  bits 0..4 kind, bit 4 "has a deadline", bit 5 mark, bits 8..32 when it was last used
//!       12   u64  deadline, unix milliseconds: only when bit 4 is set
//!       ..        name
//!       ..        body: bytes, or a Box<O>
//! ```

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The kind of an entry's body: a number with a meaning that the owner of the entry chooses, except one that all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u8);

impl Kind {
    /// The value lies behind a pointer.
    pub const OBJECT: Kind = Kind(OBJECT_BITS);

    /// A kind of inline body: a number below 16 other than 3.
    pub const fn inline(number: u8) -> Kind {
        assert!(number as u32 <= KIND_MASK && number != OBJECT_BITS, "a number that is free");
        Kind(number)
    }
}

const OBJECT_BITS: u8 = 3;
/// Any kind but an object, for an entry whose body is about to be freed.
const EMPTY: Kind = Kind(0);

const HEADER: usize = 12;
const KIND_MASK: u32 = 0x0f;
const HAS_DEADLINE: u32 = 0x10;
const MARKED: u32 = 0x20;
const USED_SHIFT: u32 = 8;
const USED_MASK: u32 = u32::MAX >> USED_SHIFT;
const CLOCK_SKEW_S: u32 = 60;
const ALIGN: usize = 8;

/// An instant in unix milliseconds as [`Entry::used_at`] keeps it: seconds, modulo 2^24.
#[inline]
pub fn used_at(now_ms: u64) -> u32 {
    (now_ms / 1000) as u32 & USED_MASK
}

/// The longest time without use that [`idle_s`] can return: half a year.
pub const IDLE_MAX_S: u32 = USED_MASK - CLOCK_SKEW_S;

/// How many seconds before `now_ms` an entry was last used, from its `used` value.
pub fn idle_s(used: u32, now_ms: u64) -> u32 {
    match used_at(now_ms).wrapping_sub(used) & USED_MASK {
        idle if idle <= IDLE_MAX_S => idle,
        // Another worker's clock was a little ahead.
        _ => 0,
    }
}

/// A name and its value; owns both. See the module's description.
pub struct Entry<O> {
    at: NonNull<u8>,
    _owned: PhantomData<Box<O>>,
}

// SAFETY: an Entry owns its allocation alone, like a Box; the only interior mutability is an atomic.
unsafe impl<O: Send> Send for Entry<O> {}
// SAFETY: as above; through a shared reference only the atomic word changes.
unsafe impl<O: Sync> Sync for Entry<O> {}

impl<O> Entry<O> {
    /// A new entry with an inline body.
    pub fn new(name: &[u8], kind: Kind, body: &[u8], deadline: Option<u64>) -> Entry<O> {
        debug_assert!(kind != Kind::OBJECT);
        let mut entry = Entry::allocate(name, u32::from(kind.0), body.len(), deadline);
        entry.body_mut().copy_from_slice(body);
        entry
    }

    /// A new entry whose value is an object.
    pub fn with_object(name: &[u8], object: Box<O>, deadline: Option<u64>) -> Entry<O> {
        let entry = Entry::allocate(name, u32::from(Kind::OBJECT.0), size_of::<*mut O>(), deadline);
        // SAFETY: the body was just allocated with room for one pointer; it may be unaligned.
        unsafe { entry.body_at().cast::<*mut O>().write_unaligned(Box::into_raw(object)) };
        entry
    }

    fn allocate(name: &[u8], bits: u32, body_len: usize, deadline: Option<u64>) -> Entry<O> {
        let bits = bits | if deadline.is_some() { HAS_DEADLINE } else { 0 };
        let layout = layout_of(name.len(), body_len, deadline.is_some());
        // SAFETY: the layout is never of size zero; it holds the header, the deadline and the name written here.
        unsafe {
            let Some(at) = NonNull::new(alloc(layout)) else { handle_alloc_error(layout) };
            at.cast::<u32>().write(u32::try_from(name.len()).expect("names are shorter than 4 GiB"));
            at.cast::<u32>().add(1).write(u32::try_from(body_len).expect("inline bodies are shorter than 4 GiB"));
            at.cast::<u32>().add(2).write(bits);
            if let Some(deadline) = deadline {
                at.add(HEADER).cast::<u64>().write_unaligned(deadline);
            }
            let name_at = at.add(HEADER + if deadline.is_some() { 8 } else { 0 });
            name_at.copy_from_nonoverlapping(NonNull::from(name).cast(), name.len());
            std::ptr::write_bytes(name_at.add(name.len()).as_ptr(), 0, body_len);
            Entry { at, _owned: PhantomData }
        }
    }

    /// The name.
    #[inline]
    pub fn name(&self) -> &[u8] {
        // SAFETY: name_len bytes lie at name_at since `allocate` and every resize.
        unsafe { std::slice::from_raw_parts(self.at.add(self.name_offset()).as_ptr(), self.name_len()) }
    }

    /// What the body is.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind((self.bits() & KIND_MASK) as u8)
    }

    /// The inline body; empty for an object.
    #[inline]
    pub fn body(&self) -> &[u8] {
        if self.kind() == Kind::OBJECT {
            return &[];
        }
        // SAFETY: body_len initialised bytes lie behind the name.
        unsafe { std::slice::from_raw_parts(self.body_at().as_ptr(), self.body_len()) }
    }

    /// The inline body, to be overwritten in place; empty for an object.
    #[inline]
    pub fn body_mut(&mut self) -> &mut [u8] {
        if self.kind() == Kind::OBJECT {
            return &mut [];
        }
        // SAFETY: as in `body`, and the entry is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.body_at().as_ptr(), self.body_len()) }
    }

    /// The object, if the value is one.
    #[inline]
    pub fn object(&self) -> Option<&O> {
        // SAFETY: of kind Object, the body is a pointer from Box::into_raw that this entry owns.
        (self.kind() == Kind::OBJECT).then(|| unsafe { &*self.object_pointer() })
    }

    /// The object, to be changed.
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut O> {
        // SAFETY: as in `object`, and the entry is borrowed mutably.
        (self.kind() == Kind::OBJECT).then(|| unsafe { &mut *self.object_pointer() })
    }

    /// Replaces the value by an inline one; name, deadline and mark stay.
    pub fn set_body(&mut self, kind: Kind, body: &[u8]) {
        debug_assert!(kind != Kind::OBJECT);
        self.drop_object();
        self.resize_body(body.len());
        self.set_kind(kind);
        self.body_mut().copy_from_slice(body);
    }

    /// Replaces the value by an object; name, deadline and mark stay.
    pub fn set_object(&mut self, object: Box<O>) {
        self.drop_object();
        self.resize_body(size_of::<*mut O>());
        self.set_kind(Kind::OBJECT);
        // SAFETY: the body has room for one pointer.
        unsafe { self.body_at().cast::<*mut O>().write_unaligned(Box::into_raw(object)) };
    }

    /// Takes the object out and frees the rest; `None` (and the entry is freed) when the value is not an object.
    pub fn into_object(mut self) -> Option<Box<O>> {
        if self.kind() != Kind::OBJECT {
            return None;
        }
        // SAFETY: the pointer came from Box::into_raw; with the kind changed, dropping `self` leaves it alone.
        let object = unsafe { Box::from_raw(self.object_pointer()) };
        self.set_kind(EMPTY);
        Some(object)
    }

    /// Replaces `range` of the inline body by `bytes`, moving the bytes behind it.
    pub fn splice_body(&mut self, range: std::ops::Range<usize>, bytes: &[u8]) {
        self.open_gap(range, bytes.len()).copy_from_slice(bytes);
    }

    /// Makes `range` of the inline body `len` bytes long, moving the bytes behind it, and returns it to be filled.
    pub fn open_gap(&mut self, range: std::ops::Range<usize>, len: usize) -> &mut [u8] {
        let old_len = self.body().len();
        assert!(range.start <= range.end && range.end <= old_len, "a gap within the body");
        let (new_len, end) = (old_len - range.len() + len, range.start + len);
        if new_len > old_len {
            self.resize_body(new_len);
            self.body_mut().copy_within(range.end..old_len, end);
        } else if new_len < old_len {
            self.body_mut().copy_within(range.end..old_len, end);
            self.resize_body(new_len);
        }
        &mut self.body_mut()[range.start..end]
    }

    /// When the entry ceases to be, in unix milliseconds.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        if self.bits() & HAS_DEADLINE == 0 {
            return None;
        }
        // SAFETY: with the flag set, eight bytes of deadline lie behind the header.
        Some(unsafe { self.at.add(HEADER).cast::<u64>().read_unaligned() })
    }

    /// Sets or clears the deadline.
    pub fn set_deadline(&mut self, deadline: Option<u64>) {
        match (deadline, self.bits() & HAS_DEADLINE != 0) {
            (None, false) => {}
            // SAFETY: as in `deadline`.
            (Some(deadline), true) => unsafe { self.at.add(HEADER).cast::<u64>().write_unaligned(deadline) },
            (deadline, _) => self.relayout(deadline),
        }
    }

    /// Moves everything into a new allocation with or without room for a deadline.
    fn relayout(&mut self, deadline: Option<u64>) {
        let fresh: Entry<O> = Entry::allocate(self.name(), self.bits() & !HAS_DEADLINE, self.body_len(), deadline);
        // SAFETY: both bodies are body_len bytes long. If it is a pointer to an object, the new entry owns it
        // now: the old allocation is freed below without dropping what its body points to.
        unsafe {
            fresh.body_at().copy_from_nonoverlapping(self.body_at(), self.body_len());
            dealloc(self.at.as_ptr(), self.layout());
        }
        let fresh = std::mem::ManuallyDrop::new(fresh);
        self.at = fresh.at;
    }

    /// A bit that the owner of the entry may use: a string that was changed in place, for example.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.bits() & MARKED != 0
    }

    /// Sets or clears the owner's bit.
    pub fn set_marked(&mut self, marked: bool) {
        let bits = self.bits();
        self.bits_word().store(if marked { bits | MARKED } else { bits & !MARKED }, Relaxed);
    }

    /// The entry's record of use: see [`Usage`](crate::usage::Usage).
    pub fn used_at(&self) -> u32 {
        self.bits() >> USED_SHIFT
    }

    /// Changes the entry's record of use. Readers may call it: only OBJECT IDLETIME and FREQ show it.
    #[inline]
    pub fn touch(&self, used: u32) {
        let bits = self.bits();
        let touched = (bits & ((1 << USED_SHIFT) - 1)) | used << USED_SHIFT;
        if touched != bits {
            self.bits_word().store(touched, Relaxed);
        }
    }

    /// Prefetches the beginning of the entry.
    #[inline]
    pub fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: prefetching has no effect that a program can see, whatever the address; both lie in or right behind
        // the allocation.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.at.as_ptr().cast());
            _mm_prefetch::<_MM_HINT_T0>(self.at.as_ptr().wrapping_add(64).cast());
        }
    }

    /// Heap bytes of this allocation alone, without what an object holds.
    pub fn heap_bytes(&self) -> usize {
        self.layout().size()
    }

    fn bits_word(&self) -> &AtomicU32 {
        // SAFETY: the word lies at offset 8 of an allocation aligned to 8, and is only accessed atomically
        // after construction.
        unsafe { AtomicU32::from_ptr(self.at.cast::<u32>().add(2).as_ptr()) }
    }

    #[inline]
    fn bits(&self) -> u32 {
        self.bits_word().load(Relaxed)
    }

    fn set_kind(&mut self, kind: Kind) {
        let bits = self.bits();
        self.bits_word().store(bits & !KIND_MASK | u32::from(kind.0), Relaxed);
    }

    #[inline]
    fn name_len(&self) -> usize {
        // SAFETY: the header is always there.
        unsafe { self.at.cast::<u32>().read() as usize }
    }

    #[inline]
    fn body_len(&self) -> usize {
        // SAFETY: the header is always there.
        unsafe { self.at.cast::<u32>().add(1).read() as usize }
    }

    #[inline]
    fn name_offset(&self) -> usize {
        HEADER + if self.bits() & HAS_DEADLINE != 0 { 8 } else { 0 }
    }

    #[inline]
    fn body_at(&self) -> NonNull<u8> {
        // SAFETY: the body lies behind the name, inside the allocation (or at its very end when empty).
        unsafe { self.at.add(self.name_offset() + self.name_len()) }
    }

    fn layout(&self) -> Layout {
        layout_of(self.name_len(), self.body_len(), self.bits() & HAS_DEADLINE != 0)
    }

    fn object_pointer(&self) -> *mut O {
        // SAFETY: callers have checked the kind; the body is then one pointer, possibly unaligned.
        unsafe { self.body_at().cast::<*mut O>().read_unaligned() }
    }

    /// Drops the object, if the value is one. The body then holds a dangling pointer: the caller overwrites
    /// it and the kind, or frees the allocation, before anything can look.
    fn drop_object(&mut self) {
        if self.kind() == Kind::OBJECT {
            // SAFETY: the pointer came from Box::into_raw and is given up here.
            drop(unsafe { Box::from_raw(self.object_pointer()) });
            self.set_kind(EMPTY);
        }
    }

    /// Makes the body `len` bytes long, keeping what fits; new bytes are zero.
    fn resize_body(&mut self, len: usize) {
        let old_len = self.body_len();
        if len == old_len {
            return;
        }
        let (old, new) = (self.layout(), layout_of(self.name_len(), len, self.bits() & HAS_DEADLINE != 0));
        // SAFETY: `old` is the layout this allocation was made with, `new` has the same alignment and is not
        // of size zero; bytes past the old body are initialised before they can be read.
        unsafe {
            let Some(at) = NonNull::new(realloc(self.at.as_ptr(), old, new.size())) else { handle_alloc_error(new) };
            self.at = at;
            at.cast::<u32>().add(1).write(u32::try_from(len).expect("inline bodies are shorter than 4 GiB"));
            if len > old_len {
                std::ptr::write_bytes(self.body_at().add(old_len).as_ptr(), 0, len - old_len);
            }
        }
    }
}

impl<O: Clone> Clone for Entry<O> {
    fn clone(&self) -> Entry<O> {
        let mut copy = match self.object() {
            Some(object) => Entry::with_object(self.name(), Box::new(object.clone()), self.deadline()),
            None => Entry::new(self.name(), self.kind(), self.body(), self.deadline()),
        };
        copy.set_marked(self.is_marked());
        copy
    }
}

impl<O> Drop for Entry<O> {
    fn drop(&mut self) {
        self.drop_object();
        // SAFETY: the allocation was made with this layout and is given up here.
        unsafe { dealloc(self.at.as_ptr(), self.layout()) }
    }
}

fn layout_of(name_len: usize, body_len: usize, has_deadline: bool) -> Layout {
    let size = HEADER + if has_deadline { 8 } else { 0 } + name_len + body_len;
    Layout::from_size_align(size, ALIGN).expect("an entry is smaller than the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind of inline body, and another.
    const TEXT: Kind = Kind::inline(0);
    const PACKED: Kind = Kind::inline(2);

    type Entry = super::Entry<Vec<u8>>;

    /// The plain model that the packed entry is held against.
    #[derive(Debug, PartialEq)]
    struct Model {
        name: Vec<u8>,
        body: Result<Vec<u8>, Vec<u8>>,
        deadline: Option<u64>,
        marked: bool,
    }

    fn model_of(entry: &Entry) -> Model {
        let body = match entry.object() {
            Some(bytes) => Err(bytes.clone()),
            None => Ok(entry.body().to_vec()),
        };
        Model { name: entry.name().to_vec(), body, deadline: entry.deadline(), marked: entry.is_marked() }
    }

    fn bytes(random: &mut fastrand::Rng, len_max: usize) -> Vec<u8> {
        (0..random.usize(..=len_max)).map(|_| random.u8(..)).collect()
    }

    #[test]
    fn random_changes_agree_with_a_plain_model() {
        let seed = 7;
        let mut random = fastrand::Rng::with_seed(seed);
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        for _ in 0..rounds {
            let name = bytes(&mut random, 40);
            let body = bytes(&mut random, 60);
            let deadline = random.bool().then(|| random.u64(..));
            let mut entry = Entry::new(&name, TEXT, &body, deadline);
            let mut model = Model { name, body: Ok(body), deadline, marked: false };
            for _ in 0..20 {
                match random.u8(..7) {
                    0 => {
                        let body = bytes(&mut random, 60);
                        entry.set_body(PACKED, &body);
                        model.body = Ok(body);
                    }
                    1 => {
                        let object = bytes(&mut random, 60);
                        entry.set_object(Box::new(object.clone()));
                        model.body = Err(object);
                    }
                    2 => {
                        model.deadline = random.bool().then(|| random.u64(..));
                        entry.set_deadline(model.deadline);
                    }
                    3 => {
                        model.marked = random.bool();
                        entry.set_marked(model.marked);
                    }
                    4 => entry.touch(random.u32(..) & 0xff_ffff),
                    _ => {
                        if let Ok(body) = &mut model.body {
                            let end = random.usize(..=body.len());
                            let start = random.usize(..=end);
                            let with = bytes(&mut random, 30);
                            body.splice(start..end, with.iter().copied());
                            entry.splice_body(start..end, &with);
                        }
                    }
                }
                assert_eq!(model_of(&entry), model, "seed {seed}");
            }
        }
    }

    #[test]
    fn use_is_remembered_beside_the_flags() {
        let mut entry = Entry::new(b"k", PACKED, &5i64.to_le_bytes(), Some(9));
        entry.set_marked(true);
        entry.touch(0xab_cdef);
        assert_eq!(
            (entry.used_at(), entry.kind(), entry.deadline(), entry.is_marked()),
            (0xab_cdef, PACKED, Some(9), true)
        );
    }

    #[test]
    fn a_handle_is_one_pointer() {
        assert_eq!(size_of::<Option<Entry>>(), 8);
    }
}
