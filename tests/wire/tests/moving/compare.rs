//! Two servers side by side, key by key, by commands that read. Knows every type of Redis's.

use std::collections::BTreeMap;

use wire::{Connection, Reply};

/// What a server holds: for each database and key its type, its value in a fixed order, and its deadline.
pub(crate) fn state(connection: &mut Connection) -> BTreeMap<(usize, Vec<u8>), String> {
    let mut state = BTreeMap::new();
    for db in 0..16 {
        assert_eq!(connection.run(&format!("SELECT {db}")).to_string(), "+OK");
        let Reply::Array(names) = connection.run("KEYS *") else { panic!("KEYS gives names") };
        for name in names {
            let Reply::Bulk(name) = name else { panic!("a name is a bulk string") };
            if name.starts_with(b"holdfast:import") {
                continue;
            }
            let value = value(connection, &name);
            // Expired since it was listed.
            if let Some(value) = value {
                state.insert((db, name), value);
            }
        }
    }
    assert_eq!(connection.run("SELECT 0").to_string(), "+OK");
    state
}

fn value(connection: &mut Connection, name: &[u8]) -> Option<String> {
    let mut ask = |before: &[&[u8]], after: &[&[u8]]| {
        let words: Vec<&[u8]> = before.iter().copied().chain([name]).chain(after.iter().copied()).collect();
        connection.run_args(&words)
    };
    let kind = ask(&[b"TYPE"], &[]).to_string();
    let value = match kind.as_str() {
        "+string" => ask(&[b"GET"], &[]).to_string(),
        "+list" => ask(&[b"LRANGE"], &[b"0", b"-1"]).to_string(),
        "+set" => sorted(&ask(&[b"SMEMBERS"], &[]), 1),
        "+hash" => {
            let fields = ask(&[b"HGETALL"], &[]);
            let names: Vec<Vec<u8>> = fields.items().chunks(2).map(|pair| bytes(&pair[0])).collect();
            let count = names.len().to_string();
            let mut after: Vec<&[u8]> = vec![b"FIELDS", count.as_bytes()];
            after.extend(names.iter().map(Vec::as_slice));
            // A server without deadlines of fields has none; both say so, or both list them.
            let deadlines = match ask(&[b"HPEXPIRETIME"], &after) {
                Reply::Array(deadlines) => deadlines.iter().map(ToString::to_string).collect(),
                _ => vec![":-1".to_owned(); names.len()],
            };
            let mut rows: Vec<String> = fields
                .items()
                .chunks(2)
                .zip(deadlines)
                .map(|(pair, deadline)| format!("{} {} {deadline}", pair[0], pair[1]))
                .collect();
            rows.sort();
            rows.join(" ")
        }
        "+zset" => ask(&[b"ZRANGE"], &[b"0", b"-1", b"WITHSCORES"]).to_string(),
        "+stream" => {
            let entries = ask(&[b"XRANGE"], &[b"-", b"+"]).to_string();
            let mut groups = Vec::new();
            for group in ask(&[b"XINFO", b"GROUPS"], &[]).items() {
                let group_name = bytes(&group.items()[1]);
                let pending = ask(&[b"XPENDING"], &[&group_name, b"-", b"+", b"100000"]);
                // Not how long each has been pending, which goes on.
                let pending = pending.items().iter().map(|one| {
                    let part = |at: usize| one.items()[at].to_string();
                    format!("{} {} {}", part(0), part(1), part(3))
                });
                let last = group.items().iter().skip_while(|item| item.to_string() != "\"last-delivered-id\"").nth(1);
                groups.push(format!("{} {last:?} {:?}", group.items()[1], pending.collect::<Vec<_>>()));
            }
            format!("{entries} {groups:?}")
        }
        "+none" => return None,
        other => panic!("{other}: a type of Redis's"),
    };
    let deadline = ask(&[b"PEXPIRETIME"], &[]).to_string();
    Some(format!("{kind} {value} {deadline}"))
}

fn bytes(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Bulk(bytes) => bytes.clone(),
        other => panic!("{other} is no bulk string"),
    }
}

fn sorted(reply: &Reply, size: usize) -> String {
    let mut parts: Vec<String> = reply
        .items()
        .chunks(size)
        .map(|part| part.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        .collect();
    parts.sort();
    parts.join(" ")
}

/// Panics where two servers differ, and says where.
#[track_caller]
pub(crate) fn assert_equal(source: &mut Connection, target: &mut Connection) {
    let (source, target) = (state(source), state(target));
    assert!(source.len() > 20, "the load has left something: {}", source.len());
    for (place, value) in &source {
        assert_eq!(target.get(place), Some(value), "{} of database {}", place.1.escape_ascii(), place.0);
    }
    for place in target.keys() {
        assert!(source.contains_key(place), "{} of database {} is gone at the source", place.1.escape_ascii(), place.0);
    }
}
