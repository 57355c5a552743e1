//! Reads the bytes of REG.SNAPSHOT, as docs/register-snapshots.md shows them: the only way to see all of a register, with its
//! buffer and its seal. The checksum is left to the server, which checks it at every restore.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Deadline, Entry, Value};
use crate::registers::{Checkpoint, Current, Operation, Register};

/// What every blob begins with.
pub(crate) const MAGIC: &[u8] = b"HFREGS\0\x02";

const CHECKSUM_BYTES: usize = 4;

/// The registers of a blob; `None` when its bytes are no such thing.
pub(crate) fn read(blob: &[u8]) -> Option<Checkpoint> {
    let end = blob.len().checked_sub(CHECKSUM_BYTES)?;
    let mut reader = Reader { rest: blob[..end].strip_prefix(MAGIC)? };
    let prefix = match reader.byte()? {
        0 => Vec::new(),
        1 => reader.bytes()?,
        2 => {
            let names = reader.number()?;
            (0..names).try_for_each(|_| reader.bytes().map(drop))?;
            Vec::new()
        }
        _ => return None,
    };
    let position = if reader.byte()? == 1 { reader.bytes()? } else { Vec::new() };
    let mut registers = BTreeMap::new();
    while reader.byte()? == 1 {
        let (name, deadline) = (reader.bytes()?, reader.number()?.checked_sub(1));
        let image = reader.bytes()?;
        let mut image = Reader { rest: &image };
        let value = Value::Register(image.register()?);
        let deadline = deadline.map(|ms| Deadline::at(ms as i64));
        image.rest.is_empty().then_some(())?;
        registers.insert(name, Arc::new(Entry { value, deadline }));
    }
    let count = reader.number()?;
    (count == registers.len() as u64 && reader.rest.is_empty()).then_some(Checkpoint { prefix, position, registers })
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Seven bits a byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let zigzag = self.number()?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let len = self.number()? as usize;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes.to_vec())
    }

    fn register(&mut self) -> Option<Register> {
        let (form, parts) = (self.byte()?, self.byte()?);
        // No client here sends versions that wait for a seal. Bit 3 only says how ordered ones are taken: one by one.
        if form != 0 || parts & 0b11_0000 != 0 {
            return None;
        }
        let mut register = Register::default();
        if parts & 1 != 0 {
            register.current = Some(self.current()?);
        }
        if parts & 2 != 0 {
            register.sealed = self.number()?;
        }
        if parts & 4 != 0 {
            let (count, mut version) = (self.number()?, 0);
            for _ in 0..count {
                version += self.number()?;
                let operation = self.operation()?;
                register.buffer.insert(version, operation);
            }
        }
        Some(register)
    }

    fn current(&mut self) -> Option<Current> {
        let flags = self.byte()?;
        let epoch = if flags & 1 != 0 { self.number()? } else { 0 };
        let round = self.number()?;
        let added = if flags & 2 != 0 { Some(self.signed()?) } else { None };
        let value = self.bytes()?;
        let by = added.map_or_else(|| Operation::Put(value.clone()), Operation::Add);
        Some(Current { version: (epoch, round), by, value })
    }

    fn operation(&mut self) -> Option<Operation> {
        match self.byte()? {
            0 => Some(Operation::Put(self.bytes()?)),
            1 => Some(Operation::Add(self.signed()?)),
            _ => None,
        }
    }
}
