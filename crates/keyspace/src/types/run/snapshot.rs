//! The state that the events of a run add up to: its status, and that of its steps. Knows what each known type of event
//! changes; refuses to know how it is replied. Data and names stay in the events.
//!
//! The same reducer updates the snapshot at every append and replays it from the first event.

use super::event::{EventField, KnownType};
use super::keys::Keys;
use super::log::{At, EventLog, Numbered};
use super::pages::Pages;
use crate::storage::NameHash;
use crate::storage::size_class::size_class;

/// What a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunStatus {
    #[default]
    Pending,
    Running,
    Paused,
    Completed,
    Failed,
    Cancelled,
}

impl RunStatus {
    pub const ALL: [RunStatus; 6] = [
        RunStatus::Pending,
        RunStatus::Running,
        RunStatus::Paused,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Running => "running",
            RunStatus::Paused => "paused",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    /// True when no event can change it any more.
    pub fn is_final(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }
}

/// What a step of a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepStatus {
    #[default]
    Pending,
    Running,
    Retrying,
    Completed,
    Failed,
    Skipped,
}

impl StepStatus {
    pub fn name(self) -> &'static str {
        match self {
            StepStatus::Pending => "pending",
            StepStatus::Running => "running",
            StepStatus::Retrying => "retrying",
            StepStatus::Completed => "completed",
            StepStatus::Failed => "failed",
            StepStatus::Skipped => "skipped",
        }
    }
}

/// The state of a run after some of its events.
#[derive(Clone)]
pub(super) struct Snapshot {
    status: RunStatus,
    /// The number of events so far.
    pub(super) last: u32,
    /// [`NEVER`] when it has not started.
    started_ms: u64,
    updated_ms: u64,
    /// The event with its data.
    data: Option<At>,
    steps: Option<Box<Steps>>,
}

/// Steps in the order in which they were first named.
#[derive(Clone, Default)]
struct Steps {
    steps: Pages<Step>,
    names: Keys<()>,
}

#[derive(Clone)]
struct Step {
    /// Its name, if it is short, and the event that first named it.
    name: ShortName,
    named: At,
    /// The event with its data.
    data: At,
    status: StepStatus,
    attempts: u32,
    /// [`NEVER`] when it has not started.
    started_ms: u64,
    updated_ms: u64,
}

/// Later than any time.
const NEVER: u64 = u64::MAX;

impl Default for Snapshot {
    fn default() -> Snapshot {
        let status = RunStatus::default();
        Snapshot { status, last: 0, started_ms: NEVER, updated_ms: NEVER, data: None, steps: None }
    }
}

impl Snapshot {
    /// Applies the next event, which is at this position.
    pub(super) fn add(&mut self, log: &EventLog, at: At, next: &Numbered<'_>) {
        self.last = next.number as u32;
        let Some(known) = next.event.known_type() else { return };
        match known {
            KnownType::RunStarted | KnownType::RunResumed => self.move_run(RunStatus::Running, known, at, next),
            KnownType::RunPaused => self.move_run(RunStatus::Paused, known, at, next),
            KnownType::RunCompleted => self.move_run(RunStatus::Completed, known, at, next),
            KnownType::RunFailed => self.move_run(RunStatus::Failed, known, at, next),
            KnownType::RunCancelled => self.move_run(RunStatus::Cancelled, known, at, next),
            KnownType::StepStarted => self.move_step(log, Some(StepStatus::Running), known, at, next),
            KnownType::StepRetried => self.move_step(log, Some(StepStatus::Retrying), known, at, next),
            KnownType::StepCompleted => self.move_step(log, Some(StepStatus::Completed), known, at, next),
            KnownType::StepFailed => self.move_step(log, Some(StepStatus::Failed), known, at, next),
            KnownType::StepSkipped => self.move_step(log, Some(StepStatus::Skipped), known, at, next),
            KnownType::StepCorrected => self.move_step(log, None, known, at, next),
        }
    }

    fn move_run(&mut self, to: RunStatus, known: KnownType, at: At, next: &Numbered<'_>) {
        self.updated_ms = next.time_ms;
        if self.status.is_final() {
            return;
        }
        self.status = to;
        self.data = Some(at);
        if known == KnownType::RunStarted && self.started_ms == NEVER {
            self.started_ms = next.time_ms;
        }
    }

    fn move_step(&mut self, log: &EventLog, to: Option<StepStatus>, known: KnownType, at: At, next: &Numbered<'_>) {
        let Some(name) = next.event.field(EventField::Step) else { return };
        self.updated_ms = next.time_ms;
        let step = self.steps.get_or_insert_default().named(log, name, at);
        step.data = at;
        step.updated_ms = next.time_ms;
        if let Some(status) = to {
            step.status = status;
        }
        if known == KnownType::StepStarted {
            step.attempts += 1;
            step.started_ms = step.started_ms.min(next.time_ms);
        }
    }

    /// A copy for reading, without the table of step names.
    pub(super) fn without_names(&self) -> Snapshot {
        let steps = self.steps.as_ref().map(|steps| Steps { steps: steps.steps.clone(), names: Keys::default() });
        Snapshot { steps: steps.map(Box::new), ..*self }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let bytes_of =
            |steps: &Steps| size_class(size_of::<Steps>()) + steps.steps.heap_bytes() + steps.names.heap_bytes();
        self.steps.as_deref().map_or(0, bytes_of)
    }

    #[inline]
    pub(super) fn status(&self) -> RunStatus {
        self.status
    }
}

impl Steps {
    /// The step with this name, created if it is new; the event at this position names it.
    fn named(&mut self, log: &EventLog, name: &[u8], at: At) -> &mut Step {
        let hash = NameHash::of(name).position();
        let is_named = |number: u32, _| self.steps.get(number as usize).is_some_and(|step| step.name(log) == name);
        let number = match self.names.find(hash, is_named) {
            Some((number, _)) => number as usize,
            None => {
                self.names.push(hash, (), std::iter::repeat(()));
                self.steps.push(Step {
                    name: ShortName::of(name),
                    named: at,
                    data: at,
                    status: StepStatus::default(),
                    attempts: 0,
                    started_ms: NEVER,
                    updated_ms: 0,
                });
                self.steps.len() - 1
            }
        };
        self.steps.get_mut(number).expect("a step that has a number is there")
    }
}

impl Step {
    #[inline]
    fn name<'a>(&'a self, log: &'a EventLog) -> &'a [u8] {
        match self.name.get() {
            Some(name) => name,
            None => log.at(self.named).1.field(EventField::Step).unwrap_or_default(),
        }
    }
}

/// A name that is short enough to be inline: every event of a step compares it, and the event that has it may not be in
/// the CPU's cache.
#[derive(Clone)]
struct ShortName {
    /// For a longer name, more than there is room for.
    len: u8,
    bytes: [u8; ShortName::BYTES_MAX],
}

impl ShortName {
    const BYTES_MAX: usize = 15;

    fn of(name: &[u8]) -> ShortName {
        let mut bytes = [0; ShortName::BYTES_MAX];
        match bytes.get_mut(..name.len()) {
            Some(place) => place.copy_from_slice(name),
            None => return ShortName { len: u8::MAX, bytes },
        }
        ShortName { len: name.len() as u8, bytes }
    }

    #[inline]
    fn get(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::from(self.len))
    }
}

/// A readable snapshot of a run.
#[derive(Clone, Copy)]
pub struct SnapshotRef<'a> {
    pub(super) log: &'a EventLog,
    pub(super) snapshot: &'a Snapshot,
}

/// A readable step of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRef<'a> {
    pub name: &'a [u8],
    pub status: StepStatus,
    pub attempts: u32,
    pub started_ms: Option<u64>,
    pub updated_ms: u64,
    pub data: &'a [u8],
}

impl<'a> SnapshotRef<'a> {
    pub fn status(&self) -> RunStatus {
        self.snapshot.status
    }

    /// The number of the last event in it.
    pub fn last(&self) -> u64 {
        self.snapshot.last.into()
    }

    pub fn started_ms(&self) -> Option<u64> {
        Some(self.snapshot.started_ms).filter(|time_ms| *time_ms != NEVER)
    }

    pub fn updated_ms(&self) -> Option<u64> {
        Some(self.snapshot.updated_ms).filter(|time_ms| *time_ms != NEVER)
    }

    /// The data of the last event that changed the status.
    pub fn data(&self) -> Option<&'a [u8]> {
        self.snapshot.data.map(|at| self.log.at(at).1.data)
    }

    pub fn step_count(&self) -> usize {
        self.snapshot.steps.as_ref().map_or(0, |steps| steps.steps.len())
    }

    /// The steps, in the order in which they were first named, from number `first` on.
    pub fn steps_from(&self, first: usize) -> impl Iterator<Item = StepRef<'a>> {
        let (log, steps) = (self.log, self.snapshot.steps.as_deref());
        steps.into_iter().flat_map(move |steps| steps.steps.iter_from(first)).map(move |step| StepRef {
            name: step.name(log),
            status: step.status,
            attempts: step.attempts,
            started_ms: Some(step.started_ms).filter(|time_ms| *time_ms != NEVER),
            updated_ms: step.updated_ms,
            data: log.at(step.data).1.data,
        })
    }
}
