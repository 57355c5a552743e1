//! What requests of our own commands reach besides the keys that they name, for access control. Knows their arguments;
//! refuses to know who asks.

use execution::args::is_word;
use execution::command::{Access, Searched};
use execution::engine::Engine;
use numbers::parse_i64;
use resp::Request;

fn prefix(prefix: &[u8], access: Access) -> Searched {
    Searched::Prefix { prefix: prefix.to_vec(), access }
}

fn key(name: &[u8], access: Access) -> Searched {
    Searched::Key { name: name.to_vec(), access }
}

/// The argument behind a word, from an argument on.
fn behind<'a>(request: Request<'a>, word: &str, from: usize) -> Option<&'a [u8]> {
    (from..request.len().saturating_sub(1)).find(|at| is_word(request.arg(*at), word)).map(|at| request.arg(at + 1))
}

/// An index, and all records that it is over.
fn index(engine: &Engine, name: &[u8], of_records: Access) -> Vec<Searched> {
    let prefixes = engine.indexes.prefixes_of(name);
    let records = prefixes.into_iter().map(|prefix| Searched::Prefix { prefix, access: of_records });
    [key(name, Access::Read)].into_iter().chain(records).collect()
}

/// `CLAIM n index …`
pub(crate) fn claim(engine: &Engine, request: Request<'_>) -> Vec<Searched> {
    let count = parse_i64(request.arg(1)).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let names = (2..request.len().min(count.saturating_add(2))).map(|at| request.arg(at));
    names.flat_map(|name| index(engine, name, Access::Change)).collect()
}

/// `SWEEP index … [PUBLISH channel]`
pub(crate) fn sweep(engine: &Engine, request: Request<'_>) -> Vec<Searched> {
    let mut reached = index(engine, request.arg(1), Access::Change);
    // The word may also be a value: then a right too many is asked for.
    reached.extend(behind(request, "PUBLISH", 2).map(|channel| Searched::Channel(channel.to_vec())));
    reached
}

/// `IDX.RANGE name …`, `IDX.INFO name`
pub(crate) fn reads_index(engine: &Engine, request: Request<'_>) -> Vec<Searched> {
    index(engine, request.arg(1), Access::Read)
}

/// `IDX.DROP name`
pub(crate) fn drops_index(engine: &Engine, request: Request<'_>) -> Vec<Searched> {
    let prefixes = engine.indexes.prefixes_of(request.arg(1)).into_iter();
    let records = prefixes.map(|prefix| Searched::Prefix { prefix, access: Access::Write });
    [key(request.arg(1), Access::Write)].into_iter().chain(records).collect()
}

/// `IDX.CREATE name PREFIX n prefix …`
pub(crate) fn creates_index(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    let count = parse_i64(request.arg(3)).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let prefixes = (4..request.len().min(count.saturating_add(4))).map(|at| prefix(request.arg(at), Access::Write));
    [key(request.arg(1), Access::Write)].into_iter().chain(prefixes).collect()
}

/// `HFIND prefix …`
pub(crate) fn finds(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    vec![prefix(request.arg(1), Access::Read)]
}

/// `CELL.LIST [PREFIX p] …`, `RUN.LIST [PREFIX p] …`
pub(crate) fn lists(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    vec![prefix(behind(request, "PREFIX", 1).unwrap_or_default(), Access::Read)]
}

/// `CELL.FORK from-prefix to-prefix`
pub(crate) fn forks(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    vec![prefix(request.arg(1), Access::Read), prefix(request.arg(2), Access::Write)]
}

/// `CELL.DROP prefix`
pub(crate) fn drops(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    vec![prefix(request.arg(1), Access::Write)]
}

/// `REG.SNAPSHOT [PREFIX p | KEYS n key …] [POSITION bytes] [STORE key]`
pub(crate) fn snapshots(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    let (mut reached, mut at, mut is_all) = (Vec::new(), 1, true);
    while at < request.len() {
        let next = (at + 1 < request.len()).then(|| request.arg(at + 1));
        match next {
            Some(p) if is_word(request.arg(at), "PREFIX") => {
                reached.push(prefix(p, Access::Read));
                (is_all, at) = (false, at + 2);
            }
            Some(count) if is_word(request.arg(at), "KEYS") => {
                let count = parse_i64(count).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
                let end = request.len().min((at + 2).saturating_add(count));
                reached.extend((at + 2..end).map(|at| key(request.arg(at), Access::Read)));
                (is_all, at) = (false, end);
            }
            Some(_) if is_word(request.arg(at), "POSITION") => at += 2,
            Some(name) if is_word(request.arg(at), "STORE") => {
                reached.push(key(name, Access::Write));
                at += 2;
            }
            _ => at += 1,
        }
    }
    if is_all {
        reached.push(prefix(b"", Access::Read));
    }
    reached
}

/// `REG.RESTORE blob|FROM key [REPLACE | MERGE] [INTO prefix]`: without INTO, any register may be set.
pub(crate) fn restores(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    let is_kept = is_word(request.arg(1), "FROM") && request.len() > 2;
    let from = is_kept.then(|| key(request.arg(2), Access::Read));
    let into = behind(request, "INTO", if is_kept { 3 } else { 2 }).unwrap_or_default();
    from.into_iter().chain([prefix(into, Access::Write)]).collect()
}

/// SESSION.LIST, SESSION.HASRETRY: all sessions.
pub(crate) fn reads_sessions(_: &Engine, _: Request<'_>) -> Vec<Searched> {
    vec![prefix(b"", Access::Read)]
}

/// SESSION.RETRY: the requests of all sessions.
pub(crate) fn retries(_: &Engine, _: Request<'_>) -> Vec<Searched> {
    vec![prefix(b"", Access::Change)]
}

/// SESSION.OPEN without ID: the server chooses a name that begins so.
pub(crate) fn opens(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    match behind(request, "ID", 1) {
        Some(_) => Vec::new(),
        None => vec![prefix(b"session:", Access::Write)],
    }
}

/// `SORT key [BY pattern] [GET pattern …]`: keys whose names follow from the elements.
pub(crate) fn sorts(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    let by = behind(request, "BY", 2).filter(|pattern| pattern.contains(&b'*'));
    let gets = (2..request.len().saturating_sub(1)).filter(|at| is_word(request.arg(*at), "GET"));
    let mut gets = gets.map(|at| request.arg(at + 1)).filter(|pattern| *pattern != b"#");
    let by = by.map(|_| Searched::Anything("BY option of SORT denied due to insufficient ACL permissions"));
    let get = gets.next().map(|_| Searched::Anything("GET option of SORT denied due to insufficient ACL permissions"));
    by.into_iter().chain(get).collect()
}

/// `CLIENT TRACKING … BCAST [PREFIX prefix …]`: the names of all keys of the prefixes that change.
pub(crate) fn tracks(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    if !(2..request.len()).any(|at| is_word(request.arg(at), "BCAST")) {
        return Vec::new();
    }
    let named = (2..request.len().saturating_sub(1)).filter(|at| is_word(request.arg(*at), "PREFIX"));
    let prefixes: Vec<Searched> = named.map(|at| prefix(request.arg(at + 1), Access::Read)).collect();
    if prefixes.is_empty() { vec![prefix(b"", Access::Read)] } else { prefixes }
}
