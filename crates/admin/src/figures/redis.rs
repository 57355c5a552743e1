//! Metrics under the names and with the types that redis_exporter gives them, so that dashboards made for it go on working.
//! What has no true value here is left out.

use super::Sources;
use crate::exposition::Exposition;
use engine::clients::Peer;
use engine::clients::pubsub::Topic;
use engine::command::{CommandRow, registry};
use engine::persistence::journal_state::JournalState;
use engine::persistence::{Role, SnapshotReason, Snapshotting};
use engine::settings::row;
use engine::{HOLDFAST_VERSION, REDIS_VERSION};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The most followers that are listed.
const FOLLOWERS_MAX: usize = 64;

pub(super) fn write(text: &mut Exposition, sources: &Sources<'_>) {
    server(text, sources);
    clients(text, sources);
    memory(text, sources);
    persistence(text, sources);
    stats(text, sources);
    replication(text, sources);
    commands(text, sources);
    databases(text, sources);
}

fn server(text: &mut Exposition, Sources { engine, replication, .. }: &Sources<'_>) {
    let uptime_s = engine.clock.monotonic_ns().saturating_sub(engine.identity.started_ns) / 1_000_000_000;
    text.gauge("redis_up", "1 while the server answers.", 1);
    text.gauges("redis_instance_info", "Facts about this server.").add(
        &[
            ("role", if matches!(replication.role, Role::Writer { .. }) { "master" } else { "slave" }),
            ("redis_version", REDIS_VERSION),
            ("holdfast_version", HOLDFAST_VERSION),
            ("redis_build_id", "0"),
            ("redis_mode", "standalone"),
            ("os", &engine.host.os()),
            ("maxmemory_policy", &engine.settings.printed(row::MAXMEMORY_POLICY)),
            ("tcp_port", &engine.settings.client_port().to_string()),
            ("run_id", &engine.identity.run_id),
            ("process_id", &engine.host.process_id().to_string()),
            ("master_replid", &engine.identity.replication_id.lock()),
        ],
        1,
    );
    text.gauge("redis_uptime_in_seconds", "Seconds since the start.", uptime_s);
    let started_s = (engine.clock.unix_us() / 1_000_000).saturating_sub(uptime_s);
    text.gauge("redis_start_time_seconds", "Unix time of the start.", started_s);
    text.gauge("redis_process_id", "The number of the process.", engine.host.process_id());
    text.gauge("redis_config_maxclients", "The setting maxclients.", engine.settings.maxclients());
    text.gauge("redis_config_maxmemory", "The setting maxmemory.", engine.settings.maxmemory());
    let cpu = engine.host.cpu();
    text.counter("redis_cpu_sys_seconds_total", "CPU time in the operating system.", cpu.system);
    text.counter("redis_cpu_user_seconds_total", "CPU time in the server.", cpu.user);
}

fn clients(text: &mut Exposition, Sources { engine, clients, .. }: &Sources<'_>) {
    let most = |sizes: &mut dyn Iterator<Item = usize>| sizes.max().unwrap_or(0);
    let connected = clients.iter().filter(|client| client.peer == Peer::Client).count();
    text.gauge("redis_connected_clients", "Clients that are connected.", connected);
    let blocked = clients.iter().filter(|client| client.is_waiting()).count();
    text.gauge("redis_blocked_clients", "Clients that wait in a blocking command.", blocked);
    text.gauge("redis_tracking_clients", "Clients that track keys they cache.", engine.tracking.totals()[0]);
    let output = most(&mut clients.iter().map(|client| client.output_bytes.load(Relaxed)));
    text.gauge("redis_client_recent_max_output_buffer_bytes", "The largest output buffer.", output);
    let input = most(&mut clients.iter().map(|client| client.input_bytes().0));
    text.gauge("redis_client_recent_max_input_buffer_bytes", "The largest unfinished request.", input);
}

fn memory(text: &mut Exposition, Sources { engine, keys, clients, .. }: &Sources<'_>) {
    let memory = engine.host.memory();
    let statistics = &engine.statistics;
    let startup = statistics.startup_memory.load(Relaxed);
    let of_clients: u64 = clients.iter().map(|client| client.memory_bytes() as u64).sum();
    let overhead = startup + of_clients + keys.total().table_bytes;
    let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let excess = |part: u64, whole: u64| part as i64 - whole as i64;
    let script_bytes = engine.scripting.scripts.count().1 + engine.scripting.functions.catalogue().code_bytes();
    text.gauge("redis_memory_used_bytes", "Memory in use.", memory.used);
    text.gauge("redis_memory_used_rss_bytes", "Memory as the operating system counts it.", memory.resident);
    let peak = statistics.peak_memory.load(Relaxed).max(memory.used);
    text.gauge("redis_memory_used_peak_bytes", "The most memory that was in use.", peak);
    text.gauge("redis_memory_used_lua_bytes", "Memory of the Lua states.", lua::total_bytes());
    text.gauge("redis_memory_used_overhead_bytes", "Memory that is not keys and values.", overhead);
    text.gauge("redis_memory_used_startup_bytes", "Memory in use after the start.", startup);
    let dataset = memory.used.saturating_sub(overhead);
    text.gauge("redis_memory_used_dataset_bytes", "Memory of keys and values.", dataset);
    text.gauge("redis_memory_used_scripts_bytes", "Memory of cached scripts and functions.", script_bytes);
    text.gauge("redis_memory_max_bytes", "The limit of memory (maxmemory); 0 is none.", engine.settings.maxmemory());
    let fragmentation = ratio(memory.resident, memory.used);
    text.gauge("redis_mem_fragmentation_ratio", "Resident memory by memory in use.", fragmentation);
    let bytes = excess(memory.resident, memory.used);
    text.gauge("redis_mem_fragmentation_bytes", "Resident memory beyond memory in use.", bytes);
    text.gauge("redis_mem_clients_normal", "Memory of clients.", of_clients);
    text.gauge("redis_allocator_allocated_bytes", "Bytes that the allocator has given out.", memory.allocated);
    text.gauge("redis_allocator_active_bytes", "Bytes of the allocator's pages in use.", memory.active);
    let resident = memory.allocator_resident;
    text.gauge("redis_allocator_resident_bytes", "Resident bytes of the allocator.", resident);
    let pending = engine.eviction.freed_elsewhere().0;
    text.gauge("redis_lazyfree_pending_objects", "Values that are being freed.", pending);
}

fn persistence(text: &mut Exposition, Sources { engine, persistence: report, .. }: &Sources<'_>) {
    let journaling = report.state.is_some_and(JournalState::promises_durability);
    let changes = engine.statistics.totals().changes.saturating_sub(report.changes_at_last_save);
    let running = |why| report.snapshot.filter(|snapshot| snapshot.why == why);
    let took = |seconds: Option<u64>| seconds.map_or(-1, |seconds| seconds as i64);
    let since = |snapshot: Option<Snapshotting>| took(snapshot.map(|snapshot| snapshot.running_s));
    let (saving, compacting) = (running(SnapshotReason::Save), running(SnapshotReason::Compaction));
    let loading = u8::from(report.loading.is_some());
    text.gauge("redis_loading_dump_file", "1 while the data is being read at the start.", loading);
    text.gauge("redis_rdb_changes_since_last_save", "Changes since the last snapshot.", changes);
    let in_progress = u8::from(saving.is_some());
    text.gauge("redis_rdb_bgsave_in_progress", "1 while a snapshot is being written.", in_progress);
    let last = report.last_save_s;
    text.gauge("redis_rdb_last_save_timestamp_seconds", "Unix time of the last good snapshot.", last);
    let status = u8::from(!report.saves.last_failed);
    text.gauge("redis_rdb_last_bgsave_status", "1 if the last snapshot has succeeded.", status);
    let seconds = took(report.saves.last_took_s);
    text.gauge("redis_rdb_last_bgsave_duration_sec", "Seconds that the last snapshot took; -1 for none.", seconds);
    text.gauge(
        "redis_rdb_current_bgsave_duration_sec",
        "Seconds of the snapshot in progress; -1 for none.",
        since(saving),
    );
    text.gauge("redis_aof_enabled", "1 if there is a journal.", u8::from(journaling));
    let in_progress = u8::from(compacting.is_some());
    text.gauge("redis_aof_rewrite_in_progress", "1 while the journal is being compacted.", in_progress);
    let scheduled = u8::from(report.scheduled == Some(SnapshotReason::Compaction));
    text.gauge("redis_aof_rewrite_scheduled", "1 if a compaction waits for a snapshot to end.", scheduled);
    let seconds = took(report.compactions.last_took_s);
    text.gauge("redis_aof_last_rewrite_duration_sec", "Seconds that the last compaction took; -1 for none.", seconds);
    let seconds = since(compacting);
    text.gauge(
        "redis_aof_current_rewrite_duration_sec",
        "Seconds of the compaction in progress; -1 for none.",
        seconds,
    );
    let status = u8::from(!report.compactions.last_failed);
    text.gauge("redis_aof_last_bgrewrite_status", "1 if the last compaction has succeeded.", status);
    let status = u8::from(report.failure.is_none());
    text.gauge("redis_aof_last_write_status", "1 if the journal can be written.", status);
    if journaling {
        text.gauge(
            "redis_aof_current_size_bytes",
            "Bytes of the journal that a start would read.",
            report.journal_bytes,
        );
        text.gauge("redis_aof_base_size_bytes", "Bytes of the newest snapshot.", report.snapshot_bytes);
        let pending = u8::from(report.durable < report.sequence);
        text.gauge("redis_aof_pending_bio_fsync", "1 while changes wait for a sync.", pending);
    }
}

fn stats(text: &mut Exposition, Sources { engine, .. }: &Sources<'_>) {
    let totals = engine.statistics.totals();
    let (accepted, rejected, ..) = engine.clients.totals();
    text.counter("redis_connections_received_total", "Connections that were accepted.", accepted);
    text.counter("redis_rejected_connections_total", "Connections beyond maxclients.", rejected);
    text.counter("redis_commands_processed_total", "Commands that have run.", totals.commands);
    text.counter("redis_net_input_bytes_total", "Bytes of requests.", totals.bytes_in);
    text.counter("redis_net_output_bytes_total", "Bytes of replies.", totals.bytes_out);
    text.counter("redis_expired_keys_total", "Keys that have expired.", totals.expired_keys);
    text.counter("redis_evicted_keys_total", "Keys that were evicted.", totals.evicted_keys);
    text.counter("redis_keyspace_hits_total", "Keys that were looked up and found.", totals.keyspace_hits);
    text.counter("redis_keyspace_misses_total", "Keys that were looked up and not found.", totals.keyspace_misses);
    text.gauge("redis_pubsub_channels", "Channels with subscribers.", engine.pubsub.len(Topic::Channel));
    text.gauge("redis_pubsub_patterns", "Patterns with subscribers.", engine.pubsub.len(Topic::Pattern));
    text.gauge("redis_slowlog_length", "Entries of the slow log.", engine.slowlog.len());
    if let Some(newest) = engine.slowlog.newest(1).first() {
        text.gauge("redis_slowlog_last_id", "The number of its newest entry.", newest.id);
        let seconds = newest.took_us as f64 / 1e6;
        text.gauge("redis_last_slow_execution_duration_seconds", "How long its newest entry took.", seconds);
    }
    let events = engine.latency.events();
    let mut spikes = text.gauges("redis_latency_spike_last", "Unix time of an event's last spike.");
    for (event, samples) in &events {
        spikes.add(&[("event_name", event)], samples.samples.back().map_or(0, |(time_s, _)| *time_s));
    }
    let mut spikes = text.gauges("redis_latency_spike_duration_seconds", "How long an event's last spike took.");
    for (event, samples) in &events {
        let took_ms = samples.samples.back().map_or(0, |(_, took_ms)| *took_ms);
        spikes.add(&[("event_name", event)], took_ms as f64 / 1000.0);
    }
    let mut errors = BTreeMap::new();
    engine.statistics.workers().iter().for_each(|metrics| metrics.stats.add_errors(&mut errors));
    let mut family = text.counters("redis_errors_total", "Error replies by their code.");
    errors.iter().for_each(|(code, count)| family.add(&[("err", code)], count));
}

fn replication(text: &mut Exposition, Sources { replication, .. }: &Sources<'_>) {
    let followers = match &replication.role {
        Role::Writer { followers } => followers.as_slice(),
        Role::Follower(_) => &[],
    };
    text.gauge("redis_connected_slaves", "Followers that are connected.", followers.len());
    text.gauge("redis_master_repl_offset", "The number of the newest batch.", replication.sequence);
    let listed = &followers[..followers.len().min(FOLLOWERS_MAX)];
    let ports: Vec<String> = listed.iter().map(|follower| follower.port.to_string()).collect();
    let labels = |at: usize| [("slave_ip", &*listed[at].host), ("slave_port", &*ports[at]), ("slave_state", "online")];
    let mut lag = text.gauges("redis_connected_slave_lag_seconds", "Seconds since a follower was heard of.");
    (0..listed.len()).for_each(|at| lag.add(&labels(at), listed[at].silent_ms / 1000));
    let mut offset = text.gauges("redis_connected_slave_offset_bytes", "The newest batch that a follower has applied.");
    (0..listed.len()).for_each(|at| offset.add(&labels(at), listed[at].sequence));
    if let Role::Follower(writer) = &replication.role {
        let port = writer.port.to_string();
        let labels = [("master_host", &*writer.host), ("master_port", &*port)];
        let up = u8::from(writer.is_connected);
        text.gauges("redis_master_link_up", "1 if the writer answers.").add(&labels, up);
        let loading = u8::from(writer.is_loading);
        text.gauges("redis_master_sync_in_progress", "1 while the writer's data is being read.").add(&labels, loading);
        let silent = writer.silent_ms / 1000;
        text.gauges("redis_master_last_io_seconds_ago", "Seconds since the writer was heard of.").add(&labels, silent);
        let offset = replication.sequence;
        text.gauges("redis_slave_repl_offset", "The newest batch that is applied here.").add(&labels, offset);
        let labels = [labels[0], labels[1], ("read_only", "1")];
        text.gauges("redis_slave_info", "Facts about this follower.").add(&labels, 1);
    }
}

/// Only commands that were called: at most as many series as there are commands.
fn commands(text: &mut Exposition, Sources { engine, .. }: &Sources<'_>) {
    let totals = |row: &&'static CommandRow| Some((&*row.full_name, engine.statistics.of_command(row.index)?));
    let called: Vec<_> = registry().rows().iter().filter_map(totals).collect();
    let mut family = text.counters("redis_commands_total", "Calls by command.");
    called.iter().for_each(|(name, of)| family.add(&[("cmd", name)], of.calls));
    let mut family = text.counters("redis_commands_duration_seconds_total", "Time by command.");
    called.iter().for_each(|(name, of)| family.add(&[("cmd", name)], of.ns as f64 / 1e9));
    let mut family = text.counters("redis_commands_rejected_calls_total", "Calls that were refused, by command.");
    called.iter().for_each(|(name, of)| family.add(&[("cmd", name)], of.rejected));
    let mut family = text.counters("redis_commands_failed_calls_total", "Calls that have failed, by command.");
    called.iter().for_each(|(name, of)| family.add(&[("cmd", name)], of.failed));
}

fn databases(text: &mut Exposition, Sources { keys, .. }: &Sources<'_>) {
    let names: Vec<String> = (0..keys.dbs.len()).map(|number| format!("db{number}")).collect();
    let dbs = || names.iter().zip(&keys.dbs);
    let mut family = text.gauges("redis_db_keys", "Keys by database.");
    dbs().for_each(|(name, db)| family.add(&[("db", name)], db.keys));
    let mut family = text.gauges("redis_db_keys_expiring", "Keys with a time to live, by database.");
    dbs().for_each(|(name, db)| family.add(&[("db", name)], db.with_deadline));
    let mut family = text.gauges("redis_db_avg_ttl_seconds", "The average time to live, by database.");
    dbs().filter(|(_, db)| db.keys > 0).for_each(|(name, db)| family.add(&[("db", name)], db.left_seconds()));
    let help = "Keys with a time to live of a field, by database.";
    let mut family = text.gauges("redis_db_keys_with_expiring_items", help);
    dbs().for_each(|(name, db)| family.add(&[("db", name)], db.with_field_deadlines));
}
