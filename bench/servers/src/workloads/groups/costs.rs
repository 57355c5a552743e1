//! What groups cost a write and a claim: an index with groups beside the same index without, in one server and in turns. Knows
//! nothing of limits.

use anyhow::Result;

use super::jobs::{Claims, GROUPED, JobIndex, Kind, PLACE, PLAIN, TENANT, TENANTS};
use crate::load::{KEYS, Random, Template, Traffic, expect};
use crate::measure::{Metric, Sample};
use crate::servers::{Persistence, Server, ServerSpec};
use crate::workloads::OwnFigures;
use crate::workloads::in_turns::{InTurns, in_turns, in_turns_of};

/// Writes that move a record: of its score, of its group, and of the field that says whether it is held.
pub(crate) fn writes(subject: &ServerSpec, jobs: u64) -> Result<Vec<OwnFigures>> {
    let fields = [
        ("HSET of the score", Field::Score),
        ("HSET of the group", Field::Tenant),
        ("HSET of what is held", Field::State),
    ];
    written(subject, jobs, &fields, MOVED_TURNS)
}

/// Writes that leave a record where it is.
pub(crate) fn other_writes(subject: &ServerSpec, jobs: u64) -> Result<Vec<OwnFigures>> {
    written(subject, jobs, &[("HSET of another field", Field::Other)], OTHER_TURNS)
}

/// CLAIM from both indexes.
pub(crate) fn claims(subject: &ServerSpec, _amount: u64) -> Result<Vec<OwnFigures>> {
    let server = loaded(subject, KEYS)?;
    let (mut grouped, mut plain) = (Claims::new(GROUPED), Claims::new(PLAIN));
    let mut lines = Vec::new();
    for (pipeline, requests) in [(1, 30_000), (16, 60_000)] {
        let turns = in_turns(&server, pipeline, requests, &mut grouped, &mut plain)?;
        lines.push(OwnFigures::new("CLAIM, no limits", Some(pipeline), beside_plain(&turns)));
    }
    ensure_whole(&server, KEYS)?;
    Ok(lines)
}

/// The settings by default.
pub(super) const PERSISTENCE: Persistence = Persistence::EverySecond;

/// Pairs of runs, of which the median counts: more where a hundredth matters.
const MOVED_TURNS: usize = 11;
const OTHER_TURNS: usize = 31;

/// The CPU time of the one, of the other, and their ratio.
pub(super) fn beside_plain(turns: &InTurns) -> Sample {
    Sample::from([
        (Metric::ServerCpu, turns.one[&Metric::ServerCpu]),
        (Metric::PlainCpu, turns.other[&Metric::ServerCpu]),
        (Metric::OfPlainCpu, turns.cpu_ratio),
    ])
}

fn loaded(subject: &ServerSpec, jobs: u64) -> Result<Server> {
    let server = Server::start(subject, PERSISTENCE)?;
    let mut control = server.connect()?;
    for index in [GROUPED, PLAIN] {
        index.create(&mut control)?;
        index.load(&server, Kind::Open, jobs, TENANTS)?;
    }
    ensure_whole(&server, jobs)?;
    Ok(server)
}

fn ensure_whole(server: &Server, jobs: u64) -> Result<()> {
    let mut control = server.connect()?;
    [GROUPED, PLAIN].into_iter().try_for_each(|index| index.ensure_records(&mut control, jobs))
}

fn written(subject: &ServerSpec, jobs: u64, fields: &[(&'static str, Field)], turns: usize) -> Result<Vec<OwnFigures>> {
    let server = loaded(subject, jobs)?;
    let mut lines = Vec::new();
    for (about, field) in fields {
        let mut grouped = Writes::new(GROUPED, *field, jobs);
        let mut plain = Writes::new(PLAIN, *field, jobs);
        for (pipeline, requests) in [(1, 30_000), (16, 120_000)] {
            let turns = in_turns_of(turns, &server, pipeline, requests, &mut grouped, &mut plain)?;
            lines.push(OwnFigures::new(about, Some(pipeline), beside_plain(&turns)));
        }
    }
    ensure_whole(&server, jobs)?;
    Ok(lines)
}

/// What is written.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    Score,
    Tenant,
    State,
    Other,
}

/// Writes of one field of random jobs. What they write is, nearly always, not what is there.
struct Writes {
    random: Random,
    field: Field,
    /// Of each state in turn; of other fields there is one.
    templates: Vec<Template>,
    /// How often each job was written.
    written: Vec<u8>,
}

impl Writes {
    fn new(index: JobIndex, field: Field, jobs: u64) -> Self {
        let templates = match field {
            Field::Score => vec![index.write_of("run_at", &format!("1{PLACE}"))],
            Field::Tenant => vec![index.write_of(TENANT, &Kind::Open.tenant())],
            Field::State => ["running", "pending"].map(|state| index.write_of("state", state)).into(),
            Field::Other => vec![index.write_of("current_step", PLACE)],
        };
        Writes { random: Random(0), field, templates, written: vec![0; jobs as usize] }
    }
}

/// The last twelve digits of 1 May 2026, and a day in milliseconds.
const TIME_MS: u64 = 777_600_000_000;
const DAY_MS: u64 = 86_400_000;

impl Traffic for Writes {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let job = self.random.below(self.written.len() as u64);
        let written = &mut self.written[job as usize];
        let template = &self.templates[usize::from(*written) % self.templates.len()];
        *written = written.wrapping_add(1);
        let value = match self.field {
            Field::Score => TIME_MS + self.random.below(DAY_MS),
            Field::Tenant => self.random.below(TENANTS),
            Field::State | Field::Other => self.random.below(8),
        };
        template.write(requests, [job, value].into_iter());
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, b":0\r\n")?.then_some(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(field: Field, times: usize) -> String {
        let mut writes = Writes::new(GROUPED, field, 1);
        let mut requests = Vec::new();
        (0..times).for_each(|_| writes.next_request(0, &mut requests));
        String::from_utf8(requests).unwrap()
    }

    #[test]
    fn a_job_is_held_and_let_go_in_turns() {
        let requests = written(Field::State, 3);
        let states: Vec<_> = requests.split("$5\r\nstate\r\n$7\r\n").skip(1).map(|rest| &rest[..7]).collect();
        assert_eq!(states, ["running", "pending", "running"]);
    }

    #[test]
    fn each_write_names_its_field_and_one_job() {
        assert!(written(Field::Score, 1).contains("job:g:o000000000000\r\n$6\r\nrun_at\r\n$13\r\n17776"));
        assert!(written(Field::Tenant, 1).contains("$6\r\ntenant\r\n$14\r\no-000000000"));
        assert!(written(Field::Other, 1).contains("$12\r\ncurrent_step\r\n$12\r\n00000000000"));
    }
}
