//! Skips unsupported data, to the byte, without holding any of it. Knows how every type of value is framed; refuses to
//! look inside a string.

use super::{FileError, Trouble};
use crate::input::Input;
use crate::rdb::BadPayload;
use crate::rdb::reader::{Length, Reader, Source};
use crate::values::{Frame, Kind, frame, type_name};
use std::io::Read;

/// What a module wrote, each part with its type in front.
mod module_part {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const STRING: u64 = 5;
}

const STREAM_ID_BYTES: u64 = 16;
const TIME_BYTES: u64 = 8;

impl<R: Read> Reader<Input<R>> {
    /// A value of a type that is not kept here.
    pub(super) fn skip_value(&mut self, kind: u8) -> Result<Kind, FileError> {
        let name = type_name(kind).ok_or_else(|| self.source.error(Trouble::Type(kind)))?;
        match frame(kind) {
            Some(Frame::Stream) => self.skip_stream(match kind {
                15 => Stream::First,
                19 => Stream::WithCounts,
                _ => Stream::WithActiveTimes,
            })?,
            Some(Frame::Module) if kind == 6 => return Err(self.source.error(Trouble::OldModule)),
            Some(Frame::Module) => return self.skip_module().map(Kind::Module),
            None => return Err(self.source.error(Trouble::Type(kind))),
        }
        Ok(Kind::Type(name))
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

    /// A count, and that many of something. Each takes at least a byte, so a false count meets the end of the file.
    fn skip_counted(&mut self, mut skip: impl FnMut(&mut Self) -> Result<(), FileError>) -> Result<(), FileError> {
        let count = self.length()?;
        (0..count).try_for_each(|_| skip(self))
    }

    fn skip_stream(&mut self, form: Stream) -> Result<(), FileError> {
        // Nodes: the first ID, and a listpack.
        self.skip_counted(|reader| reader.skip_strings(2))?;
        // Length and last ID; then the first ID, the last one deleted, and how many were ever added.
        self.skip_lengths(3)?;
        if form >= Stream::WithCounts {
            self.skip_lengths(5)?;
        }
        self.skip_counted(|reader| reader.skip_group(form))
    }

    fn skip_group(&mut self, form: Stream) -> Result<(), FileError> {
        self.skip_string()?; // name
        self.skip_lengths(2)?; // last ID delivered
        if form >= Stream::WithCounts {
            self.length()?; // how many were read
        }
        // Pending entries (delivered, not acknowledged): ID, time of delivery, and number of deliveries.
        self.skip_counted(|reader| {
            reader.source.skip(STREAM_ID_BYTES + TIME_BYTES)?;
            reader.length().map(|_| ())
        })?;
        self.skip_counted(|reader| {
            reader.skip_string()?; // a consumer's name, and when it was last seen and active
            reader.source.skip(TIME_BYTES)?;
            if form >= Stream::WithActiveTimes {
                reader.source.skip(TIME_BYTES)?;
            }
            reader.skip_counted(|reader| reader.source.skip(STREAM_ID_BYTES))
        })
    }

    /// A module's value; gives back the name of its type.
    fn skip_module(&mut self) -> Result<String, FileError> {
        let name = module_name(self.length()?);
        self.skip_module_parts()?;
        Ok(name)
    }

    pub(super) fn skip_module_aux(&mut self) -> Result<String, FileError> {
        let name = module_name(self.length()?);
        // When the module reads it: before or after the keys.
        if self.length()? != module_part::UNSIGNED {
            return Err(self.source.refusal(BadPayload::Format));
        }
        self.length()?;
        self.skip_module_parts()?;
        Ok(name)
    }

    /// For each class of such data: which class, as four bytes, and what a module wrote.
    pub(super) fn skip_key_meta(&mut self) -> Result<(), FileError> {
        self.skip_counted(|reader| {
            reader.source.skip(4)?;
            reader.skip_module_parts()
        })
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

/// The layouts with which versions of Redis have saved streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    /// Redis 5.
    First,
    /// Redis 7.0.
    WithCounts,
    /// Redis 7.2.
    WithActiveTimes,
}

/// The nine letters in a module type's number; its last ten bits are the module's own version.
fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).rev().map(|place| char::from(LETTERS[(id >> (10 + 6 * place)) as usize & 63])).collect()
}
