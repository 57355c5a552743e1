//! Metrics that only Holdfast has. Their names begin with `holdfast_`. Knows how many series each family may have.

use super::Sources;
use super::groups::{GroupFigures, GroupsFigures};
use super::keys::IndexFigures;
use crate::exposition::{Exposition, label};
use engine::acl::Reason;
use engine::clients::account::limits::Limit;
use engine::clients::account::usage::Usage;
use engine::command::registry;
use engine::observability::latency::Durations;
use engine::persistence::Role;
use engine::persistence::journal_state::JournalState;
use engine::usage_by_user;
use keyspace::index::groups::Applied;
use keyspace::types::TYPES;
use keyspace::types::run::RunStatus;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The most users with series of their own. Those that have run fewer commands are counted together.
const USERS_MAX: usize = 64;
/// The most indexes, in one database each, with series of their own. Those with fewer records are counted together.
const INDEXES_MAX: usize = 128;
/// The most characters of a group's name in a label.
const GROUP_LABEL_MAX: usize = 128;
/// The label of what is counted together.
const OTHER: &str = "other";

/// Upper bounds of the latency histograms: powers of two, as the counters have them.
const BOUNDS: [(u64, &str); 12] = [
    (1 << 10, "0.000001024"),
    (1 << 12, "0.000004096"),
    (1 << 14, "0.000016384"),
    (1 << 16, "0.000065536"),
    (1 << 18, "0.000262144"),
    (1 << 20, "0.001048576"),
    (1 << 22, "0.004194304"),
    (1 << 24, "0.016777216"),
    (1 << 26, "0.067108864"),
    (1 << 28, "0.268435456"),
    (1 << 30, "1.073741824"),
    (1 << 32, "4.294967296"),
];

pub(super) fn write(text: &mut Exposition, sources: &Sources<'_>) {
    latency(text, sources);
    threads(text, sources);
    memory(text, sources);
    journal(text, sources);
    replicated_log(text, sources);
    indexes(text, sources);
    groups(text, sources);
    sweepers(text, sources);
    stats(text, sources);
    users(text, sources);
}

fn latency(text: &mut Exposition, Sources { engine, .. }: &Sources<'_>) {
    let help = "How long commands take, by command (latency-tracking).";
    let mut family = text.histograms("holdfast_command_duration_seconds", help);
    for row in registry().rows() {
        let (mut durations, mut ns) = (Durations::default(), 0);
        for metrics in engine.statistics.workers() {
            metrics.histograms.sum_into(row.index, &mut durations);
            ns += metrics.stats.commands[row.index].ns.get();
        }
        let calls = durations.calls();
        if calls > 0 {
            let below = durations.less_than_ns(BOUNDS.map(|(bound_ns, _)| bound_ns));
            let upper: Vec<(&str, u64)> = BOUNDS.iter().zip(below).map(|((_, shown), below)| (*shown, below)).collect();
            family.add_histogram(&[("cmd", &row.full_name)], &upper, calls, ns as f64 / 1e9);
        }
    }
}

/// Worker threads come first among all that run commands.
fn threads(text: &mut Exposition, Sources { engine, .. }: &Sources<'_>) {
    let workers = engine.statistics.workers().iter().take(engine.host.threads());
    let sums = workers.enumerate().map(|(number, metrics)| {
        let commands = &metrics.stats.commands;
        let sum =
            |count: fn(&engine::observability::stats::CommandCounters) -> u64| commands.iter().map(count).sum::<u64>();
        (number.to_string(), sum(|command| command.calls.get()), sum(|command| command.ns.get()))
    });
    let sums: Vec<(String, u64, u64)> = sums.collect();
    text.gauge("holdfast_workers", "Worker threads.", engine.host.threads());
    let mut family = text.counters("holdfast_worker_commands_total", "Commands by worker thread.");
    sums.iter().for_each(|(number, calls, _)| family.add(&[("worker", number)], calls));
    let mut family = text.counters("holdfast_worker_busy_seconds_total", "Time in commands, by worker thread.");
    sums.iter().for_each(|(number, _, ns)| family.add(&[("worker", number)], *ns as f64 / 1e9));
}

fn memory(text: &mut Exposition, Sources { engine, keys, clients, .. }: &Sources<'_>) {
    let used = engine.host.used_memory();
    let startup = engine.statistics.startup_memory.load(Relaxed);
    let clients: u64 = clients.iter().map(|client| client.memory_bytes() as u64).sum();
    let indexes: u64 = keys.indexes.values().map(|index| index.bytes).sum();
    let tables = keys.total().table_bytes.saturating_sub(indexes);
    let (lua, scripts) = (lua::total_bytes() as u64, engine.scripting.scripts.count().1 as u64);
    let parts = [
        ("startup", startup),
        ("clients", clients),
        ("tables", tables),
        ("indexes", indexes),
        ("lua", lua),
        ("scripts", scripts),
    ];
    let known: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let mut family =
        text.gauges("holdfast_memory_part_bytes", "Memory in use by part. values is what no other part is.");
    parts.iter().for_each(|(part, bytes)| family.add(&[("part", part)], bytes));
    family.add(&[("part", "values")], used.saturating_sub(known));
}

fn journal(text: &mut Exposition, Sources { engine, persistence: report, replication, .. }: &Sources<'_>) {
    let state = report.state.unwrap_or(JournalState::Off);
    let mut family = text.gauges("holdfast_journal_state", "1 for the state that the journal is in, 0 for the others.");
    for known in JournalState::ALL {
        family.add(&[("state", known.name())], u8::from(known == state));
    }
    let has_failed = matches!(state, JournalState::Failed | JournalState::Restarting | JournalState::StartFailed);
    let failed = u8::from(has_failed || report.failure.is_some());
    text.gauge("holdfast_journal_failed", "1 while changes cannot be persisted and writes are refused.", failed);
    text.gauge("holdfast_journal_has_room", "1 while the disk has room for the journal.", u8::from(report.has_room));
    text.counter("holdfast_journal_appended_batches_total", "Batches that were appended.", report.sequence);
    text.counter(
        "holdfast_journal_written_batches_total",
        "Batches that were written to the operating system.",
        report.written,
    );
    text.counter("holdfast_journal_durable_batches_total", "Batches that survive a power failure.", report.durable);
    text.gauge("holdfast_journal_size_bytes", "Bytes of the journal that a start would read.", report.journal_bytes);
    text.gauge("holdfast_snapshot_size_bytes", "Bytes of the newest snapshot.", report.snapshot_bytes);
    let age_s = (engine.clock.unix_us() / 1_000_000).saturating_sub(report.last_save_s);
    text.gauge("holdfast_snapshot_age_seconds", "Seconds since the last good snapshot, or the start.", age_s);
    text.counter(
        "holdfast_snapshots_total",
        "Snapshots that were written.",
        report.saves.count + report.compactions.count,
    );
    if let Some(syncs) = &report.syncs {
        let bounds: Vec<(String, u64)> =
            syncs.at_most.iter().map(|(bound_ns, count)| ((*bound_ns as f64 / 1e9).to_string(), *count)).collect();
        let upper: Vec<(&str, u64)> = bounds.iter().map(|(shown, count)| (shown.as_str(), *count)).collect();
        let help = "How long syncs of the journal take, or frames of a log on NATS until they are stored, since it was opened.";
        let mut family = text.histograms("holdfast_journal_sync_seconds", help);
        family.add_histogram(&[], &upper, syncs.count, syncs.sum_ns as f64 / 1e9);
    }
    if let Role::Follower(writer) = &replication.role {
        text.gauge("holdfast_follower_lag_batches", "Batches that are not applied here yet.", writer.lag_batches);
        let seconds = writer.lag_ms as f64 / 1000.0;
        text.gauge("holdfast_follower_lag_seconds", "The age of the oldest of them.", seconds);
    }
}

/// Only of a log that several machines share.
fn replicated_log(text: &mut Exposition, Sources { cluster, .. }: &Sources<'_>) {
    let Some(cluster) = cluster else { return };
    let seconds = |ms: u64| ms as f64 / 1000.0;
    text.gauge("holdfast_log_connected", "1 while a NATS server is connected.", u8::from(cluster.is_connected));
    text.gauge("holdfast_log_epoch", "How often the writer has changed, as of the last frame.", cluster.epoch);
    if let Some(left_ms) = cluster.lease_left_ms {
        let help = "How long this writer may still answer if nothing more is stored; 0: replies wait.";
        text.gauge("holdfast_log_lease_seconds", help, seconds(left_ms));
    }
    text.gauge("holdfast_log_position", "The place of the last frame in the stream.", cluster.position);
    text.counter("holdfast_log_frames_total", "Frames that were stored and read here.", cluster.frames);
    let help = "Since the last frame was stored or read here. A writer stores one every half second.";
    text.gauge("holdfast_log_silent_seconds", help, seconds(cluster.silent_ms));
    text.gauge("holdfast_log_members", "Servers that use the log, with this one.", cluster.members);
    let help = "What the checks of NATS have found. INFO replication has the sentences.";
    text.gauge("holdfast_log_findings", help, cluster.findings.len());
}

fn indexes(text: &mut Exposition, Sources { engine, keys, .. }: &Sources<'_>) {
    let now_ms = engine.clock.unix_us() / 1000;
    let mut by_size: Vec<_> = keys.indexes.iter().collect();
    by_size.sort_by_key(|(_, index)| std::cmp::Reverse(index.entries));
    let mut shown: BTreeMap<[String; 2], IndexFigures> = BTreeMap::new();
    for (place, ((name, db), index)) in by_size.into_iter().enumerate() {
        let labels =
            if place < INDEXES_MAX { [label(name), format!("db{db}")] } else { [OTHER, OTHER].map(str::to_owned) };
        shown.entry(labels).or_default().add(index);
    }
    let mut family = |name, help, value: &dyn Fn(&IndexFigures) -> f64| {
        let mut family = text.gauges(name, help);
        shown.iter().for_each(|([name, db], index)| family.add(&[("index", name), ("db", db)], value(index)));
    };
    family("holdfast_index_entries", "Records by index.", &|index| index.entries as f64);
    family("holdfast_index_due_entries", "Records whose score is not later than now, by index.", &|index| {
        index.due as f64
    });
    family(
        "holdfast_index_oldest_due_seconds",
        "How long the earliest due record has been due, by index; 0 without one. Only of scores that are unix milliseconds.",
        &|index| index.oldest_due_ms.map_or(0.0, |due_ms| now_ms.saturating_sub(due_ms) as f64 / 1000.0),
    );
    family("holdfast_index_waiting_clients", "Clients that wait for a record, by index.", &|index| {
        index.waiting as f64
    });
    family("holdfast_index_bytes", "Memory by index.", &|index| index.bytes as f64);
    let help = "Changes of records that were not in the trees of indexes yet.";
    text.gauge("holdfast_index_pending_changes", help, keys.pending);
}

/// Groups of indexes: all of an index in a database together, and the largest of them one by one.
fn groups(text: &mut Exposition, Sources { engine, groups, .. }: &Sources<'_>) {
    let mut by_size: Vec<_> = groups.indexes.iter().collect();
    by_size.sort_by_key(|(_, index)| std::cmp::Reverse(index.records));
    let mut shown: BTreeMap<[String; 2], GroupTotals> = BTreeMap::new();
    let mut named: BTreeMap<[String; 3], NamedGroup> = BTreeMap::new();
    for (place, ((name, db), index)) in by_size.into_iter().enumerate() {
        let is_other = place >= INDEXES_MAX;
        let labels = if is_other { [OTHER, OTHER].map(str::to_owned) } else { [label(name), format!("db{db}")] };
        if index.is_grouped && index.groups > 0 {
            add_groups(&mut named, &labels, index);
        }
        let totals = shown.entry(labels).or_default();
        totals.add(index);
        totals.limits = totals.limits.or(Some(index.limits)).filter(|_| !is_other);
    }
    let mut family = |name, help, value: &dyn Fn(&GroupTotals) -> Option<f64>| {
        let mut family = text.gauges(name, help);
        for ([name, db], index) in &shown {
            if let Some(value) = value(index) {
                family.add(&[("index", name), ("db", db)], value);
            }
        }
    };
    family("holdfast_index_groups", "Groups by index.", &|index| Some(index.groups as f64));
    family("holdfast_index_held_records", "Records that are held, by index.", &|index| Some(index.held as f64));
    let limit = |limit: fn(Applied) -> Option<f64>| move |index: &GroupTotals| index.limits.and_then(limit);
    family("holdfast_index_held_max", "The most records that may be held in all groups of an index.", &limit(held_max));
    let help = "The rate at which records may be taken from all groups of an index.";
    family("holdfast_index_rate_per_second", help, &limit(rate_per_second));
    family("holdfast_index_paused", "1 while nothing may be taken from an index.", &limit(paused));
    let help = "Groups that have records which their own limits or those of each group keep back, by index and limit.";
    let mut family = text.gauges("holdfast_index_blocked_groups", help);
    for ([name, db], index) in &shown {
        for (limit, count) in ["held", "rate", "pause"].into_iter().zip(index.blocked) {
            family.add(&[("index", name), ("db", db), ("limit", limit)], count);
        }
    }
    let now_ms = engine.clock.unix_us() / 1000;
    let mut family = |name, help, value: &dyn Fn(&NamedGroup) -> Option<f64>| {
        let mut family = text.gauges(name, help);
        for ([index, db, group], figures) in &named {
            if let Some(value) = value(figures) {
                family.add(&[("index", index), ("db", db), ("group", group)], value);
            }
        }
    };
    family("holdfast_group_records", "Records by group.", &|group| Some(group.records as f64));
    family("holdfast_group_held_records", "Records that are held, by group.", &|group| Some(group.held as f64));
    let own = |value: fn(&GroupFigures) -> Option<f64>| move |group: &NamedGroup| group.own.as_ref().and_then(value);
    let help = "How long the earliest due record of a group has been due; 0 without one. Only of scores that are unix milliseconds.";
    family("holdfast_group_oldest_due_seconds", help, &|group| {
        let late = |due_ms| now_ms.saturating_sub(due_ms) as f64 / 1000.0;
        group.own.as_ref().map(|own| own.oldest_due_ms.map_or(0.0, late))
    });
    let help = "1 if the limits allow that a record of a group is taken and held now.";
    family("holdfast_group_may_give", help, &own(|group| Some(f64::from(u8::from(group.may_give)))));
    let help = "The most records of a group that may be held.";
    family("holdfast_group_held_max", help, &own(|group| held_max(group.limits)));
    let help = "The rate at which records of a group may be taken.";
    family("holdfast_group_rate_per_second", help, &own(|group| rate_per_second(group.limits)));
    let help = "The weight of a group.";
    family("holdfast_group_weight", help, &own(|group| Some(f64::from(group.limits.weight) / 1000.0)));
    let help = "1 while nothing may be taken from a group because it is paused.";
    family("holdfast_group_paused", help, &own(|group| paused(group.limits)));
}

/// Figures of the groups of one index in one database, or of several.
#[derive(Default)]
struct GroupTotals {
    groups: u64,
    held: u64,
    /// By cap, by rate and by pause.
    blocked: [u64; 3],
    /// Those of one index: several have none in common.
    limits: Option<Applied>,
}

impl GroupTotals {
    fn add(&mut self, index: &GroupsFigures) {
        self.groups += index.groups;
        self.held += index.held;
        let blocked = [index.blocked.by_cap, index.blocked.by_rate, index.blocked.by_pause];
        self.blocked.iter_mut().zip(blocked).for_each(|(sum, count)| *sum += count as u64);
    }
}

/// Figures of one group, or of several.
#[derive(Default)]
struct NamedGroup {
    records: u64,
    held: u64,
    /// What is known of one group alone. Of several with the same label it is the largest.
    own: Option<GroupFigures>,
}

/// Adds the largest groups of an index, and what is left as one.
fn add_groups(named: &mut BTreeMap<[String; 3], NamedGroup>, [index, db]: &[String; 2], figures: &GroupsFigures) {
    let (mut records, mut held) = (figures.records, figures.held);
    for group in &figures.largest {
        // Records may have come since the totals were read.
        records = records.saturating_sub(group.records);
        held = held.saturating_sub(group.held);
        let sum = named.entry([index.clone(), db.clone(), group_label(&group.name)]).or_default();
        sum.records += group.records;
        sum.held += group.held;
        sum.own.get_or_insert_with(|| group.clone());
    }
    if figures.groups > figures.largest.len() as u64 {
        let rest = named.entry([index.clone(), db.clone(), OTHER.to_owned()]).or_default();
        rest.records += records;
        rest.held += held;
    }
}

/// The name of a group, cut where it is long.
fn group_label(name: &[u8]) -> String {
    let text = label(name);
    match text.char_indices().nth(GROUP_LABEL_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn held_max(limits: Applied) -> Option<f64> {
    limits.held.map(|max| max as f64)
}

fn rate_per_second(limits: Applied) -> Option<f64> {
    limits.rate.map(|rate| rate.takes as f64 * 1000.0 / rate.per_ms as f64)
}

fn paused(limits: Applied) -> Option<f64> {
    Some(f64::from(u8::from(limits.is_paused)))
}

fn sweepers(text: &mut Exposition, Sources { engine, .. }: &Sources<'_>) {
    let reports = engine.sweepers.reports();
    let numbers: Vec<String> = (0..reports.len()).map(|number| number.to_string()).collect();
    let each = || {
        numbers
            .iter()
            .zip(&reports)
            .map(|(number, report)| ([("sweeper", &**number), ("index", &*report.index)], report))
    };
    let mut family = text.counters("holdfast_sweeps_total", "Sweeps of the configured sweepers.");
    each().for_each(|(labels, report)| family.add(&labels, report.sweeps));
    let mut family = text.counters("holdfast_sweeps_failed_total", "Sweeps that have failed.");
    each().for_each(|(labels, report)| family.add(&labels, report.failures));
    let mut family = text.gauges("holdfast_sweeper_failing", "1 if a sweeper's last sweep has failed.");
    each().for_each(|(labels, report)| family.add(&labels, u8::from(report.failure.is_some())));
}

fn stats(text: &mut Exposition, Sources { engine, keys, clients, .. }: &Sources<'_>) {
    let totals = engine.statistics.totals();
    let all = keys.total();
    text.gauge("holdfast_sessions", "Sessions.", all.sessions);
    text.gauge("holdfast_open_runs", "Runs that are not over.", all.open_runs);
    let mut family = text.gauges("holdfast_runs", "Runs by status.");
    let statuses = RunStatus::ALL.into_iter().zip(all.runs);
    statuses.for_each(|(status, count)| family.add(&[("status", status.name())], count));
    let mut family = text.gauges("holdfast_type_keys", "Keys by the type of their values.");
    TYPES.iter().zip(all.by_type).for_each(|(value_type, count)| family.add(&[("type", value_type.name)], count));
    let claimed = totals.records_claimed;
    text.counter("holdfast_claimed_records_total", "Records that CLAIM has given to workers.", claimed);
    let requeued = totals.records_requeued;
    text.counter("holdfast_requeued_records_total", "Records that SWEEP has made due again.", requeued);
    let help = "Records that had no try left, by the command that has found them.";
    let mut family = text.counters("holdfast_dead_letters_total", help);
    family.add(&[("command", "claim")], totals.records_set_aside);
    family.add(&[("command", "sweep")], totals.records_exhausted);
    let in_transaction = clients.iter().filter(|client| client.in_transaction.load(Relaxed)).count();
    text.gauge("holdfast_open_transactions", "Interactive transactions in progress.", in_transaction);
    text.counter("holdfast_changes_total", "Changes of keys.", totals.changes);
    text.counter("holdfast_error_replies_total", "Error replies.", totals.error_replies);
    text.counter("holdfast_expired_fields_total", "Fields of hashes that have expired.", totals.expired_fields);
    let ended = &engine.transactions;
    let mut family = text.counters("holdfast_transactions_total", "Interactive transactions by outcome.");
    for (outcome, count) in [
        ("committed", totals.transactions_committed),
        ("conflicted", ended.conflicts.load(Relaxed)),
        ("rolled_back", ended.rolled_back.load(Relaxed)),
        ("timed_out", ended.timed_out.load(Relaxed)),
    ] {
        family.add(&[("outcome", outcome)], count);
    }
    let (_, _, unread, too_large) = engine.clients.totals();
    let mut family = text.counters("holdfast_clients_closed_total", "Clients that were closed at a limit.");
    for (reason, count) in [("output", unread), ("request", too_large), ("memory", engine.clients.evicted())] {
        family.add(&[("reason", reason)], count);
    }
    let mut family = text.counters("holdfast_acl_denied_total", "Requests that were refused, by what was lacking.");
    for (reason, name) in [
        (Reason::Auth, "password"),
        (Reason::Command, "command"),
        (Reason::Key, "key"),
        (Reason::Channel, "channel"),
        (Reason::Certificate, "certificate"),
        (Reason::Database, "database"),
    ] {
        family.add(&[("reason", name)], engine.acl.denied[reason as usize].load(Relaxed));
    }
    text.counter(
        "holdfast_session_hook_failures_total",
        "Hooks of sessions that have failed.",
        engine.sessions.hook_failures(),
    );
}

/// Figures of one user, or of several.
#[derive(Default)]
struct UserFigures {
    clients: u64,
    memory: u64,
    operations: u64,
    busy_ns: u64,
    bytes_in: u64,
    bytes_out: u64,
    delayed_ms: u64,
    refused: u64,
}

impl UserFigures {
    fn add(&mut self, usage: &Usage) {
        self.clients += usage.clients;
        self.memory += usage.memory;
        self.operations += usage.counts.operations;
        self.busy_ns += usage.counts.busy_ns;
        self.bytes_in += usage.counts.bytes_in;
        self.bytes_out += usage.counts.bytes_out;
        self.delayed_ms += usage.delayed_ms;
        self.refused += Limit::ALL.iter().map(|limit| usage.refused[*limit as usize]).sum::<u64>();
    }
}

fn users(text: &mut Exposition, Sources { engine, .. }: &Sources<'_>) {
    let mut usages = usage_by_user(engine);
    usages.sort_by_key(|(_, usage)| std::cmp::Reverse(usage.counts.operations));
    // Names that are shown alike are one.
    let mut shown: BTreeMap<String, UserFigures> = BTreeMap::new();
    for (place, (name, usage)) in usages.iter().enumerate() {
        let name = if place < USERS_MAX { label(name) } else { OTHER.to_owned() };
        shown.entry(name).or_default().add(usage);
    }
    let mut gauges = |name, help, value: &dyn Fn(&UserFigures) -> u64| {
        let mut family = text.gauges(name, help);
        shown.iter().for_each(|(user, figures)| family.add(&[("user", user)], value(figures)));
    };
    gauges("holdfast_user_clients", "Connections by user.", &|user| user.clients);
    gauges("holdfast_user_memory_bytes", "Memory of connections by user.", &|user| user.memory);
    let mut counters = |name, help, value: &dyn Fn(&UserFigures) -> f64| {
        let mut family = text.counters(name, help);
        shown.iter().for_each(|(user, figures)| family.add(&[("user", user)], value(figures)));
    };
    counters("holdfast_user_commands_total", "Commands by user.", &|user| user.operations as f64);
    counters("holdfast_user_busy_seconds_total", "Time in commands by user.", &|user| user.busy_ns as f64 / 1e9);
    counters("holdfast_user_input_bytes_total", "Bytes of requests by user.", &|user| user.bytes_in as f64);
    counters("holdfast_user_output_bytes_total", "Bytes of replies by user.", &|user| user.bytes_out as f64);
    let delayed = |user: &UserFigures| user.delayed_ms as f64 / 1000.0;
    counters("holdfast_user_delayed_seconds_total", "Delays at limits by user.", &delayed);
    counters("holdfast_user_refused_total", "What was refused at limits, by user.", &|user| user.refused as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_groups_are_cut() {
        assert_eq!(group_label(&[b'x'; GROUP_LABEL_MAX]), "x".repeat(GROUP_LABEL_MAX));
        assert_eq!(group_label("ß".repeat(1000).as_bytes()), format!("{}…", "ß".repeat(GROUP_LABEL_MAX)));
        assert_eq!(group_label(b"\xff"), "\\xff");
    }

    #[test]
    fn bounds_are_written_in_seconds() {
        for (bound_ns, shown) in BOUNDS {
            assert!(bound_ns.is_power_of_two());
            assert_eq!(shown.parse::<f64>(), Ok(bound_ns as f64 / 1e9));
        }
    }
}
