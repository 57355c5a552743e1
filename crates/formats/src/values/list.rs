//! Lists in Redis's RDB encoding: strings in a row, ziplists, and the nodes of quicklists. Knows how elements are
//! encoded; refuses to know how they are stored.

use super::{Emit, Texts, in_chunks};
use crate::packed::{Malformed, listpack, ziplist};
use crate::rdb::BadPayload;
use crate::rdb::reader::{Elements, Reader, Source};
use crate::rdb::writer::{LISTPACK_BYTES_MAX, VERSION_PLAIN, Writer};

/// The type bytes of lists.
pub(crate) mod kind {
    pub(crate) const LIST: u8 = 1;
    pub(crate) const LIST_ZIPLIST: u8 = 10;
    /// Nodes that are ziplists: Redis 3.2 to 6.2.
    pub(crate) const LIST_QUICKLIST: u8 = 14;
    /// Nodes that are listpacks or single elements: since Redis 7.0.
    pub(crate) const LIST_QUICKLIST_2: u8 = 18;
}

/// All type bytes of lists.
pub(crate) const KINDS: [u8; 4] = [kind::LIST, kind::LIST_ZIPLIST, kind::LIST_QUICKLIST, kind::LIST_QUICKLIST_2];

/// The kinds of a node of the newest form.
mod node {
    /// One element.
    pub(super) const PLAIN: u64 = 1;
    /// A listpack.
    pub(super) const PACKED: u64 = 2;
}

/// A node has no more bytes than this, by Redis's own estimate, unless it has one element: `list-max-listpack-size -2`.
const NODE_BYTES_MAX: usize = 8192;
/// The bytes that Redis assumes an element adds to a node beside its own.
const ELEMENT_OVERHEAD: usize = 8;

impl<'a, S: Source<'a>> Reader<S> {
    /// Reads the elements of a list of one of the kinds above.
    pub(crate) fn list(&mut self, kind: u8) -> Result<Texts, S::Error> {
        let mut elements = Texts::default();
        if kind == kind::LIST_ZIPLIST {
            self.node(kind, &mut elements)?;
            return Ok(elements);
        }
        let count = self.length()?;
        for _ in 0..count {
            match kind {
                kind::LIST => elements.push(&self.string()?),
                _ => self.node(kind, &mut elements)?,
            }
        }
        Ok(elements)
    }

    fn node(&mut self, kind: u8, elements: &mut Texts) -> Result<(), S::Error> {
        let container = match kind {
            kind::LIST_QUICKLIST_2 => self.length()?,
            _ => node::PACKED,
        };
        let bytes = self.string()?;
        match container {
            node::PLAIN => {
                elements.push(&bytes);
                return Ok(());
            }
            node::PACKED => {}
            _ => return Err(self.source.refusal(BadPayload::Format)),
        }
        let added = match kind {
            kind::LIST_QUICKLIST_2 => listpack::elements(&bytes).and_then(|found| add_all(found, elements)),
            _ => ziplist::elements(&bytes).and_then(|found| add_all(found, elements)),
        };
        added.map_err(|why| self.source.refusal(why.into()))
    }
}

fn add_all<'a>(found: impl Iterator<Item = Elements<'a>>, elements: &mut Texts) -> Result<(), Malformed> {
    for element in found {
        element?.with_text(|text| elements.push(text));
    }
    Ok(())
}

/// Writes the elements as Redis 7.0 has them in memory after they were pushed to the right one by one. Later versions
/// restore it too.
pub(crate) fn encode_list(elements: &Texts) -> Vec<u8> {
    let mut writer = Writer::with_capacity(kind::LIST_QUICKLIST_2, elements.bytes());
    let count_at = writer.bytes.len();
    let mut count = 0;
    let mut node = listpack::Writer::with_capacity(elements.bytes().min(NODE_BYTES_MAX));
    let mut end = |node: &mut listpack::Writer, writer: &mut Writer| {
        if !node.is_empty() {
            writer.length(node::PACKED);
            writer.string(node.close());
            node.clear();
            count += 1;
        }
    };
    let mut plain = 0;
    for element in elements.iter() {
        if element.len() >= LISTPACK_BYTES_MAX {
            end(&mut node, &mut writer);
            writer.length(node::PLAIN);
            writer.string(element);
            plain += 1;
            continue;
        }
        // Its length counts the end byte only after it is closed.
        if !node.is_empty() && node.len() + 1 + element.len() + ELEMENT_OVERHEAD > NODE_BYTES_MAX {
            end(&mut node, &mut writer);
        }
        node.push(element);
    }
    end(&mut node, &mut writer);
    writer.insert_length(count_at, count + plain);
    writer.finish(VERSION_PLAIN)
}

/// Emits the commands that create this list at a key that does not exist.
pub(crate) fn commands<E>(name: &[u8], elements: &Texts, emit: Emit<'_, E>) -> Result<(), E> {
    in_chunks(&[b"RPUSH", name], elements.iter(), |element, args| args.push(element), emit)
}

#[cfg(test)]
mod tests;
