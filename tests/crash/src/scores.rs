//! What the load's commands on sorted sets do to the model. Scores are sums of quarters: exact in every float format, and
//! Rust prints them as Redis does.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::Reply;

use crate::commands::Call;
use crate::model::{Entry, Place, Value, int, parse_score};

/// Members and their scores.
pub(crate) type Scores = BTreeMap<Vec<u8>, f64>;

impl Call<'_> {
    pub(crate) fn scores(&self) -> Option<&Scores> {
        self.entry().map(|entry| match &entry.value {
            Value::Scores(scores) => scores,
            _ => panic!("a command for sorted sets on another type"),
        })
    }

    /// The members to be changed in place. An empty set is left behind only until `drop_if_no_scores`.
    fn scores_mut(&mut self) -> &mut Scores {
        if self.entry().is_none() {
            self.put(Entry { value: Value::Scores(BTreeMap::new()), deadline: None });
        }
        match &mut self.entry_mut().expect("it was just put").value {
            Value::Scores(scores) => scores,
            _ => panic!("a command for sorted sets on another type"),
        }
    }

    fn drop_if_no_scores(&mut self) {
        if self.scores().is_some_and(BTreeMap::is_empty) {
            self.take();
        }
    }

    /// `ZADD key [NX | XX CH] score member …`
    pub(crate) fn zadd(&mut self, rest: &[Vec<u8>]) -> Reply {
        let (only_new, only_old) = (rest[0] == b"NX", rest[0] == b"XX");
        let pairs = &rest[if only_old { 2 } else { usize::from(only_new) }..];
        let scores = self.scores_mut();
        let (mut added, mut changed) = (0, 0);
        for pair in pairs.chunks(2) {
            let (score, member) = (score(&pair[0]), &pair[1]);
            match scores.get_mut(member) {
                Some(_) if only_new => {}
                Some(old) => {
                    changed += i64::from(*old != score);
                    *old = score;
                }
                None if only_old => {}
                None => {
                    scores.insert(member.clone(), score);
                    added += 1;
                }
            }
        }
        self.drop_if_no_scores();
        Reply::Integer(if only_old { changed } else { added })
    }

    pub(crate) fn zincrby(&mut self, rest: &[Vec<u8>]) -> Reply {
        let sum = self.scores_mut().entry(rest[1].clone()).or_insert(0.0);
        *sum += score(&rest[0]);
        Reply::Bulk(sum.to_string().into_bytes())
    }

    pub(crate) fn zrem(&mut self, members: &[Vec<u8>]) -> Reply {
        let scores = self.scores_mut();
        let gone = members.iter().filter(|member| scores.remove(*member).is_some()).count();
        self.drop_if_no_scores();
        Reply::Integer(gone as i64)
    }

    pub(crate) fn zpopmin(&mut self, rest: &[Vec<u8>]) -> Reply {
        let first = self.first(int(&rest[0]) as usize);
        self.zrem(&first.iter().map(|(_, member)| member.clone()).collect::<Vec<_>>());
        let flat = first.into_iter().flat_map(|(score, member)| [member, score.to_string().into_bytes()]);
        Reply::Array(flat.map(Reply::Bulk).collect())
    }

    /// `ZREMRANGEBYRANK key 0 last`
    pub(crate) fn zremrangebyrank(&mut self, rest: &[Vec<u8>]) -> Reply {
        let first = self.first(int(&rest[1]) as usize + 1);
        self.zrem(&first.into_iter().map(|(_, member)| member).collect::<Vec<_>>())
    }

    /// `ZRANGESTORE destination source 0 last`: here `self.key` is the destination.
    pub(crate) fn zrangestore(&mut self, rest: &[Vec<u8>]) -> Reply {
        let source = Call { key: &rest[0], ..self.reborrow() }.first(int(&rest[2]) as usize + 1);
        let count = source.len() as i64;
        self.take();
        if !source.is_empty() {
            let scores = source.into_iter().map(|(score, member)| (member, score)).collect();
            let entry = Entry { value: Value::Scores(scores), deadline: None };
            self.state.entries.insert(Place::new(self.db, self.key), Arc::new(entry));
        }
        Reply::Integer(count)
    }

    /// The members with the lowest scores, in order.
    fn first(&self, count: usize) -> Vec<(f64, Vec<u8>)> {
        let Some(scores) = self.scores() else { return Vec::new() };
        let mut ordered: Vec<_> = scores.iter().map(|(member, score)| (*score, member.clone())).collect();
        ordered.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        ordered.truncate(count);
        ordered
    }
}

/// Reads a score that the load wrote.
fn score(digits: &[u8]) -> f64 {
    parse_score(digits).unwrap_or_else(|| panic!("{} is no score", wire::quote(digits)))
}
