//! Skips unsupported data, to the byte, without holding any of it. Knows how every type of value is framed; refuses to
//! look inside a string.

use super::{FileError, Trouble};
use crate::input::Input;
use crate::rdb::BadPayload;
use crate::rdb::reader::{Length, Reader, Source};
use crate::values::{Kind, MODULE, OLD_MODULE};
use std::io::Read;

/// Parts of module data; each begins with its type.
mod module_part {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const STRING: u64 = 5;
}

impl<R: Read> Reader<Input<R>> {
    /// Skips a value of an unsupported type.
    pub(super) fn skip_value(&mut self, kind: u8) -> Result<Kind, FileError> {
        match kind {
            OLD_MODULE => Err(self.source.error(Trouble::OldModule)),
            MODULE => self.skip_module().map(Kind::Module),
            _ => Err(self.source.error(Trouble::Type(kind))),
        }
    }

    pub(super) fn skip_string(&mut self) -> Result<(), FileError> {
        let len = match self.length_or_special()? {
            Length::Plain(len) => len,
            Length::Special(0) => 1,
            Length::Special(1) => 2,
            Length::Special(2) => 4,
            Length::Special(3) => {
                let packed_len = self.length()?;
                self.length()?; // what it would decompress to
                packed_len
            }
            Length::Special(_) => return Err(self.source.refusal(BadPayload::Format)),
        };
        self.source.skip(len)
    }

    pub(super) fn skip_strings(&mut self, count: u32) -> Result<(), FileError> {
        (0..count).try_for_each(|_| self.skip_string())
    }

    pub(super) fn skip_lengths(&mut self, count: u32) -> Result<(), FileError> {
        (0..count).try_for_each(|_| self.length().map(|_| ()))
    }

    /// Skips a counted sequence. Each element takes at least a byte, so a false count reaches the end of the file.
    fn skip_counted(&mut self, mut skip: impl FnMut(&mut Self) -> Result<(), FileError>) -> Result<(), FileError> {
        let count = self.length()?;
        (0..count).try_for_each(|_| skip(self))
    }

    /// Skips a module's value and returns the name of its type.
    fn skip_module(&mut self) -> Result<String, FileError> {
        let name = module_name(self.length()?);
        self.skip_module_parts()?;
        Ok(name)
    }

    pub(super) fn skip_module_aux(&mut self) -> Result<String, FileError> {
        let name = module_name(self.length()?);
        // Whether the module reads it before or after the keys.
        if self.length()? != module_part::UNSIGNED {
            return Err(self.source.refusal(BadPayload::Format));
        }
        self.length()?;
        self.skip_module_parts()?;
        Ok(name)
    }

    /// Skips module data of a key: for each class its four bytes and what the module wrote.
    pub(super) fn skip_key_meta(&mut self) -> Result<(), FileError> {
        self.skip_counted(|reader| {
            reader.source.skip(4)?;
            reader.skip_module_parts()
        })
    }

    /// Skips the name of a migration and its ranges of slots.
    pub(super) fn skip_slot_import(&mut self) -> Result<(), FileError> {
        self.skip_string()?;
        self.skip_counted(|reader| reader.skip_lengths(2))
    }

    fn skip_module_parts(&mut self) -> Result<(), FileError> {
        loop {
            match self.length()? {
                module_part::END => return Ok(()),
                module_part::SIGNED | module_part::UNSIGNED => self.skip_lengths(1)?,
                module_part::FLOAT => self.source.skip(4)?,
                module_part::DOUBLE => self.source.skip(8)?,
                module_part::STRING => self.skip_string()?,
                _ => return Err(self.source.refusal(BadPayload::Format)),
            }
        }
    }

    pub(super) fn skip_function_candidate(&mut self) -> Result<(), FileError> {
        self.skip_strings(2)?; // name and engine
        if self.length()? != 0 {
            self.skip_string()?; // description
        }
        self.skip_string()
    }
}

/// The nine letters in a module type's number; its last ten bits are the module's own version.
fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).rev().map(|place| char::from(LETTERS[(id >> (10 + 6 * place)) as usize & 63])).collect()
}
