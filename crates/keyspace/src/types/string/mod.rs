//! Strings: bytes, or a whole number. Knows their three forms (text and number inline, long ones behind a pointer),
//! their changes, and how both are encoded; refuses to know commands.

use super::{Applied, Entry, Object, Shapes, ValueType};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_scalar};
use crate::storage::scalar::inline_scalar;
use crate::storage::size_class::size_class;
use crate::storage::{Kind, Scalar};

pub use crate::storage::scalar::{NUMBER, TEXT};

/// The row of strings.
pub static TYPE: ValueType = ValueType {
    tag: 1,
    name: "string",
    redis_number: 0,
    event_letter: '$',
    is_own: false,
    is_bound: false,
    name_error: |_| None,
    encoding,
    elements: |_, _| 1,
    heap_bytes: |object, _| bytes_of(object).map_or(0, |bytes| size_class(bytes.capacity())),
    is_freed_later: |object| bytes_of(object).is_some_and(|bytes| bytes.len() > FREED_AT_ONCE_BYTES_MAX),
    write_image,
    check_image: |reader| reader.scalar(MARKED).map(drop),
    read_image: |name, mut image, _, deadline| {
        let (value, bits) = image.scalar(MARKED).expect("an image is checked before it is read");
        let mut entry = entry_of(name, value, deadline);
        entry.set_marked(bits & MARKED != 0);
        entry
    },
    release: None,
    element_expiry: None,
    to_redis: |entry, _, _| formats::Value::String(scalar(entry).bytes().into_owned()),
    digest: |entry, _, _, digest: &mut Digest| scalar(entry).with_bytes(|bytes| digest.mix(bytes)),
};

/// A string to be read.
pub type StringRef<'a> = Scalar<'a>;

/// A string longer than this lies behind a pointer: a new deadline or name must not copy it.
const INLINE_BYTES_MAX: usize = 4096;
/// A string longer than this that is changed in place gets room to grow.
const GROWS_IN_PLACE_FROM: usize = 512;
/// Longer strings are freed in the background: returning their memory to the operating system takes long.
const FREED_AT_ONCE_BYTES_MAX: usize = 1024 * 1024;
/// The longest string that a change may produce. Commands have their own limit, which can be set.
const BYTES_MAX: usize = u32::MAX as usize;

/// Bit of an image: the string was changed in place.
const MARKED: u8 = 2;

/// A change of a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The key holds this string with this deadline; its old value, of any type, is replaced.
    Set { value: Scalar<'a>, deadline: Option<u64> },
    /// The string (empty if the key is missing) has these bytes at `offset`; a gap is filled with zeros.
    Write { offset: usize, bytes: &'a [u8] },
    /// The string (empty if the key is missing) has these bytes instead of `removed` bytes from `offset` on; the rest
    /// moves. A gap is filled with zeros; nothing is removed beyond the end.
    Splice { offset: usize, removed: usize, bytes: &'a [u8] },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const SET: u8 = 1;
    pub(super) const WRITE: u8 = 2;
    pub(super) const SPLICE: u8 = 3;
}

impl<'a> Change<'a> {
    #[inline]
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Change::Set { value, deadline } => {
                out.push(tag::SET);
                crate::encoding::put_deadline(deadline, out);
                put_scalar(value, 0, out);
            }
            Change::Write { offset, bytes } => {
                out.push(tag::WRITE);
                put_number(offset as u64, out);
                put_bytes(bytes, out);
            }
            Change::Splice { offset, removed, bytes } => {
                out.push(tag::SPLICE);
                put_number(offset as u64, out);
                put_number(removed as u64, out);
                put_bytes(bytes, out);
            }
        }
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag::SET => {
                let deadline = reader.deadline()?;
                Ok(Change::Set { value: reader.scalar(0)?.0, deadline })
            }
            tag::WRITE => {
                let (offset, bytes) = (reader.count()?, reader.bytes()?);
                match offset.checked_add(bytes.len()) {
                    Some(end) if end <= BYTES_MAX => Ok(Change::Write { offset, bytes }),
                    _ => Err(BadEffect::OutOfRange),
                }
            }
            tag::SPLICE => {
                let (offset, removed, bytes) = (reader.count()?, reader.count()?, reader.bytes()?);
                // The resulting string must not exceed the limit either.
                match offset.checked_add(bytes.len()) {
                    Some(end) if end <= BYTES_MAX => Ok(Change::Splice { offset, removed, bytes }),
                    _ => Err(BadEffect::OutOfRange),
                }
            }
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    pub(super) fn event(&self) -> &'static str {
        match self {
            Change::Set { .. } => "set",
            Change::Write { .. } => "setrange",
            Change::Splice { .. } => "pfadd",
        }
    }

    /// Applies the change to an entry that holds a string.
    #[inline]
    pub(super) fn apply(&self, entry: &mut Entry) -> Applied {
        match *self {
            Change::Set { value, deadline } => {
                let replaced_deadline = entry.deadline();
                // The value first: giving a deadline to the old one would move it for nothing.
                match value {
                    Scalar::Number(number) => entry.set_body(NUMBER, &number.to_le_bytes()),
                    Scalar::Bytes(bytes) if bytes.len() > INLINE_BYTES_MAX => {
                        entry.set_object(Box::new(Object::Bytes(bytes.to_vec())));
                    }
                    Scalar::Bytes(bytes) => entry.set_body(TEXT, bytes),
                }
                entry.set_deadline(deadline);
                entry.set_marked(false);
                Applied::counted(value.len()).replacing(replaced_deadline)
            }
            Change::Write { offset, bytes } => Applied::counted(write(entry, offset, bytes)),
            Change::Splice { offset, removed, bytes } => Applied::counted(splice(entry, offset, removed, bytes)),
        }
    }

    /// The new entry that the change creates for a missing key.
    #[inline]
    pub(super) fn create(&self, name: &[u8]) -> (Entry, Applied) {
        match *self {
            Change::Set { value, deadline } => (entry_of(name, value, deadline), Applied::counted(value.len())),
            Change::Write { offset, bytes } => {
                let mut entry = Entry::new(name, TEXT, &[], None);
                let len = write(&mut entry, offset, bytes);
                (entry, Applied::counted(len))
            }
            Change::Splice { offset, bytes, .. } => {
                let mut entry = Entry::new(name, TEXT, &[], None);
                let len = splice(&mut entry, offset, 0, bytes);
                (entry, Applied::counted(len))
            }
        }
    }
}

/// Prepares an entry to be changed in place, for a string of `bytes` bytes.
fn prepare(entry: &mut Entry, bytes: usize) {
    if entry.kind() == NUMBER {
        let text = scalar(entry).bytes().into_owned();
        entry.set_body(TEXT, &text);
    }
    if entry.kind() == TEXT && bytes.max(entry.body().len()) > GROWS_IN_PLACE_FROM {
        let text = entry.body().to_vec();
        entry.set_object(Box::new(Object::Bytes(text)));
    }
    entry.set_marked(true);
}

/// Replaces some bytes of a string by others and returns its new length.
fn splice(entry: &mut Entry, offset: usize, removed: usize, bytes: &[u8]) -> usize {
    let len = scalar(entry).len();
    prepare(entry, len + bytes.len());
    if len < offset {
        write(entry, offset, &[]);
    }
    let end = offset.saturating_add(removed).min(len.max(offset));
    match entry.object_mut() {
        Some(Object::Bytes(text)) => {
            text.splice(offset..end, bytes.iter().copied());
            text.len()
        }
        Some(_) => panic!("a change of a string was recorded for another type"),
        None => {
            entry.open_gap(offset..end, bytes.len()).copy_from_slice(bytes);
            entry.body().len()
        }
    }
}

/// Writes bytes into a string and returns its new length.
fn write(entry: &mut Entry, offset: usize, bytes: &[u8]) -> usize {
    let end = offset + bytes.len();
    prepare(entry, end);
    match entry.object_mut() {
        Some(Object::Bytes(text)) => {
            if text.len() < end {
                text.resize(end, 0);
            }
            text[offset..end].copy_from_slice(bytes);
            text.len()
        }
        Some(_) => panic!("a change of a string was recorded for another type"),
        None => {
            let len = entry.body().len();
            if len < end {
                entry.open_gap(len..len, end - len);
            }
            entry.body_mut()[offset..end].copy_from_slice(bytes);
            entry.body().len()
        }
    }
}

/// The string in an entry.
#[inline]
pub fn scalar(entry: &Entry) -> Scalar<'_> {
    match entry.kind() {
        Kind::OBJECT => match entry.object() {
            Some(Object::Bytes(bytes)) => Scalar::Bytes(bytes),
            _ => panic!("the entry holds no string"),
        },
        _ => inline_scalar(entry),
    }
}

/// The longest string that Redis embeds in its object.
const EMBEDDED_BYTES_MAX: usize = 44;

/// The encoding that Redis would have. A marked string was changed in place; Redis then no longer embeds it.
fn encoding(entry: &Entry) -> &'static str {
    match scalar(entry) {
        Scalar::Number(_) => "int",
        Scalar::Bytes(bytes) if bytes.len() <= EMBEDDED_BYTES_MAX && !entry.is_marked() => "embstr",
        Scalar::Bytes(_) => "raw",
    }
}

fn bytes_of(object: &Object) -> Option<&Vec<u8>> {
    match object {
        Object::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn entry_of(name: &[u8], value: Scalar<'_>, deadline: Option<u64>) -> Entry {
    match value {
        Scalar::Number(number) => Entry::new(name, NUMBER, &number.to_le_bytes(), deadline),
        Scalar::Bytes(bytes) if bytes.len() > INLINE_BYTES_MAX => {
            Entry::with_object(name, Box::new(Object::Bytes(bytes.to_vec())), deadline)
        }
        Scalar::Bytes(bytes) => Entry::new(name, TEXT, bytes, deadline),
    }
}

fn write_image(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    put_scalar(scalar(entry), if entry.is_marked() { MARKED } else { 0 }, out);
}

/// Appends the image of a string.
pub fn image_of(value: &[u8], out: &mut Vec<u8>) {
    put_scalar(Scalar::of(value), 0, out);
}
