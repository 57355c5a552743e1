//! The remaining steps of a restore, as the journal keeps them until they are done. Knows the bytes; refuses to know
//! how a step is applied. docs/effect-format.md describes the format.

use super::checkpoint::Saved;
use crate::encoding::{BadEffect, Reader, put_bytes, put_deadline};

/// The first byte of a step. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const SET: u8 = 1;
    pub(super) const MERGE: u8 = 2;
    pub(super) const DROP: u8 = 3;
}

/// The step for one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Set the register to this one.
    Set(Saved<'a>),
    /// Set the register to this one, unless it has the same version or a newer one.
    Merge(Saved<'a>),
    /// Remove the register of this name.
    Drop(&'a [u8]),
}

impl<'a> Step<'a> {
    /// The name of the register.
    pub fn name(&self) -> &'a [u8] {
        match self {
            Step::Set(saved) | Step::Merge(saved) => saved.name,
            Step::Drop(name) => name,
        }
    }

    /// Appends the step.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put_saved = |tag: u8, saved: &Saved<'_>| {
            out.push(tag);
            put_bytes(saved.name, out);
            put_deadline(saved.deadline, out);
            put_bytes(saved.image, out);
        };
        match self {
            Step::Set(saved) => put_saved(tag::SET, saved),
            Step::Merge(saved) => put_saved(tag::MERGE, saved),
            Step::Drop(name) => {
                out.push(tag::DROP);
                put_bytes(name, out);
            }
        }
    }

    fn read(
        reader: &mut Reader<'a>,
        saved: fn(&mut Reader<'a>) -> Result<Saved<'a>, BadEffect>,
    ) -> Result<Step<'a>, BadEffect> {
        match reader.byte()? {
            tag::SET => Ok(Step::Set(saved(reader)?)),
            tag::MERGE => Ok(Step::Merge(saved(reader)?)),
            tag::DROP => Ok(Step::Drop(reader.bytes()?)),
            _ => Err(BadEffect::OutOfRange),
        }
    }
}

/// Checks steps in untrusted bytes, all of them.
pub fn check(bytes: &[u8]) -> Result<(), BadEffect> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        Step::read(&mut reader, Saved::check)?;
    }
    Ok(())
}

/// An iterator over checked steps.
pub struct Steps<'a> {
    reader: Reader<'a>,
}

impl<'a> Steps<'a> {
    pub fn of(bytes: &'a [u8]) -> Steps<'a> {
        Steps { reader: Reader::new(bytes) }
    }

    /// How many bytes are left.
    pub fn bytes_left(&self) -> usize {
        self.reader.rest().len()
    }
}

impl<'a> Iterator for Steps<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        match self.reader.is_empty() {
            true => None,
            false => Some(Step::read(&mut self.reader, Saved::read).expect("steps are checked before they are read")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::register::Version;

    #[test]
    fn steps_are_read_as_they_were_written_and_damage_is_refused() {
        let version = Some(Version::of_round(9));
        let saved = Saved { name: b"a", deadline: Some(77), image: &[0, 1, 0, 9, 1, b'v'], version };
        let waits = Saved { name: b"", deadline: None, image: &[0, 2, 9], version: None };
        let steps = [Step::Set(saved), Step::Drop(b"gone"), Step::Merge(waits), Step::Merge(saved)];
        let mut bytes = Vec::new();
        steps.iter().for_each(|step| step.encode(&mut bytes));
        check(&bytes).unwrap();
        assert_eq!(Steps::of(&bytes).collect::<Vec<_>>(), steps);
        let ends: Vec<usize> = {
            let mut left = Steps::of(&bytes);
            std::iter::from_fn(|| left.next().map(|_| bytes.len() - left.bytes_left())).collect()
        };
        assert_eq!(ends.len(), steps.len());
        for end in 1..bytes.len() {
            assert_eq!(check(&bytes[..end]).is_ok(), ends.contains(&end), "cut at {end}");
        }
        assert!(check(&[]).is_ok());
        assert!(check(&[0]).is_err() && check(&[4, 0]).is_err(), "unknown steps");
        assert!(check(&[1, 1, b'a', 0, 2, 0, 0]).is_err(), "an image of nothing");
        assert!(check(&[1, 1, b'a', 0, 4, 0, 2, 9, 9]).is_err(), "an image with something behind it");
    }
}
