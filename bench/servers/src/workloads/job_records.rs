//! Job records as a task queue would write them, the same for every server and every run. Knows nothing of servers.

use crate::load::Random;

/// The fields of a job record, in the order they are written.
pub(crate) const FIELDS: [&str; 12] = [
    "state",
    "task_type",
    "task_id",
    "worker",
    "current_step",
    "step_count",
    "created_at",
    "updated_at",
    "timeout_at",
    "error",
    "params_ref",
    "result_ref",
];

/// The twelve values of job `number`, whose id is `task_id`. Values that do not apply to its state are empty.
///
/// Every value is at most 64 bytes: beyond that Redis changes to a much larger form of hash, and the comparison would
/// flatter us.
pub(crate) fn job_record(number: u64, task_id: &str) -> [String; 12] {
    let mut random = Random(number);
    let state = match random.below(100) {
        0..70 => "completed",
        70..80 => "running",
        80..88 => "pending",
        88..92 => "claimed",
        92..98 => "failed",
        _ => "cancelled",
    };
    let step_count = 1 + random.below(8);
    let current_step = match state {
        "completed" => step_count,
        "pending" | "claimed" => 0,
        _ => random.below(step_count),
    };
    let worker = format!("worker-{:03}", random.below(200));
    let created_at_ms = FIRST_JOB_MS + number * 437 + random.below(437);
    let updated_at_ms = created_at_ms + random.below(120_000);
    let timeout_at_ms = updated_at_ms + 300_000;
    let error = ERRORS[random.below(ERRORS.len() as u64) as usize];

    let waiting = state == "pending";
    let terminal = matches!(state, "completed" | "failed" | "cancelled");
    [
        state.to_string(),
        TASK_TYPE.to_string(),
        task_id.to_string(),
        when(!waiting, worker),
        current_step.to_string(),
        step_count.to_string(),
        created_at_ms.to_string(),
        updated_at_ms.to_string(),
        when(!terminal, timeout_at_ms.to_string()),
        when(state == "failed", error.to_string()),
        format!("s3://gbe-params/{TASK_TYPE}/{task_id}.json"),
        when(state == "completed", format!("s3://gbe-results/{TASK_TYPE}/{task_id}.json")),
    ]
}

/// The same, but for a hundred jobs in every backlog that have been running for too long, and for those that are as old
/// as they and long done: see `Backlog`.
pub(crate) fn backlog_record(backlog: Backlog, number: u64, task_id: &str) -> [String; 12] {
    let mut values = job_record(number, task_id);
    let state = match backlog.part(number) {
        Part::Stuck => STUCK_STATE,
        Part::Done => "completed",
        Part::Young => return values,
    };
    values[position("state")] = state.to_string();
    values[position("updated_at")] = (FIRST_JOB_MS - 1 - Random(number).below(DAY_MS)).to_string();
    values
}

/// A large set of job records, in which someone looks for those that are stuck.
#[derive(Clone, Copy)]
pub(crate) struct Backlog {
    pub(crate) records: u64,
}

#[derive(PartialEq)]
enum Part {
    Stuck,
    Done,
    Young,
}

impl Backlog {
    pub(crate) const STUCK: u64 = 100;
    /// Others that changed last at such a time, for each stuck one: an index by time alone has them all.
    const DONE_EACH: u64 = 100;

    /// The numbers of the stuck jobs.
    pub(crate) fn stuck(self) -> impl Iterator<Item = u64> {
        (0..self.records).filter(move |number| self.part(*number) == Part::Stuck)
    }

    fn part(self, number: u64) -> Part {
        let stretch = self.records / Self::STUCK;
        assert!(stretch > Self::DONE_EACH, "a backlog too small for its old jobs");
        match number % stretch {
            0 => Part::Stuck,
            1..=Self::DONE_EACH => Part::Done,
            _ => Part::Young,
        }
    }
}

/// The state of the stuck jobs, and of many others.
pub(crate) const STUCK_STATE: &str = "running";

/// Those that changed last before this are old.
pub(crate) const OLD_BEFORE_MS: u64 = FIRST_JOB_MS;

const DAY_MS: u64 = 86_400_000;

fn position(field: &str) -> usize {
    FIELDS.iter().position(|name| *name == field).expect("a field of every record")
}

/// The key of job `number` in the large data sets.
pub(crate) fn job_key(number: u64) -> String {
    format!("gbe:state:tasks:{TASK_TYPE}:job_{number:06}")
}

const TASK_TYPE: &str = "email-send";

/// 1 January 2026.
const FIRST_JOB_MS: u64 = 1_767_225_600_000;

const ERRORS: [&str; 4] = [
    "smtp: 451 4.7.1 greylisted, try again later",
    "smtp: 550 5.1.1 no such user",
    "template `welcome` not found",
    "timed out after 30000 ms waiting for the relay",
];

fn when(applies: bool, value: String) -> String {
    if applies { value } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: u64, field: &str) -> String {
        let position = FIELDS.iter().position(|name| *name == field).unwrap();
        job_record(number, &format!("job_{number:06}"))[position].clone()
    }

    #[test]
    fn a_record_is_the_same_every_time() {
        assert_eq!(job_record(123, "job_000123"), job_record(123, "job_000123"));
        assert_eq!(value(123, "task_id"), "job_000123");
    }

    #[test]
    fn no_value_forces_redis_into_its_larger_form() {
        for number in 0..10_000 {
            for value in job_record(number, &format!("job_{number:012}")) {
                assert!(value.len() <= 64, "{value}");
            }
        }
    }

    #[test]
    fn records_vary_and_errors_are_rare() {
        let count = |field: &str, wanted: &str| (0..10_000).filter(|n| value(*n, field) == wanted).count();
        assert!((6_500..7_500).contains(&count("state", "completed")));
        assert!((400..800).contains(&count("state", "failed")));
        assert!(count("error", "") > 9_000);
        assert!((1..200).contains(&count("worker", "worker-007")));
    }

    #[test]
    fn a_backlog_has_a_hundred_stuck_jobs_among_ten_thousand_that_are_as_old() {
        let backlog = Backlog { records: 20_000 };
        let records: Vec<_> = (0..backlog.records).map(|number| backlog_record(backlog, number, "job")).collect();
        let old = |record: &[String; 12]| record[position("updated_at")].parse::<u64>().unwrap() < OLD_BEFORE_MS;
        let stuck = |record: &[String; 12]| old(record) && record[position("state")] == STUCK_STATE;
        assert_eq!(records.iter().filter(|record| old(record)).count(), 10_100);
        let found: Vec<_> = (0..backlog.records).filter(|number| stuck(&records[*number as usize])).collect();
        assert_eq!(found, backlog.stuck().collect::<Vec<_>>());
        assert_eq!(found.len(), 100);
    }

    #[test]
    fn a_finished_job_has_a_result_and_no_timeout() {
        let done = (0..).find(|number| value(*number, "state") == "completed").unwrap();
        assert!(value(done, "result_ref").starts_with("s3://"));
        assert_eq!(value(done, "timeout_at"), "");
        assert_eq!(value(done, "current_step"), value(done, "step_count"));
    }
}
