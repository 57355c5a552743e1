//! Reads records for a page however large they are: whole ones as far as the page has room, of the others only the fields that
//! it cannot do without. Refuses to know what they are read for.

use super::shown::BYTES_MAX;
use crate::reply::Reply;
use crate::talk::{Trouble, request};
use crate::visit::Visit;

/// The most fields of a record that is read whole.
pub(super) const FIELDS_MAX: i64 = 500;
/// The most bytes of all records that are read whole. Well below those of a page: fields that are needed are read in any case.
const BYTES_OF_ALL_MAX: f64 = (2 << 20) as f64;

/// What was read of a record.
pub(super) struct Peek {
    /// A map; null if the record is gone.
    pub(super) fields: Reply,
    /// All of its fields were read.
    pub(super) is_whole: bool,
    /// The fields that are needed were read, or are not there.
    pub(super) has_needed: bool,
}

impl Peek {
    pub(super) fn is_gone(&self) -> bool {
        self.fields.is_null()
    }
}

/// Reads records, in the order of their keys. One that takes more memory than `bytes_max` is not read whole.
pub(super) async fn read(
    visit: &mut Visit<'_>,
    keys: &[Vec<u8>],
    needed: &[&[u8]],
    bytes_max: usize,
) -> Result<Vec<Peek>, Trouble> {
    let mut names = needed.to_vec();
    names.sort_unstable();
    names.dedup();
    let asked: Vec<Vec<u8>> = keys.iter().map(|key| request(&[b"HLEN", key])).collect();
    let lens = visit.ask_all(&asked).await?;
    // The memory of a record with many fields is not asked for: all of them would be looked at.
    let may_be_small = |len: &Reply| len.integer().is_some_and(|len| (1..=FIELDS_MAX).contains(&len));
    let asked: Vec<Vec<u8>> = keys
        .iter()
        .zip(&lens)
        .filter(|(_, len)| may_be_small(len))
        .map(|(key, _)| request(&[b"MEMORY", b"USAGE", key, b"SAMPLES", b"0"]))
        .collect();
    let mut sizes = visit.ask_all(&asked).await?.into_iter();
    let mut left = BYTES_OF_ALL_MAX;
    let mut wholes = Vec::new();
    for len in &lens {
        let size = if may_be_small(len) { sizes.next().and_then(|size| size.number()) } else { None };
        let is_whole = size.is_some_and(|size| size <= bytes_max as f64 && size <= left);
        left -= size.filter(|_| is_whole).unwrap_or(0.0);
        wholes.push(is_whole);
    }
    let lengths = lengths(visit, keys, &wholes, &names).await?;
    let is_short = |record: usize, name: usize| {
        lengths[record].get(name).is_some_and(|len| len.integer().is_some_and(|len| len <= BYTES_MAX as i64))
    };
    let short = |record: usize| -> Vec<&[u8]> {
        (0..names.len()).filter(|name| is_short(record, *name)).map(|name| names[name]).collect()
    };
    let asked: Vec<Vec<u8>> = (0..keys.len())
        .filter(|record| wholes[*record] || !short(*record).is_empty())
        .map(|record| match wholes[record] {
            true => request(&[b"HGETALL", &keys[record]]),
            false => request(&[&[&b"HMGET"[..], &keys[record]], short(record).as_slice()].concat()),
        })
        .collect();
    let mut replies = visit.ask_all(&asked).await?.into_iter();
    let mut peeks = Vec::new();
    for (record, len) in lens.iter().enumerate() {
        let names_read = short(record);
        let fields = match (len.integer(), wholes[record]) {
            (None | Some(0), _) => Reply::Null,
            (_, true) => replies.next().filter(|fields| !fields.items().is_empty()).unwrap_or(Reply::Null),
            (_, false) if names_read.is_empty() => Reply::Map(Vec::new()),
            (_, false) => pairs(&names_read, &replies.next().unwrap_or(Reply::Null)),
        };
        peeks.push(Peek {
            fields,
            is_whole: wholes[record],
            has_needed: wholes[record] || names_read.len() == names.len(),
        });
    }
    Ok(peeks)
}

/// The lengths of the fields that are needed, of each record that is not read whole. A field that is not there has none.
async fn lengths(
    visit: &mut Visit<'_>,
    keys: &[Vec<u8>],
    wholes: &[bool],
    names: &[&[u8]],
) -> Result<Vec<Vec<Reply>>, Trouble> {
    let large = keys.iter().zip(wholes).filter(|(_, is_whole)| !**is_whole);
    let asked: Vec<Vec<u8>> =
        large.flat_map(|(key, _)| names.iter().map(move |name| request(&[b"HSTRLEN", key, name]))).collect();
    let replies = visit.ask_all(&asked).await?;
    let mut replies = replies.chunks(names.len().max(1));
    let of = |is_whole: &bool| if *is_whole { None } else { replies.next() };
    Ok(wholes.iter().map(of).map(|lengths| lengths.unwrap_or_default().to_vec()).collect())
}

/// A map of the fields that are there.
fn pairs(names: &[&[u8]], values: &Reply) -> Reply {
    let there = names.iter().zip(values.items()).filter(|(_, value)| !value.is_null());
    Reply::Map(there.flat_map(|(name, value)| [Reply::Bulk(name.to_vec()), value.clone()]).collect())
}

/// The names of the fields of each record, for those that do not have too many to be removed one by one.
pub(super) async fn names(visit: &mut Visit<'_>, keys: &[&[u8]]) -> Result<Vec<Option<Reply>>, Trouble> {
    let asked: Vec<Vec<u8>> = keys.iter().map(|key| request(&[b"HLEN", key])).collect();
    let lens = visit.ask_all(&asked).await?;
    let is_small = |len: &Reply| len.integer().is_some_and(|len| (1..=FIELDS_MAX).contains(&len));
    let asked: Vec<Vec<u8>> =
        keys.iter().zip(&lens).filter(|(_, len)| is_small(len)).map(|(key, _)| request(&[b"HKEYS", key])).collect();
    let mut found = visit.ask_all(&asked).await?.into_iter();
    let of = |len: &Reply| if is_small(len) { found.next() } else { None };
    Ok(lens.iter().map(of).map(|names| names.filter(|names| !names.items().is_empty())).collect())
}
