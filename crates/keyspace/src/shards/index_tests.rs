//! How much work pending changes of an index are, after the index was built at once or backfilled.

use super::locked::{Keyspace, Locked};
use crate::effects::Effect;
use crate::index::{Definition, Index, Indexes};
use crate::storage::Key;
use crate::types::{Thresholds, hash};
use std::sync::Arc;

const RECORDS: usize = 2000;

fn set(locked: &mut Locked<'_>, number: usize, score: usize) {
    let (name, score) = (number.to_string(), score.to_string());
    let change = hash::Change::Set { fields: &[(b"score", score.as_bytes())], keep_deadlines: false };
    locked.apply(0, &Effect::change(Key::new(name.as_bytes()), change), &Thresholds::default());
}

#[test]
fn a_few_changes_do_not_rewrite_an_index_that_was_just_made() {
    for is_backfilled in [false, true] {
        let keyspace = Keyspace::new(1);
        let mut locked = keyspace.lock_all();
        (0..RECORDS).for_each(|number| set(&mut locked, number, number));
        let definition = Definition { prefixes: vec![Vec::new()], field: b"score".to_vec(), ..Definition::default() };
        let index = Arc::new(Index::new(b"i", definition));
        locked.set_indexes(&Indexes::default().with(index.clone()));
        if is_backfilled {
            let mut from = Some(0);
            while let Some(position) = from {
                from = locked.index_some(position, 100);
            }
        } else {
            locked.build_index(0);
        }
        index.set_built();
        set(&mut locked, 7, RECORDS);
        assert!(!locked.nth(0).db(0).part_will_be_rewritten(0), "backfilled: {is_backfilled}");
        locked.apply_pending(0);
        assert_eq!(locked.nth(0).db(0).part(0).map(|part| part.len()), Some(RECORDS));
        (0..RECORDS / 10).for_each(|number| set(&mut locked, number, RECORDS + number));
        assert!(locked.nth(0).db(0).part_will_be_rewritten(0), "backfilled: {is_backfilled}");
    }
}
