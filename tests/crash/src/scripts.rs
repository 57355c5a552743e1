//! Scripts and functions of the load, as Lua for the server and as what they do to the model: several commands that are
//! whole or absent. Knows nothing of which commands they are given.

use wire::Reply;

use crate::model::{DEFINITIONS, Place, State, Value, int};
use crate::request::{Command, command};

/// Runs commands that it is given as arguments, each after the number of its words. Its keys are not declared, so the
/// server cannot know them beforehand.
pub(crate) const BATCH: &str = "local replies, at = {}, 1
while at <= #ARGV do
    local count = tonumber(ARGV[at])
    replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + count))
    at = at + count + 1
end
return replies";

/// Writes one value to a string and to a hash, both of which it declares.
pub(crate) const PAIR: &str = "redis.call('SET', KEYS[1], ARGV[1])
return redis.call('HSET', KEYS[2], 'paired', ARGV[1], ARGV[2], ARGV[1])";

/// Every script, and what EVALSHA calls it by.
pub(crate) const SCRIPTS: [(&str, &str); 2] =
    [(BATCH, "94b014d65cde1867b04c78e022af8b6094e8dfe8"), (PAIR, "7110b907e77386d6f032185754f91876622aec82")];

pub(crate) fn call_batch(by_digest: bool, commands: &[Command]) -> Command {
    call(by_digest, 0, &[]).into_iter().chain(batch_args(commands)).collect()
}

pub(crate) fn call_pair(by_digest: bool, string: &str, hash: &str, value: &[u8], field: &str) -> Command {
    let keys_and_args = command(&[&string, &hash, &value, &field]);
    call(by_digest, 1, &keys_and_args[..2]).into_iter().chain(keys_and_args[2..].iter().cloned()).collect()
}

/// `FCALL` of the one function of a library.
pub(crate) fn call_library(name: &str, commands: &[Command]) -> Command {
    let head = command(&[&"FCALL", &function_name(name), &"0"]);
    head.into_iter().chain(batch_args(commands)).collect()
}

/// A library whose one function does what `BATCH` does, and answers with a mark of this version of it too.
pub(crate) fn library(name: &str, mark: &str) -> String {
    format!(
        "#!lua name={name}\nlocal mark = '{mark}'\nlocal function batch(ARGV)\n{BATCH}\nend\n\
         redis.register_function('{}', function(keys, args) return {{mark, batch(args)}} end)",
        function_name(name)
    )
}

fn function_name(library: &str) -> String {
    format!("run_{library}")
}

fn call(by_digest: bool, script: usize, keys: &[Vec<u8>]) -> Command {
    let (source, digest) = SCRIPTS[script];
    let head = if by_digest { ["EVALSHA", digest] } else { ["EVAL", source] };
    let head = head.map(|word| word.as_bytes().to_vec());
    head.into_iter().chain([keys.len().to_string().into_bytes()]).chain(keys.iter().cloned()).collect()
}

fn batch_args(commands: &[Command]) -> impl Iterator<Item = Vec<u8>> {
    commands.iter().flat_map(|command| [command.len().to_string().into_bytes()].into_iter().chain(command.clone()))
}

impl State {
    /// `EVAL` or `EVALSHA` of one of the scripts.
    pub(crate) fn run_script(&mut self, db: u32, args: &[Vec<u8>], sent_ms: i64) -> Option<Reply> {
        let named = |(source, digest): &(&str, &str)| args[1] == source.as_bytes() || args[1] == digest.as_bytes();
        match SCRIPTS.iter().position(named).expect("a script of the load") {
            0 => self.run_batch(db, &args[3..], sent_ms),
            _ => {
                let (keys, value, field) = (&args[3..5], &args[5], &args[6]);
                self.apply(db, &command(&[&"SET", &keys[0], value]), sent_ms);
                self.apply(db, &command(&[&"HSET", &keys[1], &"paired", value, field, value]), sent_ms)
            }
        }
    }

    /// `FCALL function 0 …`
    pub(crate) fn run_function(&mut self, db: u32, args: &[Vec<u8>], sent_ms: i64) -> Option<Reply> {
        let library = args[1].strip_prefix(b"run_").expect("a function of the load");
        let code = match self.get(DEFINITIONS, library).map(|entry| &entry.value) {
            Some(Value::Definition(code)) => String::from_utf8_lossy(code).into_owned(),
            _ => panic!("a call of a function that is not there"),
        };
        let mark = code.split('\'').nth(1).expect("the mark of a library").as_bytes().to_vec();
        let replies = self.run_batch(db, &args[3..], sent_ms)?;
        Some(Reply::Array(vec![Reply::Bulk(mark), replies]))
    }

    fn run_batch(&mut self, db: u32, mut words: &[Vec<u8>], sent_ms: i64) -> Option<Reply> {
        let mut replies = Vec::new();
        while let Some((count, rest)) = words.split_first() {
            let (command, rest) = rest.split_at(int(count) as usize);
            replies.push(self.apply(db, command, sent_ms));
            words = rest;
        }
        // Lua has one null.
        let as_lua_has_it = |reply: Reply| if reply == Reply::NilArray { Reply::NilBulk } else { reply };
        let replies = replies.into_iter().map(|reply| reply.map(as_lua_has_it));
        replies.collect::<Option<_>>().map(Reply::Array)
    }

    /// `FUNCTION LOAD REPLACE code` or `FUNCTION DELETE library`
    pub(crate) fn change_functions(&mut self, args: &[Vec<u8>]) -> Reply {
        match args[1].as_slice() {
            b"LOAD" => {
                let line = args[3].split(|byte| *byte == b'\n').next().unwrap_or_default();
                let name = line.strip_prefix(b"#!lua name=").expect("a library of the load");
                self.define(name, args[3].clone());
                Reply::Bulk(name.to_vec())
            }
            _ => {
                self.entries.remove(&Place::new(DEFINITIONS, &args[2]));
                Reply::Simple(b"OK".to_vec())
            }
        }
    }
}
