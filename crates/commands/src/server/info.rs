//! INFO: facts and counters, by section, under Redis's names. Fields without a true value here are left out.

use super::latency::durations;
use super::memory::{Account, excess, ratio, survey};
use crate::shared::version::{HOLDFAST_VERSION, REDIS_VERSION};
use execution::acl::Reason;
use execution::clients::Peer;
use execution::clients::pubsub::Topic;
use execution::command::registry;
use execution::context::ReadCx;
use execution::context::WholeServer;
use execution::engine::Engine;
use execution::error::CommandResult;
use execution::gates;
use execution::observability::statistics::CommandTotals;
use execution::persistence::journal_state::JournalState;
use execution::persistence::{ClusterReport, FollowerReport, Replication, Role, SnapshotReason, Snapshotting};
use execution::settings::row;
use execution::upkeep;
use keyspace::storage::entry::used_at;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::atomic::Ordering::Relaxed;

/// One section of the report.
struct Section {
    /// The words that select it.
    names: &'static [&'static str],
    title: &'static str,
    /// Part of INFO without arguments.
    usual: bool,
    /// Redis has it: its title is there even if nothing is below.
    is_redis: bool,
    write: fn(&mut Lines, &ReadCx<'_>),
}

/// In the order of the report.
const SECTIONS: &[Section] = &[
    Section { names: &["server"], title: "Server", usual: true, is_redis: true, write: server },
    Section { names: &["clients"], title: "Clients", usual: true, is_redis: true, write: clients },
    Section { names: &["memory"], title: "Memory", usual: true, is_redis: true, write: memory },
    Section { names: &["persistence"], title: "Persistence", usual: true, is_redis: true, write: persistence },
    Section { names: &["stats"], title: "Stats", usual: true, is_redis: true, write: stats },
    Section { names: &["replication"], title: "Replication", usual: true, is_redis: true, write: replication },
    Section { names: &["cpu"], title: "CPU", usual: true, is_redis: true, write: cpu },
    Section { names: &["modules", "module_list"], title: "Modules", usual: true, is_redis: true, write: |_, _| {} },
    Section { names: &["commandstats"], title: "Commandstats", usual: false, is_redis: true, write: command_stats },
    Section { names: &["errorstats"], title: "Errorstats", usual: true, is_redis: true, write: error_stats },
    Section { names: &["latencystats"], title: "Latencystats", usual: false, is_redis: true, write: latency_stats },
    Section {
        names: &["cluster"],
        title: "Cluster",
        usual: true,
        is_redis: true,
        write: |lines, _| lines.add("cluster_enabled", 0),
    },
    Section { names: &["sweepers"], title: "Sweepers", usual: false, is_redis: false, write: sweepers },
    Section { names: &["keyspace"], title: "Keyspace", usual: true, is_redis: true, write: keyspace },
];

impl Section {
    /// True when `word` selects this section.
    fn is_asked(&self, word: &[u8]) -> bool {
        match word.to_ascii_lowercase().as_slice() {
            b"all" | b"everything" => true,
            b"default" => self.usual,
            word => self.names.iter().any(|name| name.as_bytes() == word),
        }
    }
}

pub(super) fn info(cx: &mut ReadCx<'_>) -> CommandResult {
    let mut asked: Vec<&[u8]> = cx.args.rest().collect();
    if asked.is_empty() {
        asked.push(b"default");
    }
    let mut lines = Lines::default();
    for section in SECTIONS.iter().filter(|section| asked.iter().any(|word| section.is_asked(word))) {
        let before = lines.text.len();
        lines.begin(section.title);
        let begun = lines.text.len();
        (section.write)(&mut lines, cx);
        if lines.text.len() == begun && !section.is_redis {
            lines.text.truncate(before);
        }
    }
    cx.reply.verbatim(&lines.text);
    Ok(())
}

/// The report that is being written.
#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn begin(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\r\n" };
        let _ = write!(self.text, "{gap}# {title}\r\n");
    }

    fn add(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    fn zeros(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.add(name, 0));
    }

    /// A number of bytes, and its human-readable form.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.add(name, bytes);
        self.add(&format!("{name}_human"), human(bytes));
    }

    fn ratio(&mut self, name: &str, ratio: f64) {
        self.add(name, format_args!("{ratio:.2}"));
    }
}

/// Bytes in their largest unit, as Redis writes them.
fn human(bytes: u64) -> String {
    const UNITS: [(u64, char); 5] = [(1 << 50, 'P'), (1 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.2}{unit}", bytes as f64 / *size as f64),
        None => format!("{bytes}B"),
    }
}

fn server(lines: &mut Lines, cx: &ReadCx<'_>) {
    let Engine { host, settings, clock, .. } = cx.server();
    let now_us = clock.unix_us();
    let uptime_s = clock.monotonic_ns().saturating_sub(cx.server().identity.started_ns) / 1_000_000_000;
    lines.add("redis_version", REDIS_VERSION);
    lines.add("holdfast_version", HOLDFAST_VERSION);
    lines.add("redis_git_sha1", "00000000");
    lines.add("redis_git_dirty", 0);
    lines.add("redis_build_id", 0);
    lines.add("redis_mode", "standalone");
    lines.add("os", host.os());
    lines.add("arch_bits", usize::BITS);
    lines.add("monotonic_clock", "POSIX clock_gettime");
    lines.add("multiplexing_api", if cfg!(target_os = "linux") { "epoll" } else { "kqueue" });
    lines.add("process_id", host.process_id());
    lines.add("process_supervised", "no");
    lines.add("run_id", &cx.server().identity.run_id);
    // As in Redis, the port for TLS if there is no other.
    lines.add("tcp_port", settings.client_port());
    lines.add("server_time_usec", now_us);
    lines.add("uptime_in_seconds", uptime_s);
    lines.add("uptime_in_days", uptime_s / 86_400);
    lines.add("hz", settings.hz());
    lines.add("configured_hz", settings.hz());
    lines.add("lru_clock", used_at(now_us / 1000));
    lines.add("executable", host.executable());
    lines.add("config_file", host.config_file());
    lines.add("io_threads_active", u8::from(host.threads() > 1));
    lines.add("holdfast_threads", host.threads());
    let addresses: String = settings.bind().split_whitespace().map(|address| format!("bind={address},")).collect();
    // Redis numbers them by their kind: 1 are sockets of unix.
    for (number, name, port) in [(0, "tcp", settings.port()), (2, "tls", settings.tls_port())] {
        if port > 0 {
            lines.add(&format!("listener{number}"), format_args!("name={name},{addresses}port={port}"));
        }
    }
}

fn clients(lines: &mut Lines, cx: &ReadCx<'_>) {
    let all = cx.server().clients.all();
    let most = |sizes: &mut dyn Iterator<Item = usize>| sizes.max().unwrap_or(0);
    // As in Redis, without other servers.
    lines.add("connected_clients", all.iter().filter(|client| client.peer == Peer::Client).count());
    lines.add("cluster_connections", 0);
    lines.add("maxclients", cx.server().settings.maxclients());
    lines.add("client_recent_max_input_buffer", most(&mut all.iter().map(|client| client.input_bytes().0)));
    lines.add("client_recent_max_output_buffer", most(&mut all.iter().map(|client| client.output_bytes.load(Relaxed))));
    lines.add("blocked_clients", all.iter().filter(|client| client.is_waiting()).count());
    lines.add("tracking_clients", cx.server().tracking.totals()[0]);
    lines.add("pubsub_clients", all.iter().filter(|client| client.is_subscriber()).count());
    lines.add("watching_clients", all.iter().filter(|client| client.watching.load(Relaxed) > 0).count());
    lines.add("clients_in_timeout_table", 0);
    lines.add("total_watched_keys", cx.server().watches.count());
    lines.add("total_blocking_keys", cx.server().waiting.keys.keys());
    lines.zeros(&["total_blocking_keys_on_nokey"]);
    let in_transaction = all.iter().filter(|client| client.in_transaction.load(Relaxed));
    lines.add("open_transactions", in_transaction.count());
}

fn memory(lines: &mut Lines, cx: &ReadCx<'_>) {
    let account = Account::new(cx);
    let host = account.host;
    let settings = &cx.server().settings;
    lines.bytes("used_memory", host.used);
    lines.bytes("used_memory_rss", host.resident);
    lines.bytes("used_memory_peak", account.peak);
    lines.add("used_memory_peak_perc", format_args!("{:.2}%", account.peak_percent()));
    lines.add("used_memory_overhead", account.overhead);
    lines.add("used_memory_startup", account.startup);
    lines.add("used_memory_dataset", account.dataset);
    lines.add("used_memory_dataset_perc", format_args!("{:.2}%", account.dataset_percent()));
    lines.add("allocator_allocated", host.allocated);
    lines.add("allocator_active", host.active);
    lines.add("allocator_resident", host.allocator_resident);
    lines.bytes("total_system_memory", cx.server().host.total_memory());
    lines.bytes("used_memory_lua", lua::total_bytes() as u64);
    let (scripts, script_bytes) = cx.server().scripting.scripts.count();
    let catalogue = cx.server().scripting.functions.catalogue();
    let function_bytes = catalogue.code_bytes();
    lines.add("used_memory_vm_eval", lua::total_bytes());
    lines.add("used_memory_scripts_eval", script_bytes);
    lines.add("number_of_cached_scripts", scripts);
    lines.add("number_of_functions", catalogue.function_count());
    lines.add("number_of_libraries", catalogue.library_count());
    // Functions run in the same Lua states.
    lines.add("used_memory_vm_functions", 0);
    lines.bytes("used_memory_vm_total", lua::total_bytes() as u64);
    lines.add("used_memory_functions", function_bytes);
    lines.bytes("used_memory_scripts", (script_bytes + function_bytes) as u64);
    lines.bytes("maxmemory", settings.maxmemory());
    lines.add("maxmemory_policy", settings.printed(row::MAXMEMORY_POLICY));
    lines.ratio("allocator_frag_ratio", ratio(host.active, host.allocated));
    lines.add("allocator_frag_bytes", excess(host.active, host.allocated));
    lines.ratio("allocator_rss_ratio", ratio(host.allocator_resident, host.active));
    lines.add("allocator_rss_bytes", excess(host.allocator_resident, host.active));
    lines.ratio("rss_overhead_ratio", ratio(host.resident, host.allocator_resident));
    lines.add("rss_overhead_bytes", excess(host.resident, host.allocator_resident));
    lines.ratio("mem_fragmentation_ratio", account.fragmentation());
    lines.add("mem_fragmentation_bytes", excess(host.resident, host.used));
    lines.add("mem_not_counted_for_evict", account.journal);
    lines.zeros(&["mem_replication_backlog", "mem_total_replication_buffers", "mem_clients_slaves"]);
    lines.add("mem_clients_normal", account.clients);
    lines.add("mem_cluster_links", 0);
    lines.add("mem_aof_buffer", account.journal);
    lines.add("mem_allocator", "jemalloc");
    lines.add("active_defrag_running", 0);
    let (being_freed, freed) = cx.server().eviction.freed_elsewhere();
    lines.add("lazyfree_pending_objects", being_freed);
    lines.add("lazyfreed_objects", freed);
}

/// In Redis's words: a snapshot is its RDB file, the journal its AOF.
fn persistence(lines: &mut Lines, cx: &ReadCx<'_>) {
    let report = cx.server().persistence.report();
    let journaling = report.state.is_some_and(JournalState::promises_durability);
    let changes = cx.server().statistics.totals().changes.saturating_sub(report.changes_at_last_save);
    let running = |why| report.snapshot.filter(|snapshot| snapshot.why == why);
    let took = |seconds: Option<u64>| seconds.map_or(-1, |seconds| seconds as i64);
    let status = |failed: bool| if failed { "err" } else { "ok" };
    let (saving, compacting) = (running(SnapshotReason::Save), running(SnapshotReason::Compaction));
    let since = |snapshot: Option<Snapshotting>| took(snapshot.map(|snapshot| snapshot.running_s));
    lines.add("loading", u8::from(report.loading.is_some()));
    lines.zeros(&["async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"]);
    lines.ratio("current_fork_perc", report.snapshot.map_or(0.0, |snapshot| snapshot.progress * 100.0));
    lines.add("current_save_keys_processed", report.snapshot.map_or(0, |snapshot| snapshot.keys));
    lines.add("current_save_keys_total", report.snapshot.map_or(0, |snapshot| snapshot.keys_total));
    lines.add("rdb_changes_since_last_save", changes);
    lines.add("rdb_bgsave_in_progress", u8::from(saving.is_some()));
    lines.add("rdb_last_save_time", report.last_save_s);
    lines.add("rdb_last_bgsave_status", status(report.saves.last_failed));
    lines.add("rdb_last_bgsave_time_sec", took(report.saves.last_took_s));
    lines.add("rdb_current_bgsave_time_sec", since(saving));
    lines.add("rdb_saves", report.saves.count);
    lines.zeros(&["rdb_last_cow_size", "rdb_last_load_keys_expired"]);
    lines.add("rdb_last_load_keys_loaded", report.keys_loaded);
    lines.add("aof_enabled", u8::from(journaling));
    lines.add("aof_rewrite_in_progress", u8::from(compacting.is_some()));
    lines.add("aof_rewrite_scheduled", u8::from(report.scheduled == Some(SnapshotReason::Compaction)));
    lines.add("aof_last_rewrite_time_sec", took(report.compactions.last_took_s));
    lines.add("aof_current_rewrite_time_sec", since(compacting));
    lines.add("aof_last_bgrewrite_status", status(report.compactions.last_failed));
    lines.add("aof_rewrites", report.compactions.count);
    lines.add("aof_rewrites_consecutive_failures", report.compactions.failures_in_a_row);
    lines.add("aof_last_write_status", status(report.failure.is_some()));
    lines.add("journal_state", report.state.map_or("off", JournalState::name));
    lines.add("journal_has_room", u8::from(report.has_room));
    lines.zeros(&["aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"]);
    if journaling {
        lines.add("aof_current_size", report.journal_bytes);
        lines.add("aof_base_size", report.snapshot_bytes);
        lines.add("aof_pending_rewrite", u8::from(report.scheduled.is_some()));
        lines.add("aof_buffer_length", report.unwritten_bytes);
        lines.add("aof_pending_bio_fsync", u8::from(report.durable < report.sequence));
        lines.add("aof_delayed_fsync", 0);
        lines.add("journal_sequence", report.sequence);
        lines.add("journal_durable_sequence", report.durable);
    }
    if let Some(reason) = report.failure {
        lines.add("journal_failure", reason.replace(['\r', '\n'], " "));
    }
    if let Some(loading) = report.loading {
        let share = loading.loaded_bytes as f64 / loading.total_bytes.max(1) as f64;
        lines.add("loading_start_time", loading.since_s);
        lines.add("loading_total_bytes", loading.total_bytes);
        lines.add("loading_loaded_bytes", loading.loaded_bytes);
        lines.add("loading_loaded_perc", format_args!("{:.2}", share * 100.0));
        lines.add("loading_eta_seconds", loading.left_s);
    }
}

fn stats(lines: &mut Lines, cx: &ReadCx<'_>) {
    upkeep::sample(cx.server());
    let (totals, rates) = (cx.server().statistics.totals(), cx.server().statistics.sampler.rates());
    let (accepted, rejected, unread, too_large) = cx.server().clients.totals();
    lines.add("total_connections_received", accepted);
    lines.add("total_commands_processed", totals.commands);
    lines.add("instantaneous_ops_per_sec", rates.commands.round() as u64);
    lines.add("total_net_input_bytes", totals.bytes_in);
    lines.add("total_net_output_bytes", totals.bytes_out);
    lines.zeros(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
    lines.ratio("instantaneous_input_kbps", rates.bytes_in / 1024.0);
    lines.ratio("instantaneous_output_kbps", rates.bytes_out / 1024.0);
    lines.ratio("instantaneous_input_repl_kbps", 0.0);
    lines.ratio("instantaneous_output_repl_kbps", 0.0);
    lines.add("rejected_connections", rejected);
    lines.zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    lines.add("expired_subkeys", totals.expired_fields);
    lines.add("expired_keys", totals.expired_keys);
    lines.add("expired_time_cap_reached_count", totals.expiry_cut_short);
    lines.add("expire_cycle_cpu_milliseconds", totals.expiry_ns / 1_000_000);
    lines.add("evicted_keys", totals.evicted_keys);
    lines.add("evicted_clients", cx.server().clients.evicted());
    lines.add("evicted_scripts", cx.server().scripting.scripts.evicted());
    let (exceeded_ms, exceeded_now_ms) = cx.server().eviction.exceeded_ms(cx.server().clock.monotonic_ns());
    lines.add("total_eviction_exceeded_time", exceeded_ms);
    lines.add("current_eviction_exceeded_time", exceeded_now_ms);
    lines.add("keyspace_hits", totals.keyspace_hits);
    lines.add("keyspace_misses", totals.keyspace_misses);
    lines.add("pubsub_channels", cx.server().pubsub.len(Topic::Channel));
    lines.add("pubsub_patterns", cx.server().pubsub.len(Topic::Pattern));
    lines.add("pubsubshard_channels", cx.server().pubsub.len(Topic::Shard));
    lines.zeros(&[
        "latest_fork_usec",
        "total_forks",
        "migrate_cached_sockets",
        "slave_expires_tracked_keys",
        "active_defrag_hits",
        "active_defrag_misses",
        "active_defrag_key_hits",
        "active_defrag_key_misses",
        "total_active_defrag_time",
        "current_active_defrag_time",
    ]);
    let [_, tracked_keys, readers, prefixes] = cx.server().tracking.totals();
    lines.add("tracking_total_keys", tracked_keys);
    lines.add("tracking_total_items", readers);
    lines.add("tracking_total_prefixes", prefixes);
    lines.add("session_hook_failures", cx.server().sessions.hook_failures());
    lines.add("unexpected_error_replies", execution::panics::caught());
    lines.add("total_error_replies", totals.error_replies);
    let denied = &cx.server().acl.denied;
    for (name, reason) in [
        ("acl_access_denied_auth", Reason::Auth),
        ("acl_access_denied_cmd", Reason::Command),
        ("acl_access_denied_key", Reason::Key),
        ("acl_access_denied_channel", Reason::Channel),
        ("acl_access_denied_tls_cert", Reason::Certificate),
        ("acl_access_denied_db", Reason::Database),
    ] {
        lines.add(name, denied[reason as usize].load(Relaxed));
    }
    lines.add("dump_payload_sanitizations", 0);
    lines.add("total_reads_processed", totals.reads);
    lines.add("total_writes_processed", totals.writes);
    lines.zeros(&["io_threaded_reads_processed", "io_threaded_writes_processed"]);
    lines.add("client_query_buffer_limit_disconnections", too_large);
    lines.add("client_output_buffer_limit_disconnections", unread);
    lines.zeros(&["reply_buffer_shrinks", "reply_buffer_expands"]);
    let transactions = &cx.server().transactions;
    lines.add("transactions_committed", totals.transactions_committed);
    lines.add("transactions_conflicted", transactions.conflicts.load(Relaxed));
    lines.add("transactions_rolled_back", transactions.rolled_back.load(Relaxed));
    lines.add("transactions_timed_out", transactions.timed_out.load(Relaxed));
}

fn replication(lines: &mut Lines, cx: &ReadCx<'_>) {
    let Replication { role, sequence, hands_over, .. } = cx.server().persistence.replication();
    let followers = match &role {
        Role::Writer { followers } => followers.as_slice(),
        Role::Follower(writer) => {
            let link = if writer.is_connected { "up" } else { "down" };
            lines.add("role", "slave");
            lines.add("master_host", &writer.host);
            lines.add("master_port", writer.port);
            lines.add("master_link_status", link);
            lines.add("master_last_io_seconds_ago", writer.silent_ms / 1000);
            lines.add("master_sync_in_progress", u8::from(writer.is_loading));
            lines.add("slave_read_repl_offset", sequence + writer.lag_batches);
            lines.add("slave_repl_offset", sequence);
            if !writer.is_connected {
                lines.add("master_link_down_since_seconds", writer.silent_ms / 1000);
            }
            lines.add("slave_priority", 100);
            lines.add("slave_read_only", 1);
            lines.add("replica_announced", 1);
            lines.add("lag_batches", writer.lag_batches);
            lines.add("lag_ms", writer.lag_ms);
            &[]
        }
    };
    if matches!(role, Role::Writer { .. }) {
        lines.add("role", "master");
    }
    lines.add("connected_slaves", followers.len());
    if cx.server().settings.writes_need_replicas() {
        lines.add("min_slaves_good_slaves", gates::good_replicas(cx.server()));
    }
    for (number, follower) in followers.iter().enumerate() {
        let FollowerReport { host, port, sequence, silent_ms } = follower;
        let lag_s = silent_ms / 1000;
        lines.add(
            &format!("slave{number}"),
            format_args!("ip={host},port={port},state=online,offset={sequence},lag={lag_s}"),
        );
    }
    lines.add("master_failover_state", if hands_over { "waiting-for-sync" } else { "no-failover" });
    lines.add("master_replid", cx.server().identity.replication_id.lock());
    lines.add("master_replid2", "0".repeat(40));
    lines.add("master_repl_offset", sequence);
    lines.add("second_repl_offset", -1);
    lines.add("repl_backlog_active", 0);
    lines.add("repl_backlog_size", cx.server().settings.size(row::REPL_BACKLOG_SIZE));
    lines.zeros(&["repl_backlog_first_byte_offset", "repl_backlog_histlen"]);
    if let Some(cluster) = cx.server().persistence.cluster() {
        replicated_log(lines, &cluster);
    }
}

/// A log that several machines share.
fn replicated_log(lines: &mut Lines, cluster: &ClusterReport) {
    lines.add("log", &cluster.log);
    lines.add("epoch", cluster.epoch);
    if let Some(left_ms) = cluster.lease_left_ms {
        lines.add("lease_ms_left", left_ms);
    }
    lines.add("members", cluster.members);
    lines.add("log_connected", u8::from(cluster.is_connected));
    lines.add("log_position", cluster.position);
    lines.add("log_silent_ms", cluster.silent_ms);
    let findings = cluster.findings.join("; ").replace(['\r', '\n'], " ");
    lines.add("log_findings", if findings.is_empty() { "none" } else { &findings });
}

fn cpu(lines: &mut Lines, cx: &ReadCx<'_>) {
    let used = cx.server().host.cpu();
    for (name, seconds) in [
        ("used_cpu_sys", used.system),
        ("used_cpu_user", used.user),
        ("used_cpu_sys_children", 0.0),
        ("used_cpu_user_children", 0.0),
        ("used_cpu_sys_main_thread", used.main_thread_system),
        ("used_cpu_user_main_thread", used.main_thread_user),
    ] {
        lines.add(name, format_args!("{seconds:.6}"));
    }
}

fn command_stats(lines: &mut Lines, cx: &ReadCx<'_>) {
    for row in registry().rows() {
        if let Some(CommandTotals { calls, ns, rejected, failed }) = cx.server().statistics.of_command(row.index) {
            let usec = ns / 1000;
            let per_call = if calls == 0 { 0.0 } else { ns as f64 / 1000.0 / calls as f64 };
            lines.add(
                &format!("cmdstat_{}", row.full_name),
                format_args!(
                    "calls={calls},usec={usec},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
                ),
            );
        }
    }
}

fn error_stats(lines: &mut Lines, cx: &ReadCx<'_>) {
    let mut errors = BTreeMap::new();
    cx.server().statistics.workers().iter().for_each(|metrics| metrics.stats.add_errors(&mut errors));
    for (code, count) in errors {
        lines.add(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn latency_stats(lines: &mut Lines, cx: &ReadCx<'_>) {
    let percents = cx.server().settings.latency_tracking_info_percentiles();
    for row in registry().rows() {
        let Some(durations) = durations(cx.server(), row) else { continue };
        let shown = percents.iter().map(|percent| format!("p{percent}={:.3}", durations.percentile_us(*percent)));
        let shown: Vec<String> = shown.collect();
        lines.add(&format!("latency_percentiles_usec_{}", row.full_name), shown.join(","));
    }
}

/// The sweepers of the configuration, in its order.
fn sweepers(lines: &mut Lines, cx: &ReadCx<'_>) {
    // One line each: what is in a name or an error cannot end it, or look like another field.
    let shown = |text: &str| text.replace([',', '\r', '\n'], " ");
    for (number, report) in cx.server().sweepers.reports().into_iter().enumerate() {
        let user = report.user.as_deref().map_or_else(String::new, |user| format!(",user={}", shown(user)));
        let failure = report.failure.map_or_else(String::new, |why| format!(",error={}", shown(&why)));
        let status = if failure.is_empty() { "ok" } else { "failing" };
        lines.add(
            &format!("sweeper{number}"),
            format_args!(
                "index={},db={}{user},status={status},sweeps={},failed={}{failure}",
                shown(&report.index),
                report.db,
                report.sweeps,
                report.failures
            ),
        );
    }
}

fn keyspace(lines: &mut Lines, cx: &ReadCx<'_>) {
    for (index, db) in survey(cx).iter().enumerate().filter(|(_, db)| db.keys > 0) {
        lines.add(
            &format!("db{index}"),
            format_args!(
                "keys={},expires={},avg_ttl={},subexpiry={}",
                db.keys,
                db.with_deadline,
                db.left_ms(),
                db.with_field_deadlines
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_printed_in_human_form() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (916_208, "894.73K"),
            (12_177_408, "11.61M"),
            (25_275_125_760, "23.54G"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn words_select_sections() {
        let chosen = |word: &str| SECTIONS.iter().filter(|section| section.is_asked(word.as_bytes())).count();
        assert_eq!(chosen("ALL"), SECTIONS.len());
        assert_eq!(chosen("everything"), SECTIONS.len());
        assert_eq!(chosen("default"), SECTIONS.len() - 3);
        assert_eq!(chosen("Module_List"), 1);
        assert_eq!(chosen("nosuch"), 0);
    }
}
