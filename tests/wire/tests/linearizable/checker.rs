//! Is there one order of a history's operations in which each took effect at an instant between its request and its
//! reply, and in which the model gives the replies that were given?
//!
//! The search is Wing and Gong's, with Lowe's memory of configurations: which operations have taken effect and what
//! they have led to says all about what may follow, so each such pair is tried once. It is short enough to
//! need no crate, and here it knows of pipelines and of what was never answered.

use std::collections::HashSet;

use crate::history::{Answer, Operation};
use crate::model::Model;

/// As many operations as a `Set` has room for.
pub(crate) const OPERATIONS_MAX: usize = 128;

/// A set of operations by their places in the history.
type Set = u128;

/// The beginning of an order that explains the most.
#[derive(Clone, Default)]
pub(crate) struct Impasse {
    /// How many operations that were answered are in it.
    explained: u32,
    pub(crate) order: Vec<usize>,
    /// What would be next, had it been told something else.
    pub(crate) next: Vec<usize>,
}

pub(crate) fn check(history: &[Operation]) -> Result<(), Impasse> {
    assert!(history.len() <= OPERATIONS_MAX, "{} operations", history.len());
    let mut search = Search::new(history);
    match search.goes_on(0, &Model::default()) {
        true => Ok(()),
        false => Err(search.farthest),
    }
}

struct Search<'a> {
    history: &'a [Operation],
    /// The operations that must take effect: those that have a reply.
    needed: Set,
    /// For each operation, those of its client before it.
    earlier: Vec<Set>,
    /// Those that returned first are tried first: it is the likeliest order.
    by_return: Vec<usize>,
    tried: HashSet<(Set, Model)>,
    order: Vec<usize>,
    farthest: Impasse,
}

impl<'a> Search<'a> {
    fn new(history: &'a [Operation]) -> Search<'a> {
        let places = 0..history.len();
        let set = |belongs: &dyn Fn(usize) -> bool| {
            places.clone().filter(|at| belongs(*at)).fold(0, |set: Set, at| set | bit(at))
        };
        let mut by_return: Vec<usize> = places.clone().collect();
        by_return.sort_by_key(|at| history[*at].returned);
        Search {
            history,
            needed: set(&|at| !matches!(history[at].answer, Answer::None)),
            earlier: places
                .clone()
                .map(|at| set(&|other| other < at && history[other].client == history[at].client))
                .collect(),
            by_return,
            tried: HashSet::new(),
            order: Vec::new(),
            farthest: Impasse::default(),
        }
    }

    /// Whether an order that began with the operations `done` and led to `model` can be brought to its end.
    fn goes_on(&mut self, done: Set, model: &Model) -> bool {
        if self.needed & !done == 0 {
            return true;
        }
        let next = self.next(done);
        let explained = (self.needed & done).count_ones();
        if explained > self.farthest.explained || self.farthest.next.is_empty() {
            self.farthest = Impasse { explained, order: self.order.clone(), next: next.clone() };
        }
        for at in next {
            let operation = &self.history[at];
            let mut after = model.clone();
            let reply = after.act(operation.client, &operation.action);
            let fits = match &operation.answer {
                Answer::Reply(given) => *given == reply,
                Answer::Any | Answer::None => true,
            };
            if fits && self.tried.insert((done | bit(at), after.clone())) {
                self.order.push(at);
                if self.goes_on(done | bit(at), &after) {
                    return true;
                }
                self.order.pop();
            }
        }
        false
    }

    /// What may take effect next.
    fn next(&self, done: Set) -> Vec<usize> {
        let all = || self.history.iter().enumerate();
        // Nothing that was invoked later than this.
        let bound = all().filter(|(at, _)| self.needed & !done & bit(*at) != 0).map(|(_, other)| other.returned).min();
        // Nothing that was over before this.
        let reached = all().filter(|(at, _)| done & bit(*at) != 0).map(|(_, other)| other.invoked).max();
        let may = |at: &usize| {
            let operation = &self.history[*at];
            done & bit(*at) == 0
                && self.earlier[*at] & !done == 0
                && bound.is_none_or(|bound| operation.invoked < bound)
                && reached.is_none_or(|reached| operation.returned > reached)
        };
        self.by_return.iter().copied().filter(may).collect()
    }
}

fn bit(at: usize) -> Set {
    1 << at
}
