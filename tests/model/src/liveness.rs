//! Liveness: from every state in which the bounds of the run leave room, a state can be reached in which a writer
//! acknowledges. Searches by itself, because `stateright` has no such property. Knows no single step.

use crate::protocol::config::{Config, Reads};
use crate::protocol::state::{Role, State};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

pub(crate) struct Outcome {
    pub(crate) states: usize,
    /// States with room.
    pub(crate) judged: usize,
    /// Those of them from which no writer acknowledges any more.
    pub(crate) stuck: usize,
    /// The state that is stuck after the fewest steps.
    pub(crate) example: Option<State>,
    pub(crate) is_complete: bool,
}

pub(crate) fn check(config: &Config, states_max: usize) -> Outcome {
    let graph = Graph::explore(config, states_max);
    let reached = graph.reach_backwards();
    let is_stuck = |at: usize| graph.judged[at] && !reached[at];
    let stuck = (0..graph.before.len()).filter(|at| is_stuck(*at));
    Outcome {
        states: graph.before.len(),
        judged: graph.judged.iter().filter(|judged| **judged).count(),
        stuck: stuck.count(),
        example: graph.examples.iter().find(|(at, _)| is_stuck(*at as usize)).map(|(_, state)| state.clone()),
        is_complete: graph.unexplored.is_empty(),
    }
}

/// How many states with room are kept, for an example.
const EXAMPLES_MAX: usize = 200_000;

/// The states of a run by number, in the order in which they were found.
struct Graph {
    /// From where each state is reached in one step.
    before: Vec<Vec<u32>>,
    /// A writer can acknowledge.
    good: Vec<bool>,
    /// The bounds leave room.
    judged: Vec<bool>,
    /// What was found, and not looked at, because there were too many.
    unexplored: Vec<u32>,
    examples: Vec<(u32, State)>,
}

impl Graph {
    fn explore(config: &Config, states_max: usize) -> Graph {
        let mut graph = Graph {
            before: Vec::new(),
            good: Vec::new(),
            judged: Vec::new(),
            unexplored: Vec::new(),
            examples: Vec::new(),
        };
        let first = config.start();
        let mut numbers = HashMap::from([(fingerprint(&first), graph.add(config, &first))]);
        let mut queue = VecDeque::from([(0, first)]);
        let mut steps = Vec::new();
        while let Some((number, state)) = queue.pop_front() {
            steps.clear();
            config.steps(&state, &mut steps);
            for next in steps.iter().filter_map(|step| config.after(&state, *step)) {
                let found = *numbers.entry(fingerprint(&next)).or_insert_with(|| {
                    let number = graph.add(config, &next);
                    queue.push_back((number, next));
                    number
                });
                graph.before[found as usize].push(number);
            }
            if graph.judged[number as usize] && graph.examples.len() < EXAMPLES_MAX {
                graph.examples.push((number, state));
            }
            if graph.before.len() > states_max {
                break;
            }
        }
        graph.unexplored = queue.into_iter().map(|(number, _)| number).collect();
        graph
    }

    fn add(&mut self, config: &Config, state: &State) -> u32 {
        self.before.push(Vec::new());
        self.good.push(can_acknowledge(config, state));
        self.judged.push(has_room(config, state));
        self.before.len() as u32 - 1
    }

    /// The states from which a good one is reached. What was not explored counts as good: nothing is claimed of it.
    fn reach_backwards(&self) -> Vec<bool> {
        let mut reached = self.good.clone();
        self.unexplored.iter().for_each(|at| reached[*at as usize] = true);
        let mut work: Vec<u32> = (0..reached.len() as u32).filter(|at| reached[*at as usize]).collect();
        while let Some(at) = work.pop() {
            for from in &self.before[at as usize] {
                if !std::mem::replace(&mut reached[*from as usize], true) {
                    work.push(*from);
                }
            }
        }
        reached
    }
}

fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// A writer has the end of the log, nothing in flight, and its lease.
fn can_acknowledge(config: &Config, state: &State) -> bool {
    state.servers.iter().any(|server| {
        let has_lease = config.reads != Reads::Lease || server.lease > 0;
        let has_end = usize::from(server.applied) == state.log.len() && server.pending.is_empty();
        let may_write = server.up && server.role == Role::Writer && !server.releasing && !server.halted;
        may_write && has_end && has_lease
    })
}

/// The bounds still allow a take-over, and what may be on its way before it.
fn has_room(config: &Config, state: &State) -> bool {
    let of_servers =
        state.servers.iter().flat_map(|s| s.pending.iter().map(|pending| pending.frame.epoch).chain([s.epoch]));
    let of_requests = state.requests.iter().map(|request| request.frame.epoch);
    let of_log = state.log.iter().map(|frame| frame.epoch);
    let newest = of_servers.chain(of_requests).chain(of_log).max().unwrap_or(0);
    state.log.len() + 2 <= config.log_max.into()
        && newest < config.epoch_max
        && state.servers.iter().all(|server| server.incarnation < config.incarnation_max)
}
