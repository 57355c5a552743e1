//! All that a server keeps, as far as two states can be compared: a digest of every key, the indexes, the functions.

use std::collections::BTreeMap;

use wire::{Reply, quote};

use crate::table::{items, text};
use crate::talk::Talk;

#[derive(Clone, PartialEq)]
pub(crate) struct State {
    digest: String,
    indexes: Vec<String>,
    functions: String,
}

impl State {
    pub(crate) fn read(talk: &mut Talk) -> Result<State, String> {
        let digest = text(&talk.must(&["DEBUG", "DIGEST"])?);
        let mut indexes: Vec<_> = match talk.run(&["IDX.LIST"])? {
            // A server without indexes.
            Reply::Error(_) => Vec::new(),
            list => items(&list).iter().map(text).collect(),
        };
        indexes.sort();
        let functions = talk.must(&["FUNCTION", "LIST", "WITHCODE"])?;
        let mut functions: Vec<_> = items(&functions).iter().map(|library| library.to_string()).collect();
        functions.sort();
        Ok(State { digest, indexes, functions: functions.join("\n") })
    }

    /// The names of what is no key: indexes and libraries of functions.
    pub(crate) fn names(talk: &mut Talk) -> Result<Vec<String>, String> {
        let indexes = talk.run(&["IDX.LIST"])?;
        let libraries = talk.must(&["FUNCTION", "LIST"])?;
        let index = items(&indexes).iter().map(|name| format!("index {}", text(name)));
        let library = items(&libraries).iter().map(|library| format!("library {library}"));
        Ok(index.chain(library).collect())
    }

    pub(crate) fn has_index(&self, name: &str) -> bool {
        self.indexes.iter().any(|known| known == name)
    }

    pub(crate) fn forget_index(&mut self, name: &str) {
        self.indexes.retain(|known| known != name);
    }

    /// Without the digest of everything, where the keys are compared one by one.
    pub(crate) fn without_digest(mut self) -> State {
        self.digest.clear();
        self
    }

    pub(crate) fn difference(&self, after: &State) -> String {
        let mut text = String::new();
        if self.digest != after.digest {
            text += &format!("DEBUG DIGEST was {}, is {}\n", self.digest, after.digest);
        }
        if self.indexes != after.indexes {
            text += &format!("IDX.LIST was {:?}, is {:?}\n", self.indexes, after.indexes);
        }
        if self.functions != after.functions {
            text += &format!("FUNCTION LIST was {}, is {}\n", self.functions, after.functions);
        }
        text
    }
}

/// What INFO tells.
pub(crate) struct Info {
    lines: BTreeMap<String, String>,
}

impl Info {
    pub(crate) fn read(talk: &mut Talk) -> Result<Info, String> {
        let Reply::Bulk(info) = talk.must(&["INFO", "memory", "keyspace"])? else {
            return Err("INFO is no text".into());
        };
        let info = String::from_utf8_lossy(&info).into_owned();
        let pairs = info.lines().filter_map(|line| line.split_once(':'));
        Ok(Info { lines: pairs.map(|(name, value)| (name.into(), value.into())).collect() })
    }

    /// A number, 0 if there is none.
    pub(crate) fn bytes(&self, name: &str) -> i64 {
        self.lines.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// How many keys there are in all databases.
    pub(crate) fn keys(&self) -> u64 {
        let databases = self.lines.iter().filter(|(name, _)| name.starts_with("db"));
        databases.filter_map(|(_, line)| line.strip_prefix("keys=")?.split(',').next()?.parse::<u64>().ok()).sum()
    }
}

/// How many keys and fields have expired since the server started.
pub(crate) fn expired(talk: &mut Talk) -> Result<Vec<String>, String> {
    let Reply::Bulk(info) = talk.must(&["INFO", "stats"])? else { return Ok(Vec::new()) };
    let info = String::from_utf8_lossy(&info).into_owned();
    let counts = |line: &&str| line.starts_with("expired_keys:") || line.starts_with("expired_subkeys:");
    Ok(info.lines().filter(counts).map(String::from).collect())
}

/// What each index holds, in order.
pub(crate) fn index_contents(talk: &mut Talk) -> Result<Vec<String>, String> {
    let Reply::Array(names) = talk.run(&["IDX.LIST"])? else { return Ok(Vec::new()) };
    let mut contents = Vec::new();
    for name in names.iter().map(text) {
        for db in ["0", "1"] {
            talk.must(&["SELECT", db])?;
            let records = talk.must(&["ZRANGE", &name, "0", "-1", "WITHSCORES"])?;
            contents.push(format!("{name} in {db}: {records}"));
        }
    }
    talk.must(&["SELECT", "0"])?;
    contents.sort();
    Ok(contents)
}

/// Every key of every database by its name, with a digest of its value. Sorted sets are written out: a score of -0 is kept
/// in a large one and is 0 in a small one, and a large one that has shrunk is small after a start, in Redis too.
pub(crate) fn digests(talk: &mut Talk) -> Result<BTreeMap<String, String>, String> {
    let mut digests = BTreeMap::new();
    for_each_key(talk, |talk, db, key| {
        let digest = match text(&talk.must(&[b"TYPE".as_slice(), key])?).as_str() {
            "zset" => {
                let members = talk.must(&[b"ZRANGE".as_slice(), key, b"0", b"-1", b"WITHSCORES"])?;
                let members = items(&members)
                    .iter()
                    .map(|item| if text(item) == "-0" { "\"0\"".into() } else { item.to_string() });
                members.collect::<Vec<_>>().join(" ")
            }
            _ => items(&talk.must(&[b"DEBUG".as_slice(), b"DIGEST-VALUE", key])?).first().map(text).unwrap_or_default(),
        };
        digests.insert(format!("{db} {}", quote(key)), digest);
        Ok(())
    })?;
    Ok(digests)
}

/// Takes all deadlines away: what may expire while two states are compared would make them differ.
pub(crate) fn remove_deadlines(talk: &mut Talk) -> Result<(), String> {
    // What a hook does when a session expires would be a change while two states are compared; the hook of a new session may fail.
    talk.must(&["SESSION.HOOK", "CREATED", "NONE"])?;
    talk.must(&["SESSION.HOOK", "EXPIRED", "NONE"])?;
    talk.must(&["DEBUG", "SET-ACTIVE-EXPIRE", "1"])?;
    for_each_key(talk, |talk, _, key| {
        match text(&talk.must(&[b"TYPE".as_slice(), key])?).as_str() {
            // It has to have one.
            "session" => return talk.must(&[b"SESSION.OPEN".as_slice(), b"ID", key, b"TTL", b"600000"]).map(drop),
            "hash" => drop(talk.must(&[b"PERSIST".as_slice(), key])?),
            _ => return talk.must(&[b"PERSIST".as_slice(), key]).map(drop),
        }
        let fields = talk.must(&[b"HKEYS".as_slice(), key])?;
        let fields: Vec<_> = items(&fields).iter().map(|field| field.bytes().to_vec()).collect();
        if fields.is_empty() {
            return Ok(());
        }
        let mut args: Vec<Vec<u8>> = vec![b"HPERSIST".to_vec(), key.to_vec(), b"FIELDS".to_vec()];
        args.push(fields.len().to_string().into_bytes());
        args.extend(fields);
        talk.must(&args).map(drop)
    })
}

/// True when nothing is left of what has expired. A session that is would have its full time again after a start.
pub(crate) fn is_without_expired(talk: &mut Talk) -> Result<bool, String> {
    let (mut seen, mut counted) = (0, 0);
    for_each_key(talk, |_, _, _| {
        seen += 1;
        Ok(())
    })?;
    for db in 0..DATABASES {
        talk.must(&["SELECT", &db.to_string()])?;
        counted += talk.must(&["DBSIZE"])?.integer();
    }
    Ok(seen == counted)
}

/// Shows each key of each database to `visit`, with that database selected.
fn for_each_key(
    talk: &mut Talk,
    mut visit: impl FnMut(&mut Talk, usize, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    for db in 0..DATABASES {
        talk.must(&["SELECT", &db.to_string()])?;
        let mut cursor = b"0".to_vec();
        loop {
            let page = talk.must(&[b"SCAN".as_slice(), &cursor, b"COUNT", b"1000"])?;
            let (Some(Reply::Bulk(next)), Some(keys)) = (items(&page).first(), items(&page).get(1)) else {
                return Err(format!("SCAN was answered with {page}"));
            };
            for key in items(keys) {
                visit(talk, db, key.bytes())?;
            }
            cursor.clone_from(next);
            if cursor == b"0" {
                break;
            }
        }
    }
    talk.must(&["SELECT", "0"]).map(drop)
}

const DATABASES: usize = 16;
