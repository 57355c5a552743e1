//! The protocol of the replicated log as a model of `stateright`. The way through: `step` lists what can happen;
//! `writer`, `append`, `replies`, `follower` and `snapshots` say what it does, and name the mutations where they
//! differ; `invariants` judges the state that results.

mod append;
pub(crate) mod config;
mod follower;
pub(crate) mod invariants;
mod replies;
mod snapshots;
pub(crate) mod state;
mod step;
mod writer;
mod writes;

use config::Config;
use state::State;
use stateright::{Model, Property};
use step::Step;

impl Model for Config {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.steps(state, steps);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        self.after(state, step)
    }

    fn properties(&self) -> Vec<Property<Config>> {
        invariants::INVARIANTS.iter().map(|invariant| Property::always(invariant.name, invariant.holds)).collect()
    }
}
