//! One name with its value in one allocation. Knows how the bytes lie; refuses to know what they mean to a
//! command.
//!
//! A key of the keyspace is an `Entry`, and so is a field of a large hash: a name, a small value inline or a large one
//! (an object of type `O`) behind a pointer, and a deadline only when there is one. The handle is a single pointer, so
//! a table slot costs eight bytes. A name and a value in boxes of their own would cost two more allocations and 40 more
//! bytes for every key; that is why this module is written with `unsafe`.
//!
//! The allocation begins with
//! ```text
//! offset 0   u32  bits 0..4 kind, bit 4 "has a deadline", bit 5 mark, bit 6 "wide", bits 8..32 when it was last used
//! ```
//! and goes on in one of two forms. A small entry, which most are, is *compact*:
//! ```text
//!        4   u16  bits 0..7 length of the name, bits 7..16 length of the body (8 when it is a pointer)
//!        6   u48  deadline, unix milliseconds: only when bit 4 is set
//!       ..        name
//!       ..        body: bytes, or a Box<O>
//! ```
//! One whose name, body or deadline needs more bits is *wide*. Which form it is follows from these three alone.
//! ```text
//!        4   u32  length of the name
//!        8   u32  length of the body
//!       12   u64  deadline: only when bit 4 is set
//!       ..        name
//!       ..        body
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

    /// Panics for an object: bytes of a caller would be taken for a pointer. Functions that call this are inlined, so
    /// that a kind that is a constant, as nearly all are, is checked by the compiler.
    #[inline]
    fn assert_inline(self) {
        assert!(self != Kind::OBJECT, "bytes are no object");
    }
}

const OBJECT_BITS: u8 = 3;
/// Any kind but an object, for an entry whose body is about to be freed.
const EMPTY: Kind = Kind(0);

const KIND_MASK: u32 = 0x0f;
const HAS_DEADLINE: u32 = 0x10;
const MARKED: u32 = 0x20;
const WIDE: u32 = 0x40;
/// Where the lengths lie, in either form.
const LENGTHS: usize = 4;
const COMPACT_HEADER: usize = 6;
const WIDE_HEADER: usize = 12;
const COMPACT_NAME_BITS: u32 = 7;
const COMPACT_NAME_MAX: usize = (1 << COMPACT_NAME_BITS) - 1;
const COMPACT_BODY_MAX: usize = (1 << (16 - COMPACT_NAME_BITS)) - 1;
const COMPACT_DEADLINE_BYTES: usize = 6;
const COMPACT_DEADLINE_MAX: u64 = (1 << (8 * COMPACT_DEADLINE_BYTES)) - 1;
const WIDE_DEADLINE_BYTES: usize = 8;
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
    #[inline]
    pub fn new(name: &[u8], kind: Kind, body: &[u8], deadline: Option<u64>) -> Entry<O> {
        kind.assert_inline();
        Entry::with_inline(name, kind, body, deadline)
    }

    fn with_inline(name: &[u8], kind: Kind, body: &[u8], deadline: Option<u64>) -> Entry<O> {
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

    /// An allocation with all but the body, which is zero. Of `bits`, those that follow from the rest are set here.
    fn allocate(name: &[u8], bits: u32, body_len: usize, deadline: Option<u64>) -> Entry<O> {
        let form = Form::of(name.len(), body_len, deadline);
        let layout = layout_of(form, name.len(), body_len);
        // SAFETY: the layout is never of size zero; it holds the header, the deadline and the name written here.
        unsafe {
            let Some(at) = NonNull::new(alloc(layout)) else { handle_alloc_error(layout) };
            at.cast::<u32>().write(bits & !FORM_MASK | form.0);
            let mut entry = Entry { at, _owned: PhantomData };
            entry.write_lengths(name.len(), body_len);
            if let Some(deadline) = deadline {
                entry.write_deadline(deadline);
            }
            let name_at = at.add(form.name_offset());
            name_at.copy_from_nonoverlapping(NonNull::from(name).cast(), name.len());
            std::ptr::write_bytes(name_at.add(name.len()).as_ptr(), 0, body_len);
            entry
        }
    }

    /// The name.
    #[inline]
    pub fn name(&self) -> &[u8] {
        let (name_offset, name_len, _) = self.parts();
        // SAFETY: name_len bytes lie there since `allocate` and every resize.
        unsafe { std::slice::from_raw_parts(self.at.add(name_offset).as_ptr(), name_len) }
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
        let (name_offset, name_len, body_len) = self.parts();
        // SAFETY: body_len initialised bytes lie behind the name.
        unsafe { std::slice::from_raw_parts(self.at.add(name_offset + name_len).as_ptr(), body_len) }
    }

    /// The inline body, to be overwritten in place; empty for an object.
    #[inline]
    pub fn body_mut(&mut self) -> &mut [u8] {
        if self.kind() == Kind::OBJECT {
            return &mut [];
        }
        let (name_offset, name_len, body_len) = self.parts();
        // SAFETY: as in `body`, and the entry is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(name_offset + name_len).as_ptr(), body_len) }
    }

    /// The object, if the value is one.
    #[inline]
    pub fn object(&self) -> Option<&O> {
        // SAFETY: the kind is checked. The body is then a pointer from Box::into_raw that this entry owns.
        (self.kind() == Kind::OBJECT).then(|| unsafe { &*self.object_pointer() })
    }

    /// The object, to be changed.
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut O> {
        // SAFETY: as in `object`, and the entry is borrowed mutably.
        (self.kind() == Kind::OBJECT).then(|| unsafe { &mut *self.object_pointer() })
    }

    /// Replaces the value by an inline one; name, deadline and mark stay.
    #[inline]
    pub fn set_body(&mut self, kind: Kind, body: &[u8]) {
        kind.assert_inline();
        self.replace_body(kind, body);
    }

    fn replace_body(&mut self, kind: Kind, body: &[u8]) {
        self.fresh_body(kind, body.len()).copy_from_slice(body);
    }

    /// Replaces the value by an inline one of that length, and returns it to be filled.
    #[inline]
    pub fn body_to_fill(&mut self, kind: Kind, len: usize) -> &mut [u8] {
        kind.assert_inline();
        self.fresh_body(kind, len)
    }

    #[inline]
    fn fresh_body(&mut self, kind: Kind, len: usize) -> &mut [u8] {
        self.drop_object();
        self.resize_body(len);
        self.set_kind(kind);
        self.body_mut()
    }

    /// Replaces the value by an object; name, deadline and mark stay.
    pub fn set_object(&mut self, object: Box<O>) {
        self.drop_object();
        self.resize_body(size_of::<*mut O>());
        // SAFETY: the body has room for one pointer.
        unsafe { self.body_at().cast::<*mut O>().write_unaligned(Box::into_raw(object)) };
        self.set_kind(Kind::OBJECT);
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
        // The length of an object's body, a pointer, may not change.
        self.kind().assert_inline();
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
        let form = self.form();
        if !form.has_deadline() {
            return None;
        }
        // SAFETY: with the flag set, a deadline of the form's size lies behind the header. In a compact entry, eight
        // bytes from the lengths on end where it ends.
        Some(unsafe {
            match form.is_wide() {
                false => u64::from_le(self.at.add(LENGTHS).cast::<u64>().read_unaligned()) >> 16,
                true => u64::from_le(self.at.add(WIDE_HEADER).cast::<u64>().read_unaligned()),
            }
        })
    }

    /// Sets or clears the deadline.
    pub fn set_deadline(&mut self, deadline: Option<u64>) {
        match deadline {
            None if !self.form().has_deadline() => {}
            Some(deadline) if Form::of(self.name_len(), self.body_len(), Some(deadline)) == self.form() => {
                self.write_deadline(deadline);
            }
            deadline => self.move_to_form(self.body_len(), deadline),
        }
    }

    /// Moves everything into a new allocation, for a body of another length or another deadline. Keeps what fits of
    /// the body; new bytes are zero.
    fn move_to_form(&mut self, body_len: usize, deadline: Option<u64>) {
        let fresh: Entry<O> = Entry::allocate(self.name(), self.bits(), body_len, deadline);
        // SAFETY: both bodies have that many bytes. If it is a pointer to an object, the new entry owns it now: the
        // old allocation is freed below without dropping what its body points to.
        unsafe {
            fresh.body_at().copy_from_nonoverlapping(self.body_at(), self.body_len().min(body_len));
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

    /// Prefetches the object, if the value is one, but nothing that it points to.
    #[inline]
    pub fn prefetch_object(&self) {
        if self.kind() == Kind::OBJECT {
            // SAFETY: the kind was just checked.
            super::prefetch::prefetch_at(unsafe { self.object_pointer() }.cast_const(), 1);
        }
    }

    /// Heap bytes of this allocation alone, without what an object holds.
    pub fn heap_bytes(&self) -> usize {
        self.layout().size()
    }

    fn bits_word(&self) -> &AtomicU32 {
        // SAFETY: the word lies at the start of an allocation aligned to 8, and is only accessed atomically after
        // construction.
        unsafe { AtomicU32::from_ptr(self.at.cast::<u32>().as_ptr()) }
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
    fn form(&self) -> Form {
        Form(self.bits() & FORM_MASK)
    }

    /// Where the name begins, how long it is, and how long the body is.
    #[inline]
    fn parts(&self) -> (usize, usize, usize) {
        let form = self.form();
        // SAFETY: the header of the form is always there; lengths in four bytes are aligned to four.
        let (name_len, body_len) = unsafe {
            let lengths = self.at.add(LENGTHS);
            match form.is_wide() {
                false => {
                    let both = usize::from(lengths.cast::<u16>().read());
                    (both & COMPACT_NAME_MAX, both >> COMPACT_NAME_BITS)
                }
                true => (lengths.cast::<u32>().read() as usize, lengths.cast::<u32>().add(1).read() as usize),
            }
        };
        (form.name_offset(), name_len, body_len)
    }

    /// Writes the lengths, which fit the form: `layout_of` has checked them.
    #[inline]
    fn write_lengths(&mut self, name_len: usize, body_len: usize) {
        // SAFETY: as in `parts`.
        unsafe {
            let lengths = self.at.add(LENGTHS);
            match self.form().is_wide() {
                false => lengths.cast::<u16>().write((name_len | body_len << COMPACT_NAME_BITS) as u16),
                true => {
                    lengths.cast::<u32>().write(name_len as u32);
                    lengths.cast::<u32>().add(1).write(body_len as u32);
                }
            }
        }
    }

    /// Writes the deadline, which fits the form, in its place.
    fn write_deadline(&mut self, deadline: u64) {
        debug_assert!(self.form().has_deadline());
        let bytes = deadline.to_le_bytes();
        let (at, len) = match self.form().is_wide() {
            false => (COMPACT_HEADER, COMPACT_DEADLINE_BYTES),
            true => (WIDE_HEADER, WIDE_DEADLINE_BYTES),
        };
        // SAFETY: with the flag set, so many bytes lie there.
        unsafe { self.at.add(at).copy_from_nonoverlapping(NonNull::from(&bytes).cast(), len) };
    }

    #[inline]
    fn name_len(&self) -> usize {
        self.parts().1
    }

    #[inline]
    fn body_len(&self) -> usize {
        self.parts().2
    }

    #[inline]
    fn body_at(&self) -> NonNull<u8> {
        let (name_offset, name_len, _) = self.parts();
        // SAFETY: the body lies behind the name, inside the allocation (or at its very end when empty).
        unsafe { self.at.add(name_offset + name_len) }
    }

    fn layout(&self) -> Layout {
        let (_, name_len, body_len) = self.parts();
        layout_of(self.form(), name_len, body_len)
    }

    /// # Safety
    /// The value is an object.
    unsafe fn object_pointer(&self) -> *mut O {
        // SAFETY: the body of an object is one pointer, possibly unaligned.
        unsafe { self.body_at().cast::<*mut O>().read_unaligned() }
    }

    /// Drops the object, if the value is one. What is left are eight bytes of an inline body.
    fn drop_object(&mut self) {
        if self.kind() == Kind::OBJECT {
            // SAFETY: the pointer came from Box::into_raw and is given up here.
            let object = unsafe { Box::from_raw(self.object_pointer()) };
            // IMPORTANT: before the object is dropped. If that panics, this entry must not drop it again.
            self.set_kind(EMPTY);
            drop(object);
        }
    }

    /// Makes the body `len` bytes long, keeping what fits; new bytes are zero.
    fn resize_body(&mut self, len: usize) {
        let (_, name_len, old_len) = self.parts();
        if len == old_len {
            return;
        }
        let (form, deadline) = (self.form(), self.deadline());
        if Form::of(name_len, len, deadline) != form {
            return self.move_to_form(len, deadline);
        }
        let (old, new) = (self.layout(), layout_of(form, name_len, len));
        // SAFETY: `old` is the layout this allocation was made with, `new` has the same alignment and is not
        // of size zero; bytes past the old body are initialised before they can be read.
        unsafe {
            let Some(at) = NonNull::new(realloc(self.at.as_ptr(), old, new.size())) else { handle_alloc_error(new) };
            self.at = at;
            self.write_lengths(name_len, len);
            if len > old_len {
                std::ptr::write_bytes(self.body_at().add(old_len).as_ptr(), 0, len - old_len);
            }
        }
    }
}

/// How the header of an entry lies: the bits that say whether it is wide and whether it has a deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form(u32);

const FORM_MASK: u32 = WIDE | HAS_DEADLINE;

impl Form {
    #[inline]
    fn of(name_len: usize, body_len: usize, deadline: Option<u64>) -> Form {
        let is_compact = name_len <= COMPACT_NAME_MAX
            && body_len <= COMPACT_BODY_MAX
            && deadline.is_none_or(|deadline| deadline <= COMPACT_DEADLINE_MAX);
        Form(if is_compact { 0 } else { WIDE } | if deadline.is_some() { HAS_DEADLINE } else { 0 })
    }

    #[inline]
    fn is_wide(self) -> bool {
        self.0 & WIDE != 0
    }

    #[inline]
    fn has_deadline(self) -> bool {
        self.0 & HAS_DEADLINE != 0
    }

    /// Where the name begins: behind the header and the deadline.
    #[inline]
    fn name_offset(self) -> usize {
        match (self.is_wide(), self.has_deadline()) {
            (false, false) => COMPACT_HEADER,
            (false, true) => COMPACT_HEADER + COMPACT_DEADLINE_BYTES,
            (true, false) => WIDE_HEADER,
            (true, true) => WIDE_HEADER + WIDE_DEADLINE_BYTES,
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

fn layout_of(form: Form, name_len: usize, body_len: usize) -> Layout {
    // IMPORTANT: checked here, before there is an allocation whose lengths could not be written.
    let lengths_fit = !form.is_wide() || name_len.max(body_len) <= u32::MAX as usize;
    assert!(lengths_fit, "names and inline bodies are shorter than 4 GiB");
    let size = form.name_offset() + name_len + body_len;
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

    /// Names, bodies and deadlines of both forms of entries, often near the bound between them.
    fn some_name(random: &mut fastrand::Rng) -> Vec<u8> {
        let len_max = [0, 40, COMPACT_NAME_MAX, COMPACT_NAME_MAX + 1, 300][random.usize(..5)];
        bytes(random, len_max)
    }

    fn some_body(random: &mut fastrand::Rng) -> Vec<u8> {
        match random.u8(..4) {
            0 => vec![7; COMPACT_BODY_MAX + random.usize(..3) - 1],
            1 => bytes(random, 1_500),
            _ => bytes(random, 60),
        }
    }

    fn some_deadline(random: &mut fastrand::Rng) -> Option<u64> {
        match random.u8(..6) {
            0 => Some(random.u64(..)),
            1 => Some(COMPACT_DEADLINE_MAX - 1 + random.u64(..3)),
            2 => Some(1_700_000_000_000 + random.u64(..1 << 40)),
            _ => None,
        }
    }

    #[test]
    fn random_changes_agree_with_a_plain_model() {
        let seed = 7;
        let mut random = fastrand::Rng::with_seed(seed);
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        for _ in 0..rounds {
            let name = some_name(&mut random);
            let body = some_body(&mut random);
            let deadline = some_deadline(&mut random);
            let mut entry = Entry::new(&name, TEXT, &body, deadline);
            let mut model = Model { name, body: Ok(body), deadline, marked: false };
            for _ in 0..20 {
                match random.u8(..7) {
                    0 => {
                        let body = some_body(&mut random);
                        entry.set_body(PACKED, &body);
                        model.body = Ok(body);
                    }
                    1 => {
                        let object = bytes(&mut random, 60);
                        entry.set_object(Box::new(object.clone()));
                        model.body = Err(object);
                    }
                    2 => {
                        model.deadline = some_deadline(&mut random);
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
                            let with = bytes(&mut random, 120);
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
    fn the_form_follows_from_what_is_in_the_entry() {
        let sized = |name: usize, body: usize, deadline| {
            let entry = Entry::new(&vec![1; name], TEXT, &vec![2; body], deadline);
            entry.heap_bytes() - name - body
        };
        assert_eq!([sized(127, 511, None), sized(127, 511, Some((1 << 48) - 1))], [6, 12]);
        assert_eq!([sized(128, 0, None), sized(0, 512, None), sized(0, 0, Some(1 << 48))], [12, 12, 20]);
        let mut entry = Entry::new(b"k", TEXT, &[2; 512], Some(u64::MAX));
        entry.set_body(TEXT, b"v");
        assert_eq!((entry.heap_bytes(), entry.deadline()), (22, Some(u64::MAX)));
        entry.set_deadline(Some(5));
        assert_eq!((entry.heap_bytes(), entry.deadline(), entry.body()), (14, Some(5), &b"v"[..]));
    }

    /// In release builds, too.
    #[test]
    fn bytes_are_not_taken_for_an_object() {
        let refused = |change: &dyn Fn(&mut Entry)| {
            let mut entry = Entry::with_object(b"k", Box::new(vec![1, 2, 3]), None);
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| change(&mut entry))).is_err());
            assert_eq!(entry.object(), Some(&vec![1, 2, 3]));
        };
        refused(&|_| drop(Entry::new(b"k", Kind::OBJECT, &[9; 8], None)));
        refused(&|entry| entry.set_body(Kind::OBJECT, &[9; 8]));
        refused(&|entry| entry.body_to_fill(Kind::OBJECT, 8).fill(9));
        refused(&|entry| entry.splice_body(0..0, b"bytes"));
        refused(&|entry| entry.open_gap(0..0, 5).fill(9));
    }

    #[test]
    fn an_object_whose_drop_panics_is_dropped_once() {
        use std::cell::Cell;
        use std::rc::Rc;

        struct Panics(Rc<Cell<u32>>);

        impl Drop for Panics {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
                panic!("on purpose");
            }
        }

        let dropped = Rc::new(Cell::new(0));
        let mut entry = super::Entry::with_object(b"k", Box::new(Panics(dropped.clone())), None);
        let set = std::panic::AssertUnwindSafe(|| entry.set_body(TEXT, b"v"));
        assert!(std::panic::catch_unwind(set).is_err());
        assert!(entry.object().is_none());
        drop(entry);
        assert_eq!(dropped.get(), 1);
    }

    #[test]
    fn a_handle_is_one_pointer() {
        assert_eq!(size_of::<Option<Entry>>(), 8);
    }
}
