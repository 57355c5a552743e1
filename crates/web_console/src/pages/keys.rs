//! The keys of a database, by pattern and type, some at a time.

use super::value::{choice, input, key_link, lifetime, next};
use crate::html::{Html, Short, html};
use crate::layout::{empty, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::{Trouble, request};
use crate::visit::{Outcome, Visit};

/// Keys on a page, about.
const KEYS: usize = 200;

pub(super) const TYPES: &[(&str, &str)] = &[
    ("", "any type"),
    ("string", "string"),
    ("hash", "hash"),
    ("list", "list"),
    ("set", "set"),
    ("zset", "sorted set"),
    ("stream", "stream"),
    ("cell", "cell"),
    ("run", "run"),
    ("register", "register"),
    ("session", "session"),
];

const DATABASES: &[(&str, &str)] = &[
    ("0", "0"),
    ("1", "1"),
    ("2", "2"),
    ("3", "3"),
    ("4", "4"),
    ("5", "5"),
    ("6", "6"),
    ("7", "7"),
    ("8", "8"),
    ("9", "9"),
    ("10", "10"),
    ("11", "11"),
    ("12", "12"),
    ("13", "13"),
    ("14", "14"),
    ("15", "15"),
];

pub(super) async fn list(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let pattern = if query.typed("pattern").is_empty() { b"*" } else { query.typed("pattern") };
    let kind = query.get("type");
    let (keys, cursor) = match walk(visit, pattern, kind, query.get("cursor")).await? {
        Ok(found) => found,
        Err(refused) => return visit.page("Keys", refused),
    };
    let asked: Vec<Vec<u8>> =
        keys.iter().flat_map(|key| [request(&[b"TYPE", key]), request(&[b"PTTL", key])]).collect();
    let replies = visit.ask_all(&asked).await?;
    let mut rows = Html::new();
    for (key, about) in keys.iter().zip(replies.chunks_exact(2)) {
        rows.put(
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            &[
                &key_link(visit, key),
                &told(&about[0], |kind| kind.text()),
                &told(&about[1], |left| lifetime(left.integer())),
            ],
        );
    }
    let db = visit.db.to_string();
    let filters = html(
        "<form class=\"search\" method=\"get\" action=\"{}\">{}{}{}<button>Show</button></form>",
        &[
            &Page::Keys.path(),
            &input("Pattern", "pattern", pattern, "user:*"),
            &choice("of", "type", kind, TYPES),
            &choice("in database", "db", db.as_bytes(), DATABASES),
        ],
    );
    let list = match rows.is_empty() {
        true if cursor != b"0" => empty("No key is like that so far.", "There are more keys to look at: go on."),
        true => {
            empty("No key is like that.", "Patterns are those of SCAN: user:*, or * for all. Is it another database?")
        }
        false => table(&["Key", "Type", "Lifetime"], &rows),
    };
    let more = (cursor != b"0")
        .then(|| visit.link(Page::Keys).with("pattern", pattern).with_any("type", kind).with("cursor", &cursor));
    visit.page("Keys", html("{}{}{}", &[&filters, &list, &next(more)]))
}

/// What a command tells, or why it does not.
fn told(reply: &Reply, tell: fn(&Reply) -> String) -> Html {
    match reply.error() {
        Some(error) if error.starts_with(b"NOPERM") => html("<span class=\"odd\">not permitted</span>", &[]),
        Some(error) => html("{}", &[&Short(error)]),
        None => html("{}", &[&tell(reply)]),
    }
}

/// Looks for keys until there is a page of them, or no more time. The keys and the cursor to go on; the refusal if the user may
/// not run SCAN.
pub(super) async fn walk(
    visit: &mut Visit<'_>,
    pattern: &[u8],
    kind: &[u8],
    from: &[u8],
) -> Result<Result<(Vec<Vec<u8>>, Vec<u8>), Html>, Trouble> {
    let mut cursor = if from.is_empty() { b"0".to_vec() } else { from.to_vec() };
    let mut keys = Vec::new();
    // More at a time while nothing is found.
    let mut count = KEYS;
    loop {
        let count_text = count.to_string();
        let mut words: Vec<&[u8]> = vec![b"SCAN", &cursor, b"MATCH", pattern, b"COUNT", count_text.as_bytes()];
        if !kind.is_empty() {
            words.extend([&b"TYPE"[..], kind]);
        }
        let reply = visit.ask(&words).await?;
        if let Some(refused) = refused(&reply) {
            return Ok(Err(refused));
        }
        keys.extend(reply.at(1).items().iter().map(|key| key.bytes().into_owned()));
        cursor = reply.at(0).bytes().into_owned();
        if cursor == b"0" || keys.len() >= KEYS || !visit.has_time() {
            return Ok(Ok((keys, cursor)));
        }
        count = if keys.is_empty() { 10_000 } else { KEYS };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_not_taken_for_a_key_that_is_gone() {
        let shown = |reply: &Reply| told(reply, |left| lifetime(left.integer())).as_str().to_owned();
        assert_eq!(shown(&Reply::Integer(-2)), "gone");
        assert_eq!(shown(&Reply::Integer(-1)), "never expires");
        assert!(shown(&Reply::Error(b"NOPERM no".to_vec())).contains("not permitted"));
        assert!(shown(&Reply::Error(b"BUSY a script".to_vec())).contains("BUSY"));
    }
}
