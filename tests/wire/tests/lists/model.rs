//! What the commands mean, over a plain map: the shortest program that says it, with no regard for speed.
//! Knows only the spellings that `commands` produces.

use std::collections::BTreeMap;

use wire::{Reply, split_args};

/// Keys and their lists; a list without elements is no key.
#[derive(Default)]
pub(crate) struct Model {
    lists: BTreeMap<Vec<u8>, List>,
}

type List = Vec<Vec<u8>>;
type Args<'a> = &'a [&'a [u8]];
type Outcome = Result<Reply, &'static str>;

impl Model {
    pub(crate) fn run(&mut self, command: &str) -> Reply {
        let args = split_args(command).expect("a command that can be split");
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let outcome = self.execute(std::str::from_utf8(args[0]).expect("a command's name"), &args[1..]);
        outcome.unwrap_or_else(|error| Reply::Error(error.into()))
    }

    fn execute(&mut self, name: &str, args: Args) -> Outcome {
        Ok(match (name, args) {
            ("LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX", [key, elements @ ..]) => {
                if name.ends_with('X') && !self.lists.contains_key(*key) {
                    return Ok(count(0));
                }
                let list = self.lists.entry(key.to_vec()).or_default();
                for element in elements {
                    put(list, element, name.starts_with('L'));
                }
                count(list.len())
            }
            ("LPOP" | "RPOP", [key]) => self.take(key, name == "LPOP", 1).pop().map_or(Reply::NilBulk, Reply::Bulk),
            ("LPOP" | "RPOP", [key, many]) => match self.lists.contains_key(*key) {
                true => bulks(self.take(key, name == "LPOP", integer(many) as usize)),
                false => Reply::NilArray,
            },
            ("LLEN", [key]) => count(self.get(key).len()),
            ("LINDEX", [key, index]) => {
                let list = self.get(key);
                at(integer(index), list.len()).map_or(Reply::NilBulk, |index| Reply::Bulk(list[index].clone()))
            }
            ("LINSERT", [key, place, pivot, element]) => {
                let Some(list) = self.lists.get_mut(*key) else { return Ok(count(0)) };
                let Some(found) = list.iter().position(|other| other == pivot) else { return Ok(Reply::Integer(-1)) };
                list.insert(found + usize::from(*place == b"AFTER"), element.to_vec());
                count(list.len())
            }
            ("LSET", [key, index, element]) => {
                let list = self.lists.get_mut(*key).ok_or("ERR no such key")?;
                let index = at(integer(index), list.len()).ok_or("ERR index out of range")?;
                list[index] = element.to_vec();
                Reply::Simple(b"OK".to_vec())
            }
            ("LRANGE", [key, start, stop]) => {
                let list = self.get(key);
                bulks(list[range(start, stop, list.len())].to_vec())
            }
            ("LREM", [key, many, element]) => {
                let (mut list, many) = (self.get(key), integer(many));
                let mut equal: Vec<usize> = (0..list.len()).filter(|at| list[*at] == *element).collect();
                if many < 0 {
                    equal.reverse();
                }
                if many != 0 {
                    equal.truncate(many.unsigned_abs() as usize);
                }
                equal.sort_unstable();
                equal.iter().rev().for_each(|at| drop(list.remove(*at)));
                self.put(key, list);
                count(equal.len())
            }
            ("LTRIM", [key, start, stop]) => {
                let list = self.get(key);
                self.put(key, list[range(start, stop, list.len())].to_vec());
                Reply::Simple(b"OK".to_vec())
            }
            ("LPOS", [key, element, options @ ..]) => find(&self.get(key), element, options),
            ("LMOVE" | "BLMOVE", [from, to, side, other, ..]) => {
                self.shift(from, to, *side == b"LEFT", *other == b"LEFT", name == "BLMOVE")
            }
            ("RPOPLPUSH" | "BRPOPLPUSH", [from, to, ..]) => self.shift(from, to, false, true, name == "BRPOPLPUSH"),
            ("LMPOP", [_, first, second, side, _, many]) | ("BLMPOP", [_, _, first, second, side, _, many]) => {
                let Some(key) = [first, second].into_iter().find(|key| self.lists.contains_key(**key)) else {
                    return Ok(Reply::NilArray);
                };
                let taken = self.take(key, *side == b"LEFT", integer(many) as usize);
                Reply::Array(vec![Reply::Bulk(key.to_vec()), bulks(taken)])
            }
            ("BLPOP" | "BRPOP", [keys @ .., _]) => {
                let Some(key) = keys.iter().find(|key| self.lists.contains_key(**key)) else {
                    return Ok(Reply::NilArray);
                };
                let taken = self.take(key, name == "BLPOP", 1);
                bulks([vec![key.to_vec()], taken].concat())
            }
            ("DEL", [key]) => count(usize::from(self.lists.remove(*key).is_some())),
            ("EXISTS", [key]) => count(usize::from(self.lists.contains_key(*key))),
            ("TYPE", [key]) => {
                Reply::Simple(if self.lists.contains_key(*key) { b"list".into() } else { b"none".into() })
            }
            ("RENAME", [from, to]) => {
                let list = self.lists.remove(*from).ok_or("ERR no such key")?;
                self.put(to, list);
                Reply::Simple(b"OK".to_vec())
            }
            ("COPY", [from, to, _]) => {
                if from == to {
                    return Err("ERR source and destination objects are the same");
                }
                let list = self.get(from);
                let copied = !list.is_empty();
                if copied {
                    self.put(to, list);
                }
                count(usize::from(copied))
            }
            _ => panic!("the model does not know {name} with {} arguments", args.len()),
        })
    }

    fn get(&self, key: &[u8]) -> List {
        self.lists.get(key).cloned().unwrap_or_default()
    }

    fn put(&mut self, key: &[u8], list: List) {
        if list.is_empty() {
            self.lists.remove(key);
        } else {
            self.lists.insert(key.to_vec(), list);
        }
    }

    fn take(&mut self, key: &[u8], left: bool, many: usize) -> List {
        let mut list = self.get(key);
        let many = many.min(list.len());
        let taken = match left {
            true => list.drain(..many).collect(),
            false => list.split_off(list.len() - many).into_iter().rev().collect(),
        };
        self.put(key, list);
        taken
    }

    fn shift(&mut self, from: &[u8], to: &[u8], left: bool, to_left: bool, waits: bool) -> Reply {
        let Some(element) = self.take(from, left, 1).pop() else {
            return if waits { Reply::NilArray } else { Reply::NilBulk };
        };
        put(self.lists.entry(to.to_vec()).or_default(), &element, to_left);
        Reply::Bulk(element)
    }
}

fn put(list: &mut List, element: &[u8], left: bool) {
    let at = if left { 0 } else { list.len() };
    list.insert(at, element.to_vec());
}

fn find(list: &List, element: &[u8], options: Args) -> Reply {
    let option = |name: &[u8]| options.chunks(2).find(|pair| pair[0] == name).map(|pair| integer(pair[1]));
    let (rank, wanted, max) = (option(b"RANK").unwrap_or(1), option(b"COUNT"), option(b"MAXLEN").unwrap_or(0));
    let mut indexes: Vec<usize> = (0..list.len()).collect();
    if rank < 0 {
        indexes.reverse();
    }
    if max > 0 {
        indexes.truncate(max as usize);
    }
    let equal = indexes.into_iter().filter(|at| list[*at] == element).skip(rank.unsigned_abs() as usize - 1);
    let found: Vec<usize> = match wanted {
        None => equal.take(1).collect(),
        Some(0) => equal.collect(),
        Some(many) => equal.take(many as usize).collect(),
    };
    match wanted {
        Some(_) => Reply::Array(found.into_iter().map(count).collect()),
        None => found.first().map_or(Reply::NilBulk, |at| count(*at)),
    }
}

fn at(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index + len as i64 } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

fn range(start: &[u8], stop: &[u8], len: usize) -> std::ops::Range<usize> {
    let from_end = |text: &[u8]| integer(text) + if integer(text) < 0 { len as i64 } else { 0 };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len as i64 - 1));
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

fn integer(text: &[u8]) -> i64 {
    std::str::from_utf8(text).expect("a number").parse().expect("a number")
}

fn count(count: usize) -> Reply {
    Reply::Integer(count as i64)
}

fn bulks(list: List) -> Reply {
    Reply::Array(list.into_iter().map(Reply::Bulk).collect())
}
