//! What the commands mean, over a plain map: the shortest program that says it, with no regard for speed.
//! Knows only the spellings that `commands` produces, and no encodings. A random choice is taken from the reply.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use wire::{Reply, split_args};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Keys and their values; a set without members is no key.
#[derive(Default)]
pub(crate) struct Model {
    values: HashMap<Vec<u8>, Value>,
}

#[derive(Clone)]
enum Value {
    Text,
    Members(Set),
}

type Set = HashSet<Vec<u8>>;
type Args<'a> = &'a [&'a [u8]];
type Outcome = Result<Reply, &'static str>;

impl Model {
    /// The reply that should come, its members in order. Where several are right and `received` is one of them, it is that one.
    pub(crate) fn run(&mut self, command: &str, received: &Reply) -> Reply {
        let args = split_args(command).expect("a command that can be split");
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let outcome = self.execute(std::str::from_utf8(args[0]).expect("a command's name"), &args[1..], received);
        outcome.unwrap_or_else(|error| Reply::Error(error.into()))
    }

    fn execute(&mut self, name: &str, args: Args, received: &Reply) -> Outcome {
        Ok(match (name, args) {
            ("SADD", [key, members @ ..]) => {
                let mut set = self.get(key)?;
                let added = members.iter().filter(|member| set.insert(member.to_vec())).count();
                self.put(key, set);
                count(added)
            }
            ("SREM", [key, members @ ..]) => {
                let mut set = self.get(key)?;
                let removed = members.iter().filter(|member| set.remove(**member)).count();
                self.put(key, set);
                count(removed)
            }
            ("SCARD", [key]) => count(self.get(key)?.len()),
            ("SISMEMBER", [key, member]) => count(usize::from(self.get(key)?.contains(*member))),
            ("SMISMEMBER", [key, members @ ..]) => {
                let set = self.get(key)?;
                Reply::Array(members.iter().map(|member| count(usize::from(set.contains(*member)))).collect())
            }
            ("SMEMBERS", [key]) => bulks(self.get(key)?),
            ("SSCAN", [key, ..]) => Reply::Array(vec![Reply::Bulk(b"0".to_vec()), bulks(self.get(key)?)]),
            ("SMOVE", [from, to, member]) => return self.move_member(from, to, member),
            ("SPOP", [key, many @ ..]) => {
                let mut set = self.get(key)?;
                let popped = choose(&set, many, received);
                let members: &[Reply] = if many.is_empty() { std::slice::from_ref(&popped) } else { popped.items() };
                for member in members.iter().filter(|member| !member.is_nil()) {
                    set.remove(member.bytes());
                }
                self.put(key, set);
                popped
            }
            ("SRANDMEMBER", [key, many @ ..]) => choose(&self.get(key)?, many, received),
            ("SINTER" | "SUNION" | "SDIFF", keys) => bulks(self.combine(name, keys)?),
            ("SINTERSTORE" | "SUNIONSTORE" | "SDIFFSTORE", [to, keys @ ..]) => {
                let result = self.combine(name.trim_end_matches("STORE"), keys)?;
                let stored = result.len();
                self.put(to, result);
                count(stored)
            }
            ("SINTERCARD", [_, keys @ .., b"LIMIT", limit]) => {
                let (found, limit) = (self.combine("SINTER", keys)?.len(), integer(limit) as usize);
                count(if limit == 0 { found } else { found.min(limit) })
            }
            ("ZUNION" | "ZINTER" | "ZDIFF", [_, keys @ .., b"WITHSCORES"]) => {
                let members = self.combine(&name.replace('Z', "S"), keys)?;
                self.scored(name, keys, members)?
            }
            ("DEL", [key]) => count(usize::from(self.values.remove(*key).is_some())),
            ("EXISTS", [key]) => count(usize::from(self.values.contains_key(*key))),
            ("TYPE", [key]) => simple(match self.values.get(*key) {
                None => "none",
                Some(Value::Text) => "string",
                Some(Value::Members(_)) => "set",
            }),
            ("SET", [key, _]) => {
                self.values.insert(key.to_vec(), Value::Text);
                simple("OK")
            }
            ("RENAME", [from, to]) => {
                let value = self.values.remove(*from).ok_or("ERR no such key")?;
                self.values.insert(to.to_vec(), value);
                simple("OK")
            }
            ("COPY", [from, to, b"REPLACE"]) => {
                if from == to {
                    return Err("ERR source and destination objects are the same");
                }
                let value = self.values.get(*from).cloned();
                count(usize::from(value.map(|value| self.values.insert(to.to_vec(), value)).is_some()))
            }
            _ => panic!("the model does not know {name} with {} arguments", args.len()),
        })
    }

    fn get(&self, key: &[u8]) -> Result<Set, &'static str> {
        match self.values.get(key) {
            None => Ok(Set::new()),
            Some(Value::Members(set)) => Ok(set.clone()),
            Some(Value::Text) => Err(WRONG_TYPE),
        }
    }

    fn put(&mut self, key: &[u8], set: Set) {
        if set.is_empty() {
            self.values.remove(key);
        } else {
            self.values.insert(key.to_vec(), Value::Members(set));
        }
    }

    fn move_member(&mut self, from: &[u8], to: &[u8], member: &[u8]) -> Outcome {
        if !self.values.contains_key(from) {
            // The destination's type does not matter then.
            return Ok(count(0));
        }
        let (mut source, mut destination) = (self.get(from)?, self.get(to)?);
        let moved = source.contains(member);
        if moved && from != to {
            source.remove(member);
            destination.insert(member.to_vec());
            self.put(from, source);
            self.put(to, destination);
        }
        Ok(count(usize::from(moved)))
    }

    fn combine(&self, name: &str, keys: Args) -> Result<Set, &'static str> {
        let sets: Vec<Set> = keys.iter().map(|key| self.get(key)).collect::<Result<_, _>>()?;
        let (first, others) = sets.split_first().expect("at least one key");
        Ok(match name {
            "SUNION" => sets.iter().flatten().cloned().collect(),
            "SINTER" => first.iter().filter(|member| others.iter().all(|set| set.contains(*member))).cloned().collect(),
            _ => first.iter().filter(|member| others.iter().all(|set| !set.contains(*member))).cloned().collect(),
        })
    }

    /// Members with their scores, in the order of a sorted set: 1 for each set that has it, and just 1 in a difference.
    fn scored(&self, name: &str, keys: Args, members: Set) -> Outcome {
        let mut scores: BTreeMap<usize, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for member in members {
            let mut score = 0;
            for key in keys {
                score += usize::from(self.get(key)?.contains(&member));
            }
            scores.entry(if name == "ZDIFF" { 1 } else { score }).or_default().insert(member);
        }
        let pairs = scores.into_iter().flat_map(|(score, members)| {
            members.into_iter().flat_map(move |member| [member, score.to_string().into_bytes()])
        });
        Ok(Reply::Array(pairs.map(Reply::Bulk).collect()))
    }
}

/// What SPOP and SRANDMEMBER choose from a set: what was received, if it may be chosen, otherwise one right reply.
fn choose(set: &Set, many: Args, received: &Reply) -> Reply {
    let mut received = received.clone();
    let Some(many) = many.first().map(|many| integer(many)) else {
        let may_be = |reply: &Reply| matches!(reply, Reply::Bulk(member) if set.contains(member));
        return match set.iter().next() {
            None => Reply::NilBulk,
            Some(_) if may_be(&received) => received,
            Some(member) => Reply::Bulk(member.clone()),
        };
    };
    let len = match many {
        _ if set.is_empty() => 0,
        ..0 => many.unsigned_abs() as usize,
        _ => set.len().min(many as usize),
    };
    if let Reply::Array(items) = &mut received {
        sort(items);
        let members: Option<Vec<&Vec<u8>>> = items
            .iter()
            .map(|item| match item {
                Reply::Bulk(member) if set.contains(member) => Some(member),
                _ => None,
            })
            .collect();
        let differ = |members: &Vec<&Vec<u8>>| members.windows(2).all(|pair| pair[0] != pair[1]);
        if members.is_some_and(|members| members.len() == len && (many < 0 || differ(&members))) {
            return received;
        }
    }
    bulks(set.iter().cycle().take(len).cloned())
}

/// Puts the members of a reply in order.
pub(crate) fn sort(items: &mut [Reply]) {
    items.sort_by_cached_key(Reply::to_string);
}

fn bulks(members: impl IntoIterator<Item = Vec<u8>>) -> Reply {
    let mut items: Vec<Reply> = members.into_iter().map(Reply::Bulk).collect();
    sort(&mut items);
    Reply::Array(items)
}

fn count(n: usize) -> Reply {
    Reply::Integer(n as i64)
}

fn simple(text: &str) -> Reply {
    Reply::Simple(text.into())
}

fn integer(digits: &[u8]) -> i64 {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).expect("an integer")
}
