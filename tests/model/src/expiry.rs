//! Time across writers, a model of its own: whether a deadline that was judged to be over can lie ahead again. One key
//! with a deadline stands for expiry, for the end of a CLAIM's lease, and for every stamp with the server's time. Knows
//! the log only as the time that its newest frame carries.

use stateright::{Model, Property};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// Each writer judges by its own clock.
    OwnClock,
    /// Frames carry the time; a new writer does not go behind that of the last frame.
    FrameTime,
    /// Frames carry the latest time by which their writer may judge before the next one is acknowledged; a new writer
    /// begins there.
    Ceiling,
    /// The same, and a writer that gives the log up stops its time a little later, and before that names this time: the next
    /// one begins there, and not a lease later.
    Release,
    /// The same, without stopping.
    ReleaseGoesOn,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    pub(crate) rule: Rule,
    pub(crate) clock_max: u8,
    pub(crate) lease: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    writer: usize,
    /// The wall clocks, which may be set to any time.
    clocks: [u8; 2],
    /// The writer never judges by an earlier time.
    floor: u8,
    /// What the newest frame in the log carries.
    in_log: u8,
    /// What the newest frame carries that the writer knows to be in the log.
    acknowledged: u8,
    /// Where the time of the writer stops: it gives the log up.
    stops_at: Option<u8>,
    /// The latest time by which a reply was judged.
    judged_by: u8,
    went_back: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    SetClock {
        server: usize,
        to: u8,
    },
    Append,
    Acknowledge,
    Judge,
    TakeOver,
    /// The writer begins to give the log up.
    Stop,
    /// The frame with which it does is stored.
    Release,
}

impl Rule {
    fn has_ceiling(self) -> bool {
        matches!(self, Rule::Ceiling | Rule::Release | Rule::ReleaseGoesOn)
    }

    fn has_release(self) -> bool {
        matches!(self, Rule::Release | Rule::ReleaseGoesOn)
    }
}

impl Expiry {
    fn now(&self, state: &State) -> u8 {
        let clock = state.clocks[state.writer];
        match self.rule {
            Rule::OwnClock => clock,
            Rule::FrameTime => clock.max(state.floor),
            Rule::Release => clock.max(state.floor).min(state.acknowledged).min(state.stops_at.unwrap_or(u8::MAX)),
            Rule::Ceiling | Rule::ReleaseGoesOn => clock.max(state.floor).min(state.acknowledged),
        }
    }
}

impl Model for Expiry {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            writer: 0,
            clocks: [0, 0],
            floor: 0,
            in_log: 0,
            acknowledged: 0,
            stops_at: None,
            judged_by: 0,
            went_back: false,
        }]
    }

    fn actions(&self, _: &State, steps: &mut Vec<Step>) {
        for server in 0..2 {
            steps.extend((0..=self.clock_max).map(|to| Step::SetClock { server, to }));
        }
        steps.extend([Step::Append, Step::Acknowledge, Step::Judge, Step::TakeOver]);
        if self.rule.has_release() {
            steps.extend([Step::Stop, Step::Release]);
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut next = before.clone();
        match step {
            Step::SetClock { server, to } => next.clocks[server] = to,
            // The release is the last frame of its writer, which knows of no other while it is on its way.
            Step::Append | Step::Acknowledge | Step::Stop if before.stops_at.is_some() => return None,
            Step::Append => {
                let now = before.clocks[before.writer].max(before.floor);
                let carried = if self.rule.has_ceiling() { now + self.lease } else { now };
                next.in_log = before.in_log.max(carried);
                (next.in_log <= self.clock_max + self.lease).then_some(())?;
            }
            Step::Acknowledge => next.acknowledged = before.in_log,
            Step::Judge => {
                let now = self.now(before);
                next.went_back = now < before.judged_by;
                next.judged_by = before.judged_by.max(now);
                if self.rule != Rule::OwnClock {
                    next.floor = before.floor.max(now);
                }
            }
            // All frames before are acknowledged: there is one on the way at most.
            Step::Stop => {
                (before.acknowledged == before.in_log).then_some(())?;
                next.stops_at = Some((self.now(before) + 1).min(before.acknowledged));
            }
            Step::Release => next.in_log = before.stops_at?,
            Step::TakeOver => {
                next.stops_at = None;
                next.writer = 1 - before.writer;
                next.floor = before.in_log;
                // Its epoch record carries the time too, and is acknowledged before it judges anything.
                next.acknowledged = before.in_log;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Expiry>> {
        vec![Property::always("what has expired does not come back", |_: &Expiry, state: &State| !state.went_back)]
    }
}
