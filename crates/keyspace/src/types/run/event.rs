//! One event of a run, as bytes. Knows its fields and how they are packed; refuses to know its number, its time and
//! what it means for the run.
//!
//! ```text
//! number   bit 0: the key is packed, 1: the id is packed, 2: the type is a known one,
//!          3..: the optional fields that follow
//! key      32 bytes if it is packed: it was 64 lower-case hexadecimal digits; else bytes
//! id       16 bytes if it is packed: it was a UUID in its usual form; else bytes
//! type     the number of a known type, a byte; else bytes
//! fields   bytes each, in the order of `EventField`; attributes are names and values, bytes each
//! data     the rest
//! ```
//! Values are packed whenever possible: two events have the same key exactly if the bytes are the same.

use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::storage::NameHash;

const PACKED_KEY: u64 = 1 << 0;
const PACKED_ID: u64 = 1 << 1;
const KNOWN_TYPE: u64 = 1 << 2;
const FIELDS_SHIFT: usize = 3;

const KEY_DIGITS: usize = 64;
const UUID_TEXT: usize = 36;
/// The positions of hyphens in a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The optional fields of an event, in addition to key, id, type and data. IMPORTANT: append only; journals on disk
/// contain these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventField {
    Step,
    EngineAttempt,
    LogicalAttempt,
    EmittedAt,
    PlanVersion,
    Adapter,
    EngineRunRef,
    Signal,
    Parent,
    /// Names and values that mean nothing to the server, as [`put_attributes`] encodes them.
    Attributes,
}

/// The number of optional fields.
pub const EVENT_FIELDS: usize = 10;

/// Appends attributes, as [`Event::attributes`] reads them.
pub fn put_attributes<'a>(attributes: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    for (name, value) in attributes {
        put_bytes(name, out);
        put_bytes(value, out);
    }
}

/// The types of events that change a snapshot. IMPORTANT: append only; journals on disk hold these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum KnownType {
    RunStarted,
    RunResumed,
    RunPaused,
    RunCompleted,
    RunFailed,
    RunCancelled,
    StepStarted,
    StepRetried,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepCorrected,
}

/// In the order of their numbers.
const KNOWN_TYPES: [(&str, KnownType); 12] = [
    ("RunStarted", KnownType::RunStarted),
    ("RunResumed", KnownType::RunResumed),
    ("RunPaused", KnownType::RunPaused),
    ("RunCompleted", KnownType::RunCompleted),
    ("RunFailed", KnownType::RunFailed),
    ("RunCancelled", KnownType::RunCancelled),
    ("StepStarted", KnownType::StepStarted),
    ("StepRetried", KnownType::StepRetried),
    ("StepCompleted", KnownType::StepCompleted),
    ("StepFailed", KnownType::StepFailed),
    ("StepSkipped", KnownType::StepSkipped),
    ("StepCorrected", KnownType::StepCorrected),
];

impl KnownType {
    fn of_name(name: &[u8]) -> Option<KnownType> {
        // All known types begin like this, and most others do not.
        if !matches!(name.first(), Some(b'R' | b'S')) {
            return None;
        }
        KNOWN_TYPES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, known)| *known)
    }
}

/// An event to be written.
#[derive(Clone, Copy)]
pub struct NewEvent<'a> {
    pub key: PackedKey<'a>,
    pub id: EventId<'a>,
    pub event_type: &'a [u8],
    pub fields: [Option<&'a [u8]>; EVENT_FIELDS],
    pub data: &'a [u8],
}

impl NewEvent<'_> {
    /// An upper bound of its encoded length.
    pub fn bytes_max(&self) -> usize {
        const LEN_MAX: usize = 10;
        let fields: usize = self.fields.iter().flatten().map(|field| field.len() + LEN_MAX).sum();
        let (key, id) = (self.key.stored().len(), self.id.stored().len());
        key + id + self.event_type.len() + self.data.len() + fields + 4 * LEN_MAX
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let known = KnownType::of_name(self.event_type);
        let present = self.fields.iter().enumerate().filter(|(_, field)| field.is_some());
        let fields: u64 = present.map(|(at, _)| 1 << (FIELDS_SHIFT + at)).sum();
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        put_number(
            flag(self.key.is_packed(), PACKED_KEY)
                | flag(matches!(self.id, EventId::Uuid(_)), PACKED_ID)
                | flag(known.is_some(), KNOWN_TYPE)
                | fields,
            out,
        );
        match self.key {
            PackedKey::Digits(bytes) => out.extend_from_slice(&bytes),
            PackedKey::Bytes(bytes) => put_bytes(bytes, out),
        }
        match self.id {
            EventId::Uuid(bytes) => out.extend_from_slice(&bytes),
            EventId::Bytes(bytes) => put_bytes(bytes, out),
        }
        match known {
            Some(known) => out.push(known as u8),
            None => put_bytes(self.event_type, out),
        }
        self.fields.iter().flatten().for_each(|field| put_bytes(field, out));
        out.extend_from_slice(self.data);
    }
}

/// A key in stored form, to be searched for.
#[derive(Clone, Copy)]
pub enum PackedKey<'a> {
    Digits([u8; KEY_DIGITS / 2]),
    Bytes(&'a [u8]),
}

impl<'a> PackedKey<'a> {
    pub fn of(key: &'a [u8]) -> PackedKey<'a> {
        match key.len() == KEY_DIGITS {
            true => from_hex(key).map_or(PackedKey::Bytes(key), PackedKey::Digits),
            false => PackedKey::Bytes(key),
        }
    }

    fn is_packed(&self) -> bool {
        matches!(self, PackedKey::Digits(_))
    }

    fn stored(&self) -> &[u8] {
        match self {
            PackedKey::Digits(bytes) => bytes,
            PackedKey::Bytes(bytes) => bytes,
        }
    }

    /// The hash for the table of keys.
    #[inline]
    pub(super) fn hash(&self) -> u32 {
        NameHash::of(self.stored()).position()
    }
}

/// The id of an event in stored form.
#[derive(Clone, Copy)]
pub enum EventId<'a> {
    Uuid([u8; 16]),
    Bytes(&'a [u8]),
}

impl<'a> EventId<'a> {
    pub fn of(id: &'a [u8]) -> EventId<'a> {
        packed_uuid(id).map_or(EventId::Bytes(id), EventId::Uuid)
    }

    fn stored(&self) -> &[u8] {
        match self {
            EventId::Uuid(bytes) => bytes,
            EventId::Bytes(bytes) => bytes,
        }
    }

    pub fn text(&self) -> Text<'a> {
        match self {
            EventId::Uuid(uuid) => Text::Uuid(uuid_text(*uuid)),
            EventId::Bytes(bytes) => Text::Bytes(bytes),
        }
    }
}

/// A readable event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The whole encoded event.
    pub bytes: &'a [u8],
    flags: u64,
    key: &'a [u8],
    id: &'a [u8],
    event_type: &'a [u8],
    fields: [Option<&'a [u8]>; EVENT_FIELDS],
    pub data: &'a [u8],
}

impl<'a> Event<'a> {
    /// Reads an event that was written here.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Event<'a> {
        Event::parse(bytes).expect("a run holds whole events")
    }

    /// Reads an event from untrusted bytes. Only the output of [`NewEvent::encode`] is accepted.
    pub(super) fn check(bytes: &'a [u8]) -> Result<Event<'a>, BadEffect> {
        let event = Event::parse(bytes)?;
        let is_packed = |flag| event.flags & flag != 0;
        let is_known = event.event_type.first().is_some_and(|number| usize::from(*number) < KNOWN_TYPES.len());
        let could_be = |flag, could: bool| !is_packed(flag) && could;
        let mut attributes = Reader::new(event.field(EventField::Attributes).unwrap_or_default());
        while !attributes.is_empty() {
            attributes.bytes()?;
            attributes.bytes()?;
        }
        if event.flags >> (FIELDS_SHIFT + EVENT_FIELDS) != 0
            || event.key.is_empty()
            || is_packed(KNOWN_TYPE) && !is_known
            || could_be(PACKED_KEY, PackedKey::of(event.key).is_packed())
            || could_be(PACKED_ID, packed_uuid(event.id).is_some())
            || could_be(KNOWN_TYPE, KnownType::of_name(event.event_type).is_some())
        {
            return Err(BadEffect::OutOfRange);
        }
        Ok(event)
    }

    #[inline]
    fn parse(bytes: &'a [u8]) -> Result<Event<'a>, BadEffect> {
        let mut reader = Reader::new(bytes);
        let flags = reader.number()?;
        let key = match flags & PACKED_KEY {
            0 => reader.bytes()?,
            _ => reader.slice(KEY_DIGITS / 2)?,
        };
        let id = match flags & PACKED_ID {
            0 => reader.bytes()?,
            _ => reader.slice(16)?,
        };
        let event_type = match flags & KNOWN_TYPE {
            0 => reader.bytes()?,
            _ => reader.slice(1)?,
        };
        let mut fields = [None; EVENT_FIELDS];
        let mut present = flags >> FIELDS_SHIFT & ((1 << EVENT_FIELDS) - 1);
        while present != 0 {
            fields[present.trailing_zeros() as usize] = Some(reader.bytes()?);
            present &= present - 1;
        }
        Ok(Event { bytes, flags, key, id, event_type, fields, data: reader.rest() })
    }

    /// The hash for the table of keys.
    #[inline]
    pub(super) fn key_hash(&self) -> u32 {
        NameHash::of(self.key).position()
    }

    /// True when it has this key.
    #[inline]
    pub fn has_key(&self, key: &PackedKey<'_>) -> bool {
        (self.flags & PACKED_KEY != 0) == key.is_packed() && self.key == key.stored()
    }

    /// True when both have the same key.
    pub(super) fn has_key_of(&self, other: &Event<'_>) -> bool {
        (self.flags ^ other.flags) & PACKED_KEY == 0 && self.key == other.key
    }

    /// Its idempotency key.
    pub fn key(&self) -> Text<'a> {
        match self.flags & PACKED_KEY {
            0 => Text::Bytes(self.key),
            _ => {
                let mut digits = [0; KEY_DIGITS];
                to_hex(self.key, &mut digits);
                Text::Digits(digits)
            }
        }
    }

    pub fn id(&self) -> Text<'a> {
        match self.flags & PACKED_ID {
            0 => Text::Bytes(self.id),
            _ => Text::Uuid(uuid_text(self.id.try_into().expect("a packed id has 16 bytes"))),
        }
    }

    /// Its type, if it is one that changes the snapshot.
    #[inline]
    pub fn known_type(&self) -> Option<KnownType> {
        match self.flags & KNOWN_TYPE {
            0 => None,
            _ => KNOWN_TYPES.get(usize::from(self.event_type[0])).map(|(_, known)| *known),
        }
    }

    /// The name of its type.
    #[inline]
    pub fn type_name(&self) -> &'a [u8] {
        match self.known_type() {
            Some(known) => KNOWN_TYPES[known as usize].0.as_bytes(),
            None => self.event_type,
        }
    }

    #[inline]
    pub fn field(&self, field: EventField) -> Option<&'a [u8]> {
        self.fields[field as usize]
    }

    /// Its attributes, in the order in which they were given; `None` when none were.
    pub fn attributes(&self) -> Option<Vec<(&'a [u8], &'a [u8])>> {
        const WHOLE: &str = "an event holds whole attributes";
        let mut reader = Reader::new(self.field(EventField::Attributes)?);
        let mut attributes = Vec::new();
        while !reader.is_empty() {
            attributes.push((reader.bytes().expect(WHOLE), reader.bytes().expect(WHOLE)));
        }
        Some(attributes)
    }
}

/// A text that was stored packed, or unchanged.
pub enum Text<'a> {
    Bytes(&'a [u8]),
    Digits([u8; KEY_DIGITS]),
    Uuid([u8; UUID_TEXT]),
}

impl Text<'_> {
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Text::Bytes(bytes) => bytes,
            Text::Digits(digits) => digits,
            Text::Uuid(text) => text,
        }
    }
}

/// Packs a UUID in the form of [`uuid_text`].
fn packed_uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != UUID_TEXT || HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut digits = [0; 32];
    let mut to = 0;
    for (at, byte) in text.iter().enumerate() {
        if !HYPHENS.contains(&at) {
            digits[to] = *byte;
            to += 1;
        }
    }
    from_hex(&digits)
}

/// A UUID in its usual form: lower case, with hyphens.
pub fn uuid_text(uuid: [u8; 16]) -> [u8; UUID_TEXT] {
    let mut digits = [0; 32];
    to_hex(&uuid, &mut digits);
    let mut text = [b'-'; UUID_TEXT];
    let mut from = 0;
    for (at, byte) in text.iter_mut().enumerate() {
        if !HYPHENS.contains(&at) {
            *byte = digits[from];
            from += 1;
        }
    }
    text
}

/// Decodes lower-case hexadecimal digits; `None` when one of them is something else.
fn from_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let (mut bytes, mut seen) = ([0; N], 0);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (HEX_VALUES[usize::from(pair[0])], HEX_VALUES[usize::from(pair[1])]);
        seen |= high | low;
        *byte = high << 4 | low & 0x0f;
    }
    (seen < 0x10).then_some(bytes)
}

/// The value of a lower-case hexadecimal digit; 16 or more for any other byte.
static HEX_VALUES: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        values[HEX_DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes bytes as lower-case hexadecimal digits.
fn to_hex(bytes: &[u8], digits: &mut [u8]) {
    for (byte, pair) in bytes.iter().zip(digits.chunks_exact_mut(2)) {
        pair[0] = HEX_DIGITS[usize::from(byte >> 4)];
        pair[1] = HEX_DIGITS[usize::from(byte & 15)];
    }
}
