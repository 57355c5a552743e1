//! A queue as CLAIM promises it, on plain lists: records, indexes as questions, and clients that wait in the order in
//! which they came. Knows what every claim and wait must come to; refuses to know how an engine finds it.

use std::collections::BTreeMap;

pub(crate) type Fields = BTreeMap<String, String>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) fields: Fields,
    pub(crate) deadline_ms: Option<u64>,
    /// The criteria of waiters that have set it aside as it is.
    refused_by: Vec<String>,
}

/// What an index asks of a record.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) create: &'static str,
    prefix: &'static str,
    field: &'static str,
    only: Option<(bool, [&'static str; 2])>,
}

pub(crate) const INDEXES: [Definition; 3] = [
    Definition {
        name: "due",
        create: "IDX.CREATE due PREFIX 1 job: FIELD run_at ONLY state 2 pending running",
        prefix: "job:",
        field: "run_at",
        only: Some((true, ["pending", "running"])),
    },
    Definition {
        name: "low",
        create: "IDX.CREATE low PREFIX 1 job: FIELD prio EXCLUDE state 2 done dead",
        prefix: "job:",
        field: "prio",
        only: Some((false, ["done", "dead"])),
    },
    Definition {
        name: "any",
        create: "IDX.CREATE any PREFIX 1 job: FIELD run_at",
        prefix: "job:",
        field: "run_at",
        only: None,
    },
];

impl Definition {
    fn score(&self, name: &str, record: &Record) -> Option<f64> {
        if !name.starts_with(self.prefix) {
            return None;
        }
        if let Some((only, values)) = self.only {
            let is_one = record.fields.get("state").is_some_and(|state| values.contains(&&**state));
            if is_one != only {
                return None;
            }
        }
        record.fields.get(self.field)?.parse().ok().filter(|score: &f64| score.is_finite())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    Score(f64, bool),
    Now(i64, bool),
}

impl Bound {
    fn at(self, now_ms: u64) -> (f64, bool) {
        match self {
            Bound::Score(score, excluded) => (score, excluded),
            Bound::Now(offset_ms, excluded) => ((now_ms as i64 + offset_ms) as f64, excluded),
        }
    }

    fn text(self) -> String {
        let mark = |excluded| if excluded { "(" } else { "" };
        match self {
            Bound::Score(score, excluded) => format!("{}{score}", mark(excluded)),
            Bound::Now(0, excluded) => format!("{}NOW", mark(excluded)),
            Bound::Now(offset_ms, excluded) => format!("{}NOW{offset_ms:+}", mark(excluded)),
        }
    }
}

/// A value of SET or ELSE.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Set {
    Text(&'static str),
    Now(i64),
}

impl Set {
    fn at(self, now_ms: u64) -> String {
        match self {
            Set::Text(text) => text.into(),
            Set::Now(offset_ms) => (now_ms as i64 + offset_ms).to_string(),
        }
    }

    fn text(self) -> String {
        match self {
            Set::Text(text) => text.into(),
            Set::Now(offset_ms) => format!("NOW{offset_ms:+}"),
        }
    }
}

pub(crate) type Pairs = Vec<(&'static str, Set)>;

#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) indexes: Vec<usize>,
    pub(crate) min: Option<Bound>,
    pub(crate) max: Option<Bound>,
    pub(crate) condition: Option<(&'static str, Vec<&'static str>)>,
    pub(crate) set: Pairs,
    /// The field, and the most that it may be with what is set beyond that.
    pub(crate) counter: Option<(&'static str, Option<(i64, Pairs)>)>,
    pub(crate) count: Option<usize>,
    pub(crate) block_ms: Option<u64>,
}

impl Claim {
    pub(crate) fn line(&self) -> String {
        let pairs = |pairs: &[(&str, Set)]| {
            let text: String = pairs.iter().map(|(field, value)| format!(" {field} {}", value.text())).collect();
            format!("{}{text}", pairs.len())
        };
        let mut line = format!("CLAIM {}", self.indexes.len());
        self.indexes.iter().for_each(|index| line += &format!(" {}", INDEXES[*index].name));
        if let Some(min) = self.min {
            line += &format!(" MIN {}", min.text());
        }
        if let Some(max) = self.max {
            line += &format!(" MAX {}", max.text());
        }
        if let Some((field, values)) = &self.condition {
            line += &format!(" WHERE {field} {} {}", values.len(), values.join(" "));
        }
        line += &format!(" SET {}", pairs(&self.set));
        if let Some((field, limit)) = &self.counter {
            line += &format!(" COUNTER {field}");
            if let Some((max, otherwise)) = limit {
                line += &format!(" UPTO {max} ELSE {}", pairs(otherwise));
            }
        }
        if let Some(count) = self.count {
            line += &format!(" COUNT {count}");
        }
        if let Some(block_ms) = self.block_ms {
            line += &format!(" BLOCK {block_ms}");
        }
        line
    }

    /// Equal for two claims that want the same records.
    fn criteria(&self) -> String {
        let counter = self.counter.as_ref().map(|(field, limit)| (field, limit.as_ref().map(|limit| limit.0)));
        let (min, max) = (Bound::Score(f64::NEG_INFINITY, false), Bound::Score(f64::INFINITY, false));
        let range = (self.min.unwrap_or(min), self.max.unwrap_or(max));
        format!("{range:?}{:?}{counter:?}", self.condition)
    }

    fn has(&self, score: f64, now_ms: u64) -> bool {
        let above = |(min, excluded)| if excluded { score > min } else { score >= min };
        let below = |(max, excluded)| if excluded { score < max } else { score <= max };
        self.min.is_none_or(|min| above(min.at(now_ms))) && self.max.is_none_or(|max| below(max.at(now_ms)))
    }

    /// What becomes of a record: `None` when it does not qualify, else its attempt, or that it was claimed too often.
    fn judge(&self, record: &Record) -> Option<Verdict> {
        if let Some((field, values)) = &self.condition
            && !record.fields.get(*field).is_some_and(|value| values.contains(&&**value))
        {
            return None;
        }
        let Some((field, limit)) = &self.counter else { return Some(Verdict::Claimed(None)) };
        let attempts = record.fields.get(*field).map_or(Some(0), |text| text.parse::<i64>().ok());
        match (limit, attempts.map(|attempts| attempts + 1)) {
            (None, None) => None,
            (Some((max, _)), attempt) if attempt.is_none_or(|attempt| attempt > *max) => Some(Verdict::SetAside),
            (_, attempt) => Some(Verdict::Claimed(attempt)),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Claimed(Option<i64>),
    SetAside,
}

/// A row of a reply.
pub(crate) type Row = (String, f64, Fields);

#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) id: usize,
    pub(crate) db: usize,
    pub(crate) claim: Claim,
    pub(crate) until_ms: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) dbs: [BTreeMap<String, Record>; 2],
    /// In the order in which they came.
    pub(crate) waiters: Vec<Waiter>,
}

impl Model {
    /// Removes what has expired.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        for db in &mut self.dbs {
            db.retain(|_, record| record.deadline_ms.is_none_or(|deadline_ms| deadline_ms > now_ms));
        }
    }

    pub(crate) fn set(&mut self, db: usize, name: &str, fields: &[(&str, String)]) {
        let record = self.dbs[db].entry(name.into()).or_default();
        record.refused_by.clear();
        fields.iter().for_each(|(field, value)| drop(record.fields.insert((*field).into(), value.clone())));
    }

    pub(crate) fn delete_fields(&mut self, db: usize, name: &str, fields: &[&str]) {
        let Some(record) = self.dbs[db].get_mut(name) else { return };
        let before = record.fields.len();
        fields.iter().for_each(|field| drop(record.fields.remove(*field)));
        if record.fields.len() < before {
            record.refused_by.clear();
        }
        if record.fields.is_empty() {
            self.dbs[db].remove(name);
        }
    }

    /// A record comes from elsewhere, or everything is looked at anew.
    pub(crate) fn put(&mut self, db: usize, name: &str, mut record: Record) {
        record.refused_by.clear();
        self.dbs[db].insert(name.into(), record);
    }

    pub(crate) fn swap(&mut self) {
        self.dbs.swap(0, 1);
        self.dbs.iter_mut().flat_map(|db| db.values_mut()).for_each(|record| record.refused_by.clear());
    }

    /// The records of an index within a claim's range, in their order.
    fn found(&self, db: usize, index: usize, claim: &Claim, now_ms: u64) -> Vec<(f64, String)> {
        let score = |(name, record): (&String, &Record)| {
            INDEXES[index]
                .score(name, record)
                .filter(|score| claim.has(*score, now_ms))
                .map(|score| (score, name.clone()))
        };
        let mut found: Vec<(f64, String)> = self.dbs[db].iter().filter_map(score).collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
        found
    }

    /// Claims records at once. True beside them when anything was set aside.
    fn claim_by(&mut self, db: usize, claim: &Claim, now_ms: u64, waits: bool) -> (Vec<Row>, bool) {
        let (mut rows, mut judged, mut set_aside) = (Vec::new(), Vec::new(), false);
        let criteria = claim.criteria();
        for index in &claim.indexes {
            for (score, name) in self.found(db, *index, claim, now_ms) {
                let record = self.dbs[db].get_mut(&name).expect("it was just found");
                let Some(verdict) = claim.judge(record).filter(|_| !judged.contains(&name)) else { continue };
                let set = match (verdict, &claim.counter) {
                    (Verdict::SetAside, Some((_, Some((_, otherwise))))) => otherwise,
                    _ => &claim.set,
                };
                if verdict == Verdict::SetAside && waits && record.refused_by.contains(&criteria) {
                    continue;
                }
                judged.push(name.clone());
                set.iter().for_each(|(field, value)| drop(record.fields.insert((*field).into(), value.at(now_ms))));
                match verdict {
                    Verdict::SetAside => {
                        match waits {
                            true => record.refused_by.push(criteria.clone()),
                            false => record.refused_by.clear(),
                        }
                        set_aside = true;
                    }
                    Verdict::Claimed(attempt) => {
                        record.refused_by.clear();
                        if let (Some(attempt), Some((field, _))) = (attempt, &claim.counter) {
                            record.fields.insert((*field).into(), attempt.to_string());
                        }
                        rows.push((name, score, record.fields.clone()));
                    }
                }
                if rows.len() == claim.count.unwrap_or(1) {
                    return (rows, set_aside);
                }
            }
            if !rows.is_empty() {
                break;
            }
        }
        (rows, set_aside)
    }

    /// A client claims. Nothing is found when clients wait for the same in all of its indexes.
    pub(crate) fn claim(&mut self, db: usize, claim: &Claim, now_ms: u64) -> Vec<Row> {
        let waits_there = |index: &usize| {
            self.waiters.iter().any(|waiter| {
                waiter.db == db && waiter.claim.indexes.contains(index) && waiter.claim.criteria() == claim.criteria()
            })
        };
        if claim.block_ms.is_some() && claim.indexes.iter().all(waits_there) {
            return Vec::new();
        }
        self.claim_by(db, claim, now_ms, false).0
    }

    /// Serves the waiters of some databases: always the first one with a record.
    pub(crate) fn serve(&mut self, dbs: &[usize], now_ms: u64) -> Vec<(Waiter, Vec<Row>)> {
        let mut served = Vec::new();
        loop {
            let (mut next, mut changed) = (None, false);
            for at in 0..self.waiters.len() {
                let waiter = self.waiters[at].clone();
                if !dbs.contains(&waiter.db) {
                    continue;
                }
                let (rows, set_aside) = self.claim_by(waiter.db, &waiter.claim, now_ms, true);
                changed |= set_aside;
                if !rows.is_empty() {
                    next = Some((at, rows));
                    break;
                }
            }
            match next {
                Some((at, rows)) => served.push((self.waiters.remove(at), rows)),
                None if changed => {}
                None => return served,
            }
        }
    }

    /// The waiters whose time is up.
    pub(crate) fn time_out(&mut self, now_ms: u64) -> Vec<Waiter> {
        let is_over = |waiter: &Waiter| waiter.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        let over = self.waiters.iter().filter(|waiter| is_over(waiter)).cloned().collect();
        self.waiters.retain(|waiter| !is_over(waiter));
        over
    }
}
