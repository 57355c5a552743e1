//! What requests reach besides the keys that they name, for access control. Knows their arguments; refuses to know who
//! asks.
//!
//! IMPORTANT: a word that names an option may also be a value, and come before the option itself. So every place where
//! it stands is taken for the option: a right too many is asked for then, never one too few.

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

/// The arguments behind a word, wherever it stands from an argument on.
fn behind<'a>(request: Request<'a>, word: &'static str, from: usize) -> impl Iterator<Item = &'a [u8]> {
    positions(request, word, from).map(move |at| request.arg(at + 1))
}

/// Where a word stands, from an argument on, with something behind it.
fn positions<'a>(request: Request<'a>, word: &'static str, from: usize) -> impl Iterator<Item = usize> + use<'a> {
    (from..request.len().saturating_sub(1)).filter(move |at| is_word(request.arg(*at), word))
}

/// The arguments that a number in front of them counts.
fn counted<'a>(request: Request<'a>, count_at: usize) -> impl Iterator<Item = &'a [u8]> {
    let count = parse_i64(request.arg(count_at)).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let first = count_at + 1;
    (first..request.len().min(first.saturating_add(count))).map(move |at| request.arg(at))
}

/// An index, and all records that it is over.
fn index(engine: &Engine, name: &[u8], of_records: Access) -> Vec<Searched> {
    let prefixes = engine.indexes.prefixes_of(name);
    let records = prefixes.into_iter().map(|prefix| Searched::Prefix { prefix, access: of_records });
    [key(name, Access::Read)].into_iter().chain(records).collect()
}

/// `CLAIM n index …`
pub(crate) fn claim(engine: &Engine, request: Request<'_>) -> Vec<Searched> {
    counted(request, 1).flat_map(|name| index(engine, name, Access::Change)).collect()
}

/// `SWEEP index … [PUBLISH channel]`
pub(crate) fn sweep(engine: &Engine, request: Request<'_>) -> Vec<Searched> {
    let mut reached = index(engine, request.arg(1), Access::Change);
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

/// `IDX.CREATE name [IFABSENT] … PREFIX n prefix …`
pub(crate) fn creates_index(engine: &Engine, request: Request<'_>) -> Vec<Searched> {
    let named = positions(request, "PREFIX", 2).flat_map(|at| counted(request, at + 1));
    let prefixes = named.map(|named| prefix(named, Access::Write));
    // An error tells the definition of the index that is there.
    let told = match positions(request, "IFABSENT", 2).next() {
        Some(_) => engine.indexes.prefixes_of(request.arg(1)),
        None => Vec::new(),
    };
    let told = told.into_iter().map(|prefix| Searched::Prefix { prefix, access: Access::Read });
    [key(request.arg(1), Access::Write)].into_iter().chain(prefixes).chain(told).collect()
}

/// `HFIND prefix …`
pub(crate) fn finds(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    vec![prefix(request.arg(1), Access::Read)]
}

/// `CELL.LIST [PREFIX p] …`, `RUN.LIST [PREFIX p] …`
pub(crate) fn lists(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    or_all(behind(request, "PREFIX", 1).map(|named| prefix(named, Access::Read)).collect(), Access::Read)
}

/// All keys, if no prefix is named.
fn or_all(prefixes: Vec<Searched>, access: Access) -> Vec<Searched> {
    if prefixes.is_empty() { vec![prefix(b"", access)] } else { prefixes }
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
            Some(_) if is_word(request.arg(at), "KEYS") => {
                let before = reached.len();
                reached.extend(counted(request, at + 1).map(|name| key(name, Access::Read)));
                (is_all, at) = (false, at + 2 + reached.len() - before);
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
    let into = behind(request, "INTO", if is_kept { 3 } else { 2 }).map(|named| prefix(named, Access::Write));
    from.into_iter().chain(or_all(into.collect(), Access::Write)).collect()
}

/// SESSION.LIST, SESSION.HASRETRY: all sessions.
pub(crate) fn reads_sessions(_: &Engine, _: Request<'_>) -> Vec<Searched> {
    vec![prefix(b"", Access::Read)]
}

/// SESSION.RETRY: the requests of all sessions.
pub(crate) fn retries(_: &Engine, _: Request<'_>) -> Vec<Searched> {
    vec![prefix(b"", Access::Change)]
}

/// `SESSION.OPEN [ID sid] …`: without ID the server chooses a name that begins with `session:`. A capability may be called
/// ID, so that is asked for in any case unless ID comes first.
pub(crate) fn opens(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    let named = behind(request, "ID", 1).map(|sid| key(sid, Access::Write));
    let may_be_chosen = request.len() < 3 || !is_word(request.arg(1), "ID");
    named.chain(may_be_chosen.then(|| prefix(b"session:", Access::Write))).collect()
}

/// `SORT key [BY pattern] [GET pattern …]`: keys whose names follow from the elements.
pub(crate) fn sorts(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    let by = behind(request, "BY", 2).find(|pattern| pattern.contains(&b'*'));
    let get = behind(request, "GET", 2).find(|pattern| *pattern != b"#");
    let by = by.map(|_| Searched::Anything("BY option of SORT denied due to insufficient ACL permissions."));
    let get = get.map(|_| Searched::Anything("GET option of SORT denied due to insufficient ACL permissions."));
    by.into_iter().chain(get).collect()
}

/// `CLIENT TRACKING … BCAST [PREFIX prefix …]`: the names of all keys of the prefixes that change.
pub(crate) fn tracks(_: &Engine, request: Request<'_>) -> Vec<Searched> {
    if !(2..request.len()).any(|at| is_word(request.arg(at), "BCAST")) {
        return Vec::new();
    }
    or_all(behind(request, "PREFIX", 2).map(|named| prefix(named, Access::Read)).collect(), Access::Read)
}
