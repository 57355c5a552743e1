//! What the commands mean, over a plain map: the shortest program that says it, with no regard for speed.
//! Knows only the spellings that `commands` produces, and prints numbers in its own way.

use std::collections::{BTreeMap, BTreeSet};

use wire::{Reply, split_args};

const NOT_A_NUMBER: &str = "ERR resulting score is not a number (NaN)";

/// Keys and their sets; a set without members is no key.
#[derive(Default)]
pub(crate) struct Model {
    sets: BTreeMap<Vec<u8>, Set>,
}

type Set = BTreeMap<Vec<u8>, f64>;
type Entry = (Vec<u8>, f64);
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
        match (name, args) {
            ("ZADD", [key, words @ ..]) => return self.add(key, words),
            ("ZINCRBY", [key, pair @ ..]) => return self.add(key, &[&[b"INCR".as_slice()], pair].concat()),
            ("ZREM", [key, members @ ..]) => {
                let mut set = self.get(key);
                let removed = members.iter().filter(|member| set.remove(**member).is_some()).count();
                self.put(key, set);
                return Ok(count(removed));
            }
            _ => {}
        }
        Ok(match (name, args) {
            ("ZCARD", [key]) => count(self.get(key).len()),
            ("ZSCORE", [key, member]) => score(self.get(key).get(*member)),
            ("ZMSCORE", [key, members @ ..]) => {
                let set = self.get(key);
                array(members.iter().map(|member| score(set.get(*member))))
            }
            ("ZRANK", [key, member]) => rank(sorted(&self.get(key)).iter(), member),
            ("ZREVRANK", [key, member]) => rank(sorted(&self.get(key)).iter().rev(), member),
            ("ZCOUNT", [key, min, max]) => count(self.select(key, &[min, max, b"BYSCORE"]).len()),
            ("ZLEXCOUNT", [key, min, max]) => count(self.select(key, &[min, max, b"BYLEX"]).len()),
            ("ZRANGE", [key, words @ ..]) => entries(self.select(key, words), words),
            // The older spellings of the same.
            ("ZREVRANGE", [key, words @ ..]) => self.range(key, words, &[b"REV"]),
            ("ZRANGEBYSCORE", [key, words @ ..]) => self.range(key, words, &[b"BYSCORE"]),
            ("ZREVRANGEBYSCORE", [key, words @ ..]) => self.range(key, words, &[b"BYSCORE", b"REV"]),
            ("ZRANGEBYLEX", [key, words @ ..]) => self.range(key, words, &[b"BYLEX"]),
            ("ZREVRANGEBYLEX", [key, words @ ..]) => self.range(key, words, &[b"BYLEX", b"REV"]),
            ("ZRANGESTORE", [to, from, words @ ..]) => {
                let selected = self.select(from, words);
                self.store(to, selected)
            }
            ("ZREMRANGEBYRANK", [key, min, max]) => self.remove(key, &[min, max]),
            ("ZREMRANGEBYSCORE", [key, min, max]) => self.remove(key, &[min, max, b"BYSCORE"]),
            ("ZREMRANGEBYLEX", [key, min, max]) => self.remove(key, &[min, max, b"BYLEX"]),
            ("ZPOPMIN" | "ZPOPMAX", [key, many @ ..]) => {
                let many = many.first().map_or(1, |many| integer(many) as usize);
                entries(self.pop(key, name == "ZPOPMAX", many), &[b"WITHSCORES"])
            }
            ("ZMPOP", [b"2", first, second, end, b"COUNT", many]) => {
                let keys = [first, second];
                let Some(key) = keys.into_iter().find(|key| self.sets.contains_key(**key)) else {
                    return Ok(Reply::NilArray);
                };
                let popped = self.pop(key, *end == b"MAX", integer(many) as usize);
                let pairs = popped.into_iter().map(|entry| entries(vec![entry], &[b"WITHSCORES"]));
                array([Reply::Bulk(key.to_vec()), array(pairs)].into_iter())
            }
            ("ZUNION" | "ZINTER" | "ZDIFF", words) => entries(self.combine(name, words), words),
            ("ZUNIONSTORE" | "ZINTERSTORE" | "ZDIFFSTORE", [to, words @ ..]) => {
                let combined = self.combine(name.trim_end_matches("STORE"), words);
                self.store(to, combined)
            }
            ("ZINTERCARD", words) => {
                let limit = integer(words[words.len() - 1]) as usize;
                let found = self.combine("ZINTER", words).len();
                count(if limit == 0 { found } else { found.min(limit) })
            }
            ("DEL", [key]) => count(usize::from(self.sets.remove(*key).is_some())),
            ("EXISTS", [key]) => count(usize::from(self.sets.contains_key(*key))),
            ("TYPE", [key]) => {
                Reply::Simple(if self.sets.contains_key(*key) { b"zset".into() } else { b"none".into() })
            }
            ("RENAME", [from, to]) => {
                let set = self.sets.remove(*from).ok_or("ERR no such key")?;
                self.put(to, set);
                Reply::Simple(b"OK".to_vec())
            }
            ("COPY", [from, to, b"REPLACE"]) => {
                if from == to {
                    return Err("ERR source and destination objects are the same");
                }
                let set = self.get(from);
                let copied = !set.is_empty();
                if copied {
                    self.put(to, set);
                }
                count(usize::from(copied))
            }
            _ => panic!("the model does not know {name} with {} arguments", args.len()),
        })
    }

    fn get(&self, key: &[u8]) -> Set {
        self.sets.get(key).cloned().unwrap_or_default()
    }

    fn put(&mut self, key: &[u8], set: Set) {
        if set.is_empty() {
            self.sets.remove(key);
        } else {
            self.sets.insert(key.to_vec(), set);
        }
    }

    fn add(&mut self, key: &[u8], words: Args) -> Outcome {
        let is_option = |word: &&&[u8]| [&b"NX"[..], b"XX", b"GT", b"LT", b"CH", b"INCR"].contains(*word);
        let (options, pairs) = words.split_at(words.iter().take_while(is_option).count());
        let has = |option: &[u8]| options.contains(&option);
        let mut set = self.get(key);
        let (mut new, mut changed, mut answer) = (0, 0, Reply::NilBulk);
        for pair in pairs.chunks(2) {
            let (given, member) = (number(pair[0]), pair[1]);
            let old = set.get(member).copied();
            if has(b"NX") && old.is_some() || has(b"XX") && old.is_none() {
                continue;
            }
            let score = if has(b"INCR") { old.unwrap_or(0.0) + given } else { given };
            if score.is_nan() {
                return Err(NOT_A_NUMBER);
            }
            if old.is_some_and(|old| has(b"GT") && score <= old || has(b"LT") && score >= old) {
                continue;
            }
            new += usize::from(old.is_none());
            changed += usize::from(old.is_some_and(|old| old != score));
            set.insert(member.to_vec(), score);
            answer = self::score(Some(&score));
        }
        self.put(key, set);
        Ok(if has(b"INCR") { answer } else { count(if has(b"CH") { new + changed } else { new }) })
    }

    fn range(&self, key: &[u8], words: Args, more: Args) -> Reply {
        entries(self.select(key, &[words, more].concat()), words)
    }

    /// The entries that a range names, in its order: `MIN MAX [BYSCORE|BYLEX] [REV] [LIMIT OFFSET COUNT]`.
    fn select(&self, key: &[u8], words: Args) -> Vec<Entry> {
        let has = |option: &[u8]| words.contains(&option);
        let mut all = sorted(&self.get(key));
        let (mut min, mut max) = (words[0], words[1]);
        if has(b"REV") {
            all.reverse();
        }
        if !has(b"BYSCORE") && !has(b"BYLEX") {
            let len = all.len() as i64;
            let place = |at: i64| if at < 0 { len + at } else { at };
            let (first, last) = (place(integer(min)).max(0), place(integer(max)));
            return all
                .into_iter()
                .enumerate()
                .filter(|(at, _)| (first..=last).contains(&(*at as i64)))
                .map(second)
                .collect();
        }
        if has(b"REV") {
            (min, max) = (max, min);
        }
        let inside = |(member, score): &Entry| match has(b"BYSCORE") {
            true => {
                is_past_score(min, *score, |bound, score| bound < score)
                    && is_past_score(max, *score, |bound, score| bound > score)
            }
            false => is_past_bytes(min, member, false) && is_past_bytes(max, member, true),
        };
        let selected = all.into_iter().filter(inside);
        match words.iter().position(|word| *word == b"LIMIT") {
            None => selected.collect(),
            Some(at) => match (integer(words[at + 1]), integer(words[at + 2])) {
                (offset, ..0) => selected.skip(offset as usize).collect(),
                (offset, many) => selected.skip(offset as usize).take(many as usize).collect(),
            },
        }
    }

    fn remove(&mut self, key: &[u8], words: Args) -> Reply {
        let selected = self.select(key, words);
        let mut set = self.get(key);
        for (member, _) in &selected {
            set.remove(member);
        }
        self.put(key, set);
        count(selected.len())
    }

    fn pop(&mut self, key: &[u8], from_the_end: bool, many: usize) -> Vec<Entry> {
        let mut set = self.get(key);
        let mut all = sorted(&set);
        if from_the_end {
            all.reverse();
        }
        all.truncate(many);
        for (member, _) in &all {
            set.remove(member);
        }
        self.put(key, set);
        all
    }

    fn store(&mut self, key: &[u8], entries: Vec<Entry>) -> Reply {
        let stored = entries.len();
        self.put(key, entries.into_iter().collect());
        count(stored)
    }

    /// `COUNT KEY... [WEIGHTS ...] [AGGREGATE SUM|MIN|MAX]`
    fn combine(&self, name: &str, words: Args) -> Vec<Entry> {
        let keys = &words[1..=integer(words[0]) as usize];
        let after = |option: &[u8]| words.iter().position(|word| *word == option).map(|at| &words[at + 1..]);
        let sets: Vec<Set> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| {
                let weight = after(b"WEIGHTS").map_or(1.0, |weights| number(weights[at]));
                self.get(key).into_iter().map(|(member, score)| (member, or_zero(score * weight))).collect()
            })
            .collect();
        let aggregate = |a: f64, b: f64| match after(b"AGGREGATE").map(|words| words[0]) {
            Some(b"MIN") => a.min(b),
            Some(b"MAX") => a.max(b),
            _ => or_zero(a + b),
        };
        let members: BTreeSet<&Vec<u8>> = sets.iter().flat_map(BTreeMap::keys).collect();
        let mut combined = Set::new();
        for member in members {
            let scores: Vec<f64> = sets.iter().filter_map(|set| set.get(member).copied()).collect();
            let belongs = match name {
                "ZUNION" => true,
                "ZINTER" => scores.len() == sets.len(),
                _ => sets[0].contains_key(member) && scores.len() == 1,
            };
            if belongs {
                let score = scores.into_iter().reduce(aggregate).expect("somebody has this member");
                combined.insert(member.clone(), score);
            }
        }
        sorted(&combined)
    }
}

fn sorted(set: &Set) -> Vec<Entry> {
    let mut entries: Vec<Entry> = set.iter().map(|(member, score)| (member.clone(), *score)).collect();
    // The map is in the order of its members, and this sort keeps the order of equal scores.
    entries.sort_by(|(_, a), (_, b)| a.partial_cmp(b).expect("a score is a number"));
    entries
}

fn second<A, B>((_, b): (A, B)) -> B {
    b
}

/// Whether a score is on the right side of a bound, `5` or `(5`.
fn is_past_score(bound: &[u8], score: f64, is_past: impl Fn(f64, f64) -> bool) -> bool {
    match bound.strip_prefix(b"(") {
        Some(bound) => is_past(number(bound), score),
        None => is_past(number(bound), score) || number(bound) == score,
    }
}

/// Whether a member is on the right side of a bound: `-`, `+`, `[member` or `(member`.
fn is_past_bytes(bound: &[u8], member: &[u8], below: bool) -> bool {
    let (kind, limit) = bound.split_first().expect("a bound");
    match (kind, below) {
        (b'-', below) => !below,
        (b'+', below) => below,
        (b'[', _) if member == limit => true,
        (_, true) => member < limit,
        (_, false) => member > limit,
    }
}

/// Infinities that cancel out are 0.
fn or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

fn number(text: &[u8]) -> f64 {
    std::str::from_utf8(text).expect("a number").parse().expect("a number")
}

fn integer(text: &[u8]) -> i64 {
    std::str::from_utf8(text).expect("an integer").parse().expect("an integer")
}

fn rank<'a>(mut entries: impl Iterator<Item = &'a Entry>, member: &[u8]) -> Reply {
    entries.position(|(other, _)| other == member).map_or(Reply::NilBulk, count)
}

fn count(n: usize) -> Reply {
    Reply::Integer(n as i64)
}

fn score(score: Option<&f64>) -> Reply {
    score.map_or(Reply::NilBulk, |score| Reply::Bulk(score.to_string().into_bytes()))
}

/// Members, with their scores if the words ask for them.
fn entries(entries: Vec<Entry>, words: Args) -> Reply {
    let with_scores = words.contains(&b"WITHSCORES".as_slice());
    array(entries.into_iter().flat_map(|(member, score)| {
        let score = with_scores.then(|| self::score(Some(&score)));
        std::iter::once(Reply::Bulk(member)).chain(score)
    }))
}

fn array(items: impl Iterator<Item = Reply>) -> Reply {
    Reply::Array(items.collect())
}
