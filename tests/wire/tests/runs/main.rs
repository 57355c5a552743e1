//! Commands of runs. Only Holdfast has them.

mod append;
mod constraints;
mod events;
mod followers;
mod keyspace;
mod list;
mod model;
mod races;
mod slices;
mod snapshot;
mod survival;
mod waits;

use wire::Reply;

/// What a map says under a name, in RESP2 and in RESP3; `None` where it says nothing.
#[track_caller]
fn find<'a>(map: &'a Reply, name: &str) -> Option<&'a Reply> {
    let is_it = |key: &Reply| *key == Reply::Bulk(name.as_bytes().to_vec());
    match map {
        Reply::Map(pairs) => pairs.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value),
        flat => flat.items().chunks(2).find(|pair| is_it(&pair[0])).map(|pair| &pair[1]),
    }
}

/// The same for a name that has to be there.
#[track_caller]
fn get<'a>(map: &'a Reply, name: &str) -> &'a Reply {
    find(map, name).unwrap_or_else(|| panic!("{} has no {name}", map.excerpt()))
}

/// The runSeq that a reply to RUN.APPEND tells.
#[track_caller]
fn run_seq(reply: &Reply) -> i64 {
    get(reply, "runSeq").integer()
}
