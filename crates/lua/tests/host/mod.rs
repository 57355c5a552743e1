//! A host with just enough commands for the tests: it stands for a server and is none.

use std::collections::BTreeMap;

use lua::{Host, Tick};

#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) resp3: bool,
    pub(crate) strings: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) hashes: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>,
    pub(crate) calls: Vec<Vec<Vec<u8>>>,
    pub(crate) logged: Vec<(i64, Vec<u8>)>,
    pub(crate) repl: Option<i64>,
    /// Kill after so many ticks.
    pub(crate) patience: Option<u32>,
    pub(crate) ticks: u32,
}

impl Host for Fake {
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        self.calls.push(args.iter().map(|arg| arg.to_vec()).collect());
        let null: &[u8] = if self.resp3 { b"_\r\n" } else { b"$-1\r\n" };
        let name = args[0].to_ascii_lowercase();
        match (name.as_slice(), &args[1..]) {
            (b"ping", []) => reply.extend_from_slice(b"+PONG\r\n"),
            (b"ping", [text]) => bulk(reply, text),
            (b"set", [key, value]) => {
                self.strings.insert(key.to_vec(), value.to_vec());
                reply.extend_from_slice(b"+OK\r\n");
            }
            (b"get", [key]) => match self.strings.get(*key) {
                Some(value) => bulk(reply, value),
                None => reply.extend_from_slice(null),
            },
            (b"mget", keys) => {
                reply.extend_from_slice(format!("*{}\r\n", keys.len()).as_bytes());
                for key in keys {
                    match self.strings.get(*key) {
                        Some(value) => bulk(reply, value),
                        None => reply.extend_from_slice(null),
                    }
                }
            }
            (b"lpush", [key, ..]) if self.strings.contains_key(*key) => {
                reply.extend_from_slice(b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
            }
            (b"hset", [key, pairs @ ..]) => {
                let hash = self.hashes.entry(key.to_vec()).or_default();
                for pair in pairs.chunks(2) {
                    hash.insert(pair[0].to_vec(), pair[1].to_vec());
                }
                reply.extend_from_slice(b":1\r\n");
            }
            (b"hgetall", [key]) => {
                let hash = self.hashes.get(*key).cloned().unwrap_or_default();
                let head = if self.resp3 { format!("%{}\r\n", hash.len()) } else { format!("*{}\r\n", hash.len() * 2) };
                reply.extend_from_slice(head.as_bytes());
                for (field, value) in hash {
                    bulk(reply, &field);
                    bulk(reply, &value);
                }
            }
            (b"del" | b"zadd" | b"sadd", _) => reply.extend_from_slice(b":1\r\n"),
            (b"zscore", _) if self.resp3 => reply.extend_from_slice(b",1.5\r\n"),
            (b"zscore", _) => bulk(reply, b"1.5"),
            (b"smembers", _) if self.resp3 => reply.extend_from_slice(b"~1\r\n$1\r\na\r\n"),
            (b"smembers", _) => reply.extend_from_slice(b"*1\r\n$1\r\na\r\n"),
            (b"lrange", _) => reply.extend_from_slice(b"*0\r\n"),
            // Answers with whatever the test asks for.
            (b"reply", [bytes]) => reply.extend_from_slice(bytes),
            (b"panic", _) => panic!("the host fell over"),
            _ => reply.extend_from_slice(b"-ERR Unknown Redis command called from script\r\n"),
        }
    }

    fn log(&mut self, level: i64, message: &[u8]) {
        self.logged.push((level, message.to_vec()));
    }

    fn set_resp(&mut self, version: u8) {
        self.resp3 = version == 3;
    }

    fn acl_check(&mut self, args: &[&[u8]]) -> Result<bool, String> {
        match args[0] {
            b"nosuch" => Err("Invalid command passed to redis.acl_check_cmd()".into()),
            _ => Ok(true),
        }
    }

    fn set_repl(&mut self, flags: i64) {
        self.repl = Some(flags);
    }

    fn tick(&mut self) -> Tick {
        self.ticks += 1;
        match self.patience {
            Some(patience) if self.ticks > patience => Tick::Kill("Script killed by user with SCRIPT KILL...".into()),
            _ => Tick::Continue,
        }
    }
}

fn bulk(reply: &mut Vec<u8>, bytes: &[u8]) {
    reply.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    reply.extend_from_slice(bytes);
    reply.extend_from_slice(b"\r\n");
}
