//! The bytes of a snapshot of state in the process. Knows their layout, and that damage is refused; refuses to know what
//! a register does.
//!
//! `HFMEM1`, then the position, the number of registers, and each with its key; then SHA-256 of all of it. Numbers are of
//! eight bytes, little endian; bytes have their length in front; what may be missing has 0 or 1 in front.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::register::{Current, Kind, Operation, Register, refused};
use crate::state_version::StateVersion;

const MAGIC: &[u8] = b"HFMEM1";
const DIGEST_BYTES: usize = 32;

/// Registers by their keys.
pub(crate) type Registers = BTreeMap<Vec<u8>, Register>;

pub(crate) fn write_snapshot(registers: &Registers, position: Option<&[u8]>) -> Vec<u8> {
    let mut out = Writer(MAGIC.to_vec());
    out.option(position, Writer::bytes);
    out.number(registers.len() as u64);
    for (key, register) in registers {
        out.bytes(key);
        out.option(register.current.as_ref(), |out, current| {
            out.version(current.version);
            out.operation(&current.operation);
            out.bytes(&current.value);
        });
        out.option(register.sealed, Writer::version);
        out.option(register.kind, |out, kind| out.number(u64::from(kind == Kind::Pairs)));
        out.number(register.buffer.len() as u64);
        for (version, operation) in &register.buffer {
            out.version(*version);
            out.operation(operation);
        }
    }
    let digest = Sha256::digest(&out.0);
    out.0.extend_from_slice(&digest);
    out.0
}

pub(crate) fn read_snapshot(snapshot: &[u8]) -> Result<(Registers, Option<Vec<u8>>), Error> {
    let content = snapshot.len().checked_sub(DIGEST_BYTES).map(|length| snapshot.split_at(length));
    let content = content.filter(|(content, digest)| Sha256::digest(content)[..] == **digest);
    let content = content.and_then(|(content, _)| content.strip_prefix(MAGIC));
    let read = content.and_then(|content| {
        let mut reader = Reader(content);
        let position = reader.option(Reader::bytes)?;
        let count = reader.number()?;
        let registers = (0..count).map(|_| Some((reader.bytes()?, reader.register()?))).collect::<Option<_>>()?;
        reader.0.is_empty().then_some((registers, position))
    });
    read.ok_or_else(|| refused("the snapshot is damaged, or is not one of state in the process"))
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn version(&mut self, version: StateVersion) {
        self.number(version.epoch);
        self.number(version.round);
    }

    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Put(value) => {
                self.number(0);
                self.bytes(value);
            }
            Operation::Add(number) => {
                self.number(1);
                self.number(number.cast_unsigned());
            }
        }
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// What is left to read. `None` says that it is not a snapshot.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn version(&mut self) -> Option<StateVersion> {
        Some(StateVersion { epoch: self.number()?, round: self.number()? })
    }

    fn operation(&mut self) -> Option<Operation> {
        match self.number()? {
            0 => Some(Operation::Put(self.bytes()?)),
            1 => Some(Operation::Add(self.number()?.cast_signed())),
            _ => None,
        }
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.number()? {
            0 => Some(None),
            _ => Some(Some(read(self)?)),
        }
    }

    fn register(&mut self) -> Option<Register> {
        let current = self.option(|reader| {
            Some(Current { version: reader.version()?, operation: reader.operation()?, value: reader.bytes()? })
        })?;
        let sealed = self.option(Reader::version)?;
        let kind = self.option(|reader| Some(if reader.number()? == 0 { Kind::Numbers } else { Kind::Pairs }))?;
        let count = self.number()?;
        let buffer = (0..count).map(|_| Some((self.version()?, self.operation()?))).collect::<Option<_>>()?;
        Some(Register { current, sealed, buffer, kind })
    }
}
