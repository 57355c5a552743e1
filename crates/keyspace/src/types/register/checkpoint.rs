//! Many registers as one blob, with the input position that they belong to: what REG.SNAPSHOT writes and REG.RESTORE
//! reads. Knows the bytes; refuses to know where registers come from and go to. docs/register-snapshots.md describes
//! the format.

use super::change::current;
use super::{TYPE, Version, image, register};
use crate::encoding::{BadEffect, Reader, put_bytes, put_deadline, put_number};
use crate::types::{Entry, Shapes};
use std::fmt::{self, Display, Formatter};

/// The beginning of a blob. The last byte is the version of the format. Version 1 has registers that do not say how they
/// take ordered versions; it is still read.
const MAGIC: [u8; 8] = *b"HFREGS\0\x02";
const OLDEST_VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;

mod scope {
    pub(super) const EVERYTHING: u8 = 0;
    pub(super) const PREFIX: u8 = 1;
    pub(super) const KEYS: u8 = 2;
}

/// The byte before each register, and after the last.
mod mark {
    pub(super) const END: u8 = 0;
    pub(super) const REGISTER: u8 = 1;
}

/// Which registers of a database a blob covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Everything,
    Prefix(Vec<u8>),
    /// Sorted, each once.
    Keys(Vec<Vec<u8>>),
}

impl Scope {
    /// True when the scope covers a register of this name.
    pub fn covers(&self, name: &[u8]) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Prefix(prefix) => name.starts_with(prefix),
            Scope::Keys(names) => names.binary_search_by(|known| known.as_slice().cmp(name)).is_ok(),
        }
    }
}

/// Registers in encoded form.
#[derive(Default)]
pub struct Registers {
    bytes: Vec<u8>,
    count: u64,
}

impl Registers {
    /// Adds the register of an entry.
    pub fn add(&mut self, entry: &Entry) {
        self.bytes.push(mark::REGISTER);
        put_bytes(entry.name(), &mut self.bytes);
        put_deadline(entry.deadline(), &mut self.bytes);
        let mut image = Vec::new();
        image::write(entry, &Shapes::default(), &mut image);
        put_bytes(&image, &mut self.bytes);
        self.count += 1;
    }

    /// How many they are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many bytes they take.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The most bytes of a blob in addition to its registers, scope and position.
pub const BESIDE_BYTES_MAX: usize = 64;

/// Writes one blob of registers that are in several parts.
pub fn written(scope: &Scope, position: Option<&[u8]>, parts: &[Registers]) -> Vec<u8> {
    let bytes: usize = parts.iter().map(Registers::len).sum();
    let mut out = Vec::with_capacity(bytes + position.map_or(0, <[u8]>::len) + 1024);
    out.extend_from_slice(&MAGIC);
    match scope {
        Scope::Everything => out.push(scope::EVERYTHING),
        Scope::Prefix(prefix) => {
            out.push(scope::PREFIX);
            put_bytes(prefix, &mut out);
        }
        Scope::Keys(names) => {
            out.push(scope::KEYS);
            put_number(names.len() as u64, &mut out);
            names.iter().for_each(|name| put_bytes(name, &mut out));
        }
    }
    match position {
        None => out.push(0),
        Some(position) => {
            out.push(1);
            put_bytes(position, &mut out);
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(&part.bytes));
    out.push(mark::END);
    put_number(parts.iter().map(Registers::count).sum(), &mut out);
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// A blob that was checked.
#[derive(Debug)]
pub struct Checkpoint<'a> {
    pub scope: Scope,
    pub position: Option<&'a [u8]>,
    /// How many registers it has.
    pub count: u64,
    /// The bytes of its registers.
    registers: &'a [u8],
}

/// One of its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved<'a> {
    pub name: &'a [u8],
    pub deadline: Option<u64>,
    /// The checked image of a register.
    pub image: &'a [u8],
    /// The newest version that was applied.
    pub version: Option<Version>,
}

/// Why bytes are not a valid blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCheckpoint {
    /// They do not begin as a blob does.
    NoSnapshot,
    /// A newer version may have written them.
    UnknownFormat(u8),
    /// They are damaged, or cut short.
    Damaged,
}

impl Display for BadCheckpoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            BadCheckpoint::NoSnapshot => {
                f.write_str("these bytes are no snapshot of registers: send what REG.SNAPSHOT has returned")
            }
            BadCheckpoint::UnknownFormat(version) => {
                write!(f, "the snapshot has format {version}: was it written by a newer version?")
            }
            BadCheckpoint::Damaged => {
                f.write_str("the snapshot is damaged or cut short: send it again, or an older one")
            }
        }
    }
}

impl From<BadEffect> for BadCheckpoint {
    fn from(_: BadEffect) -> BadCheckpoint {
        BadCheckpoint::Damaged
    }
}

impl<'a> Checkpoint<'a> {
    /// Reads and checks a whole blob of untrusted bytes.
    pub fn check(bytes: &'a [u8]) -> Result<Checkpoint<'a>, BadCheckpoint> {
        let [name @ .., newest] = &MAGIC;
        match bytes.split_at_checked(name.len()) {
            Some((begin, [version, ..])) if begin == name => {
                if !(OLDEST_VERSION..=*newest).contains(version) {
                    return Err(BadCheckpoint::UnknownFormat(*version));
                }
            }
            _ => return Err(BadCheckpoint::NoSnapshot),
        }
        let (checked, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(BadCheckpoint::Damaged)?;
        if checked.len() < MAGIC.len() || crc32c::crc32c(checked) != u32::from_le_bytes(*checksum) {
            return Err(BadCheckpoint::Damaged);
        }
        let mut reader = Reader::new(&checked[MAGIC.len()..]);
        let scope = match reader.byte()? {
            scope::EVERYTHING => Scope::Everything,
            scope::PREFIX => Scope::Prefix(reader.bytes()?.to_vec()),
            scope::KEYS => {
                let mut names = Vec::new();
                reader.names(&mut names)?;
                Scope::Keys(names.into_iter().map(<[u8]>::to_vec).collect())
            }
            _ => return Err(BadCheckpoint::Damaged),
        };
        if matches!(&scope, Scope::Keys(names) if !names.is_sorted_by(|a, b| a < b)) {
            return Err(BadCheckpoint::Damaged);
        }
        let position = match reader.byte()? {
            0 => None,
            1 => Some(reader.bytes()?),
            _ => return Err(BadCheckpoint::Damaged),
        };
        let (registers, mut count) = (reader.rest(), 0);
        loop {
            match reader.byte()? {
                mark::END => break,
                mark::REGISTER if scope.covers(Saved::check(&mut reader)?.name) => count += 1,
                _ => return Err(BadCheckpoint::Damaged),
            }
        }
        if reader.number()? != count || !reader.is_empty() {
            return Err(BadCheckpoint::Damaged);
        }
        Ok(Checkpoint { scope, position, count, registers })
    }

    /// Its registers, in no order. They are not collected: there may be millions.
    pub fn registers(&self) -> impl Iterator<Item = Saved<'a>> + use<'a> {
        let mut reader = Reader::new(self.registers);
        (0..self.count).map(move |_| {
            const CHECKED: &str = "the blob was checked";
            reader.byte().expect(CHECKED);
            Saved::read(&mut reader).expect(CHECKED)
        })
    }
}

impl<'a> Saved<'a> {
    /// Creates an entry with the register, outside of any database.
    pub fn entry(&self) -> Entry {
        image::read(self.name, Reader::new(self.image), &mut Shapes::default(), self.deadline)
    }

    /// Reads a register from untrusted bytes.
    pub(super) fn check(reader: &mut Reader<'a>) -> Result<Saved<'a>, BadEffect> {
        let saved = Saved::read(reader)?;
        let mut whole = Reader::new(saved.image);
        (TYPE.check_image)(&mut whole)?;
        if whole.is_empty() { Ok(saved) } else { Err(BadEffect::OutOfRange) }
    }

    /// Reads a register that was checked.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Saved<'a>, BadEffect> {
        let (name, deadline, image) = (reader.bytes()?, reader.deadline()?, reader.bytes()?);
        Ok(Saved { name, deadline, image, version: version_of(image)? })
    }
}

/// The newest version of an encoded register.
fn version_of(image: &[u8]) -> Result<Option<Version>, BadEffect> {
    let mut reader = Reader::new(image);
    reader.byte()?;
    match reader.byte()? & image::HAS_CURRENT {
        0 => Ok(None),
        _ => Ok(Some(current(&mut reader)?.version)),
    }
}

/// The newest version of the register in an entry.
pub fn version(entry: &Entry) -> Option<Version> {
    register(entry).current().map(|current| current.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::register::{Change, Current, Operation, Order};
    use test_random::Random;

    fn entry(name: &[u8], changes: &[Change<'_>], deadline: Option<u64>) -> Entry {
        let (mut entry, _) = changes[0].create(name).expect("it makes a register");
        for change in &changes[1..] {
            change.apply(&mut entry);
        }
        entry.set_deadline(deadline);
        entry
    }

    fn some_registers() -> Vec<Entry> {
        let set = |epoch, round, added, value| Change::Set(Current { version: Version { epoch, round }, added, value });
        let buffer = |version, order, value| Change::Buffer { version, order, operation: Operation::Put(value) };
        let put = |round, value| buffer(Version::of_round(round), Order::OneByOne, value);
        let later = |epoch, round, value| buffer(Version { epoch, round }, Order::UntilSealed, value);
        vec![
            entry(b"a/1", &[set(0, 5, None, b"v")], None),
            entry(b"a/2", &[set(7, 300, Some(-9), b"41"), set(7, 301, Some(1), b"42")], Some(1_763_172_000_000)),
            entry(b"a/3", &[put(4, b"x"), put(9, b"")], None),
            entry(b"a/4", &[Change::Seal { below: Version::of_round(40) }, put(41, &[7; 5_000])], Some(5)),
            entry(b"a/5", &[set(0, 0, None, &[1; 10_000])], None),
            entry(b"a/6", &[set(0, 5, None, b"v"), Change::Order(Order::OneByOne)], None),
            entry(b"a/7", &[later(2, 0, b"x"), later(2, 9, b""), later(3, 1, b"y")], Some(9)),
            entry(b"a/8", &[set(1, 5, None, b"v"), Change::Seal { below: Version { epoch: 4, round: 0 } }], None),
        ]
    }

    fn names() -> Vec<Vec<u8>> {
        some_registers().iter().map(|entry| entry.name().to_vec()).collect()
    }

    /// A blob as format 1 had it, byte by byte: a register with a version, one with a seal and a buffer.
    #[test]
    fn a_blob_of_the_first_format_is_read() {
        let mut old = b"HFREGS\0\x01\x01\x02a/\x01\x01p".to_vec();
        old.extend_from_slice(b"\x01\x03a/1\x00\x06\x00\x01\x00\x05\x01v");
        old.extend_from_slice(b"\x01\x03a/2\x00\x08\x00\x06\x28\x01\x29\x00\x01w");
        old.extend_from_slice(b"\x00\x02");
        let checksum = crc32c::crc32c(&old).to_le_bytes();
        old.extend_from_slice(&checksum);
        let checkpoint = Checkpoint::check(&old).unwrap();
        assert_eq!((checkpoint.position, checkpoint.count), (Some(&b"p"[..]), 2));
        let entries: Vec<Entry> = checkpoint.registers().map(|saved| saved.entry()).collect();
        let orders: Vec<Option<Order>> = entries.iter().map(|entry| register(entry).order()).collect();
        assert_eq!(orders, [None, Some(Order::OneByOne)]);
        assert_eq!(register(&entries[0]).current().map(|current| current.value), Some(&b"v"[..]));
        assert_eq!(register(&entries[1]).sealed(), Some(Version::of_round(40)));
        assert_eq!(register(&entries[1]).buffered(Version::of_round(41)), Some(Operation::Put(b"w")));
    }

    fn blob(scope: &Scope, position: Option<&[u8]>) -> Vec<u8> {
        let entries = some_registers();
        let mut parts = [Registers::default(), Registers::default(), Registers::default()];
        for (at, entry) in entries.iter().enumerate() {
            parts[at % 2].add(entry);
        }
        written(scope, position, &parts)
    }

    #[test]
    fn a_blob_holds_every_register_whole() {
        let mut names = names();
        names.push(b"b".to_vec());
        for scope in [Scope::Everything, Scope::Prefix(b"a/".to_vec()), Scope::Keys(names)] {
            for position in [None, Some(&b""[..]), Some(b"offset 7")] {
                let blob = blob(&scope, position);
                let checkpoint = Checkpoint::check(&blob).unwrap();
                assert_eq!((&checkpoint.scope, checkpoint.position), (&scope, position));
                let mut registers: Vec<Saved<'_>> = checkpoint.registers().collect();
                assert_eq!(checkpoint.count, 8);
                registers.sort_by_key(|saved| saved.name);
                assert_eq!(registers.len(), 8);
                for (saved, entry) in registers.iter().zip(some_registers()) {
                    let mut image = Vec::new();
                    image::write(&entry, &Shapes::default(), &mut image);
                    assert_eq!((saved.name, saved.deadline), (entry.name(), entry.deadline()));
                    assert_eq!((saved.image, saved.version), (&*image, version(&entry)));
                }
            }
        }
    }

    #[test]
    fn a_blob_that_is_damaged_or_cut_short_is_refused() {
        let good = blob(&Scope::Prefix(b"a/".to_vec()), Some(b"p"));
        for end in (0..64).chain((64..good.len()).step_by(97)).chain(good.len() - 8..good.len()) {
            assert!(Checkpoint::check(&good[..end]).is_err(), "cut at {end}");
        }
        for at in (0..64).chain((64..good.len()).step_by(53)).chain(good.len() - 8..good.len()) {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(Checkpoint::check(&bad).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(Checkpoint::check(&[&good[..], b"x"].concat()).is_err());
        let error = |bytes: &[u8]| Checkpoint::check(bytes).unwrap_err();
        assert_eq!(error(b""), BadCheckpoint::NoSnapshot);
        assert_eq!(error(b"some other string"), BadCheckpoint::NoSnapshot);
        assert_eq!(error(b"HFREGS\0\x03more"), BadCheckpoint::UnknownFormat(3));
        assert_eq!(error(b"HFREGS\0\0more"), BadCheckpoint::UnknownFormat(0));
        assert_eq!(error(b"HFREGS\0\x01"), BadCheckpoint::Damaged);
    }

    /// The checksum is right, and the contents are not.
    #[test]
    fn what_no_version_wrote_is_refused() {
        let with_checksum = |inside: &[u8]| {
            let begin = [&MAGIC, inside].concat();
            let checksum = crc32c::crc32c(&begin).to_le_bytes();
            [&begin[..], &checksum].concat()
        };
        assert!(Checkpoint::check(&with_checksum(&[0, 0, 0, 0])).is_ok());
        for inside in [
            &[3u8, 0, 0, 0][..],                               // an unknown scope
            &[2, 2, 1, b'b', 1, b'a', 0, 0, 0],                // keys that are not in order
            &[0, 2, 0, 0],                                     // an unknown kind of position
            &[0, 0, 2, 0],                                     // an unknown mark
            &[0, 0, 0, 1],                                     // another number of registers
            &[0, 0, 0, 0, 0],                                  // something behind the end
            &[0, 0, 1, 1, b'a', 0, 2, 0, 0, 0, 1],             // an image of nothing
            &[0, 0, 1, 1, b'a', 0, 4, 0, 2, 9, 9, 0, 1],       // an image with something behind it
            &[1, 1, b'x', 0, 1, 1, b'a', 0, 3, 0, 2, 9, 0, 1], // a register outside the scope
        ] {
            assert_eq!(Checkpoint::check(&with_checksum(inside)).unwrap_err(), BadCheckpoint::Damaged, "{inside:?}");
        }
        assert!(Checkpoint::check(&with_checksum(&[1, 1, b'a', 0, 1, 1, b'a', 0, 3, 0, 2, 9, 0, 1])).is_ok());
    }

    /// Bytes in the middle are changed, and the checksum is corrected: a forged blob. It is refused, or its registers
    /// can be read, and are written back unchanged.
    #[test]
    fn a_forged_blob_is_refused_or_read() {
        let mut random = Random::new();
        let keys = Scope::Keys(names());
        let (mut refused, mut read) = (0, 0);
        for round in 0..4_000 {
            let scope = [Scope::Everything, Scope::Prefix(b"a/".to_vec()), keys.clone()][round % 3].clone();
            let mut forged = blob(&scope, Some(b"p"));
            forged.truncate(forged.len() - CHECKSUM_BYTES);
            for _ in 0..random.below(3) + 1 {
                // Most bytes belong to long values; the others are at the beginning and the end.
                let end = if random.below(2) == 0 { 100 } else { forged.len() };
                let at = MAGIC.len() + random.below(end - MAGIC.len());
                let byte = random.below(256) as u8;
                match random.below(4) {
                    0 => forged[at] ^= 1 << (byte % 8),
                    1 => forged[at] = byte,
                    2 => forged.insert(at, byte),
                    _ => drop(forged.remove(at)),
                }
            }
            let checksum = crc32c::crc32c(&forged).to_le_bytes();
            forged.extend_from_slice(&checksum);
            let Ok(checkpoint) = Checkpoint::check(&forged) else {
                refused += 1;
                continue;
            };
            read += 1;
            assert_eq!(checkpoint.registers().count() as u64, checkpoint.count);
            for saved in checkpoint.registers() {
                let made = saved.entry();
                let mut again = Vec::new();
                image::write(&made, &Shapes::default(), &mut again);
                (TYPE.check_image)(&mut Reader::new(&again)).expect("what was read is whole");
                assert_eq!((made.name(), made.deadline(), version(&made)), (saved.name, saved.deadline, saved.version));
            }
        }
        assert!(refused > 100 && read > 100, "{refused} refused, {read} read");
    }
}
