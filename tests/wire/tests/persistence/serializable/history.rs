//! A history of transactions, and whether there is an order in which they could have run one after the other. Knows nothing of
//! commands, sockets and crashes.
//!
//! Every transaction writes its own number, and reads each key before it writes it. So the values of a key form a chain, and
//! whoever reads a value tells with it which transactions came before and which after.

use std::collections::{BTreeMap, BTreeSet};

/// Who wrote a value; `None` is the value before the first.
pub(crate) type Writer = Option<u64>;

/// A transaction as its client has seen it.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    /// Its number, which is what it writes.
    pub(crate) number: u64,
    /// Keys and whose values it read, before it wrote there itself.
    pub(crate) reads: Vec<(usize, Writer)>,
    /// Keys that it wrote, all of which it had read.
    pub(crate) writes: BTreeSet<usize>,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Outcome {
    /// With this number of its batch, if the client was told one.
    Committed(Option<i64>),
    /// It wrote nothing; what it read is of one state all the same.
    Refused,
    /// The answer was lost.
    Unknown,
}

/// Checks a history against what the keys hold at its end.
pub(crate) fn check(history: &[Transaction], last: &[Writer]) -> Result<(), String> {
    let by_number: BTreeMap<u64, &Transaction> = history.iter().map(|one| (one.number, one)).collect();
    let written = written(history, &by_number, last)?;
    let next = chains(&by_number, &written, last)?;
    order(history, &by_number, &written, &next)
}

/// The transactions that have written: those that were committed, and those whose answer was lost and whose values were
/// seen.
fn written(
    history: &[Transaction],
    by_number: &BTreeMap<u64, &Transaction>,
    last: &[Writer],
) -> Result<BTreeSet<u64>, String> {
    let committed = history.iter().filter(|one| matches!(one.outcome, Outcome::Committed(_)));
    let mut written: BTreeSet<u64> = committed.map(|one| one.number).collect();
    let read = history.iter().flat_map(|one| &one.reads).filter_map(|(_, writer)| *writer);
    for number in read.chain(last.iter().filter_map(|writer| *writer)) {
        let of = by_number.get(&number).ok_or_else(|| format!("a value {number} that nobody wrote"))?;
        if of.outcome == Outcome::Refused {
            return Err(format!("a value of a transaction that was refused was seen: {of:?}"));
        }
        written.insert(number);
    }
    Ok(written)
}

/// For each key and each of its values, who wrote the next one.
fn chains(
    by_number: &BTreeMap<u64, &Transaction>,
    written: &BTreeSet<u64>,
    last: &[Writer],
) -> Result<BTreeMap<(usize, Writer), u64>, String> {
    let mut next: BTreeMap<(usize, Writer), u64> = BTreeMap::new();
    let mut writes = vec![0; last.len()];
    for number in written {
        let of = by_number[number];
        for key in &of.writes {
            let (_, before) = of.reads.iter().find(|(read, _)| read == key).expect("it reads what it writes");
            writes[*key] += 1;
            if let Some(other) = next.insert((*key, *before), *number) {
                return Err(format!("an update of key {key} was lost: {:?} and {of:?}", by_number[&other]));
            }
        }
    }
    for (key, last) in last.iter().enumerate() {
        let (mut value, mut length) = (None, 0);
        while let Some(number) = next.get(&(key, value)) {
            value = Some(*number);
            length += 1;
        }
        if (value, length) != (*last, writes[key]) {
            return Err(format!(
                "key {key} holds {last:?}; of {} writes, {length} follow each other, the last of them {value:?}",
                writes[key]
            ));
        }
    }
    Ok(next)
}

/// There is an order in which every transaction reads what the ones before it have written. Numbers of batches agree with it.
fn order(
    history: &[Transaction],
    by_number: &BTreeMap<u64, &Transaction>,
    written: &BTreeSet<u64>,
    next: &BTreeMap<(usize, Writer), u64>,
) -> Result<(), String> {
    let mut after: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    // Of what is unknown and was not seen, the replies belong to one state all the same.
    for of in history {
        for (key, writer) in &of.reads {
            if let Some(writer) = writer {
                let wrote = by_number.get(writer).is_some_and(|one| one.writes.contains(key));
                if !wrote || !written.contains(writer) {
                    return Err(format!("{of:?} has read a value of key {key} that was not written"));
                }
                after.entry(*writer).or_default().insert(of.number);
            }
            match next.get(&(*key, *writer)) {
                Some(following) if *following != of.number => {
                    after.entry(of.number).or_default().insert(*following);
                }
                _ => {}
            }
        }
    }
    let batch = |number: &u64| match by_number[number] {
        Transaction { outcome: Outcome::Committed(batch), writes, .. } if !writes.is_empty() => *batch,
        _ => None,
    };
    for (before, followers) in &after {
        for follower in followers {
            if batch(before).zip(batch(follower)).is_some_and(|(before, follower)| before >= follower) {
                return Err(format!("out of order: {:?} and {:?}", by_number[before], by_number[follower]));
            }
        }
    }
    // What nobody else comes before is taken away, again and again.
    let mut waits_for: BTreeMap<u64, usize> = history.iter().map(|one| (one.number, 0)).collect();
    after.values().flatten().for_each(|number| *waits_for.get_mut(number).expect("in the history") += 1);
    let mut ready: Vec<u64> = waits_for.iter().filter(|(_, waits)| **waits == 0).map(|(number, _)| *number).collect();
    while let Some(number) = ready.pop() {
        waits_for.remove(&number);
        for follower in after.get(&number).into_iter().flatten() {
            let waits = waits_for.get_mut(follower).expect("it waits for this one");
            *waits -= 1;
            if *waits == 0 {
                ready.push(*follower);
            }
        }
    }
    match waits_for.is_empty() {
        true => Ok(()),
        false => {
            let circle: Vec<_> = waits_for.keys().take(8).map(|number| by_number[number]).collect();
            Err(format!("no order explains what {} transactions have read; some of them: {circle:#?}", waits_for.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn one(number: u64, reads: &[(usize, Writer)], writes: &[usize], outcome: Outcome) -> Transaction {
        Transaction { number, reads: reads.to_vec(), writes: writes.iter().copied().collect(), outcome }
    }

    const DONE: Outcome = Outcome::Committed(None);

    #[test]
    fn a_history_that_could_be_one_after_the_other_is_accepted() {
        let history = [
            one(1, &[(0, None)], &[0], Outcome::Committed(Some(5))),
            one(2, &[(0, Some(1)), (1, None)], &[1], Outcome::Committed(Some(6))),
            one(3, &[(0, Some(1)), (1, None)], &[], Outcome::Refused),
            one(4, &[(1, Some(2))], &[1], Outcome::Unknown),
        ];
        assert_eq!(check(&history, &[Some(1), Some(2)]), Ok(()));
        assert_eq!(check(&history, &[Some(1), Some(4)]), Ok(()), "the one whose answer was lost was committed");
    }

    #[test]
    fn what_is_wrong_is_found() {
        let error = |history: &[Transaction], last: &[Writer]| check(history, last).unwrap_err();
        let first = one(1, &[(0, None)], &[0], DONE);
        assert!(error(from_ref(&first), &[None]).contains("key 0 holds None"), "a lost write");
        assert!(error(from_ref(&first), &[Some(9)]).contains("that nobody wrote"));
        let same = one(2, &[(0, None)], &[0], DONE);
        assert!(error(&[first.clone(), same], &[Some(2)]).contains("an update of key 0 was lost"));
        let refused = one(3, &[(0, Some(1))], &[0], Outcome::Refused);
        assert!(error(&[first.clone(), refused], &[Some(3)]).contains("that was refused"));
        let half = one(4, &[(0, Some(1)), (1, None)], &[0, 1], Outcome::Unknown);
        assert!(error(&[first.clone(), half], &[Some(4), None]).contains("key 1 holds None"), "half a transaction");
        let skewed = [one(5, &[(0, None), (1, None)], &[0], DONE), one(6, &[(0, None), (1, None)], &[1], DONE)];
        assert!(error(&skewed, &[Some(5), Some(6)]).contains("no order explains"), "write skew");
        let both = one(7, &[(0, None), (1, None)], &[0, 1], DONE);
        let torn = one(8, &[(0, Some(7)), (1, None)], &[], Outcome::Refused);
        assert!(error(&[both, torn], &[Some(7), Some(7)]).contains("no order explains"), "of two states");
        let early = one(9, &[(0, Some(10))], &[0], Outcome::Committed(Some(3)));
        let late = one(10, &[(0, None)], &[0], Outcome::Committed(Some(4)));
        assert!(error(&[early, late], &[Some(9)]).contains("out of order"));
    }
}
