//! What the metrics say: in both formats, and as commands run.

use crate::exposition::{Metrics, Style};
use crate::http::{Watched, request, send};
use crate::support::{eventually, ok, unix_ms};

#[test]
fn both_formats_say_the_same() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, "SET a 1");
    assert!(client.run("INCR nosuch extra").is_error());
    client.run("EVAL \"return redis.error_reply('ODD:1 code')\" 0");
    ok(&mut client, "ACL SETUSER \"a\\\"b\\\\c\" on nopass +@all ~*");
    ok(&mut client, "AUTH \"a\\\"b\\\\c\" any");
    client.run("PING");
    let plain = request(server.admin, "GET", "/metrics", &["Accept: text/plain"]);
    assert_eq!(plain.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let open =
        request(server.admin, "GET", "/metrics", &["Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1"]);
    assert_eq!(open.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let plain = Metrics::parse(&plain.body, Style::Prometheus);
    let open = Metrics::parse(&open.body, Style::OpenMetrics);
    assert_eq!(plain.len(), open.len());
    for metrics in [&plain, &open] {
        assert_eq!(metrics.plain("redis_up"), 1.0);
        assert_eq!(metrics.at("redis_db_keys", &[("db", "db0")]), 1.0);
        assert_eq!(metrics.at("redis_commands_total", &[("cmd", "set")]), 1.0);
        assert_eq!(metrics.at("holdfast_command_duration_seconds_count", &[("cmd", "set")]), 1.0);
        assert_eq!(metrics.at("holdfast_user_clients", &[("user", "a\"b\\c")]), 1.0);
        assert!(metrics.at("redis_errors_total", &[("err", "ERR")]) >= 1.0);
    }
}

/// The names, and the types, that redis_exporter gives them.
#[test]
fn dashboards_made_for_redis_exporter_find_their_names() {
    let Some(server) = Watched::start(&["--maxmemory", "100mb"]) else { return };
    ok(&mut server.connect(), "SET a 1 EX 1000");
    let metrics = server.metrics();
    let names = "\
        up instance_info uptime_in_seconds start_time_seconds process_id connected_clients blocked_clients \
        tracking_clients client_recent_max_output_buffer_bytes client_recent_max_input_buffer_bytes \
        memory_used_bytes memory_used_rss_bytes memory_used_peak_bytes memory_used_lua_bytes \
        memory_used_overhead_bytes memory_used_startup_bytes memory_used_dataset_bytes \
        memory_used_scripts_bytes memory_max_bytes mem_fragmentation_ratio mem_fragmentation_bytes \
        mem_clients_normal allocator_active_bytes allocator_allocated_bytes allocator_resident_bytes \
        lazyfree_pending_objects loading_dump_file rdb_changes_since_last_save rdb_bgsave_in_progress \
        rdb_last_save_timestamp_seconds rdb_last_bgsave_status rdb_last_bgsave_duration_sec \
        rdb_current_bgsave_duration_sec aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled \
        aof_last_rewrite_duration_sec aof_current_rewrite_duration_sec aof_last_bgrewrite_status \
        aof_last_write_status aof_current_size_bytes aof_base_size_bytes aof_pending_bio_fsync pubsub_channels \
        pubsub_patterns connected_slaves master_repl_offset slowlog_length config_maxclients config_maxmemory \
        db_keys db_keys_expiring db_avg_ttl_seconds connected_slave_lag_seconds connected_slave_offset_bytes \
        latency_spike_last latency_spike_duration_seconds";
    for name in names.split(' ') {
        assert_eq!(metrics.types.get(&format!("redis_{name}")).map(String::as_str), Some("gauge"), "{name}");
    }
    let names = "\
        connections_received commands_processed rejected_connections net_input_bytes net_output_bytes \
        expired_keys evicted_keys keyspace_hits keyspace_misses cpu_sys_seconds cpu_user_seconds commands \
        commands_duration_seconds commands_rejected_calls commands_failed_calls errors";
    for name in names.split(' ') {
        assert_eq!(metrics.types.get(&format!("redis_{name}_total")).map(String::as_str), Some("counter"), "{name}");
    }
    assert_eq!(metrics.plain("redis_memory_max_bytes"), 100.0 * 1024.0 * 1024.0);
    assert_eq!(metrics.at("redis_db_keys_expiring", &[("db", "db0")]), 1.0);
    let (labels, value) = &metrics.all("redis_instance_info")[0];
    assert_eq!((labels["role"].as_str(), labels["redis_mode"].as_str(), *value), ("master", "standalone", 1.0));
}

#[test]
fn counters_grow_as_commands_run() {
    let Some((server, mut client)) = Watched::start_with_client(&["--slowlog-log-slower-than", "0"]) else { return };
    let before = server.metrics();
    for _ in 0..10 {
        ok(&mut client, "SET a 1");
        client.run("GET a");
        client.run("GET none");
        client.run("LPUSH a 1");
    }
    // The counters of bytes, and those of users, are added up at the end of a worker's turn.
    let mut after = server.metrics();
    let sent = "redis_net_output_bytes_total";
    eventually("the replies are counted", || {
        after = server.metrics();
        after.plain(sent) - before.plain(sent) >= 10.0 * 80.0
    });
    let growth = |name: &str, labels: &[(&str, &str)]| after.at(name, labels) - before.at(name, labels);
    assert_eq!(growth("redis_commands_processed_total", &[]), 40.0);
    assert_eq!(growth("redis_commands_total", &[("cmd", "get")]), 20.0);
    assert_eq!(growth("redis_commands_failed_calls_total", &[("cmd", "lpush")]), 10.0);
    assert_eq!(growth("redis_errors_total", &[("err", "WRONGTYPE")]), 10.0);
    assert_eq!(growth("holdfast_error_replies_total", &[]), 10.0);
    assert_eq!(growth("redis_keyspace_hits_total", &[]), 10.0);
    assert_eq!(growth("redis_keyspace_misses_total", &[]), 10.0);
    assert_eq!(growth("holdfast_command_duration_seconds_count", &[("cmd", "get")]), 20.0);
    assert_eq!(growth("holdfast_journal_appended_batches_total", &[]), 10.0);
    assert!(growth("redis_commands_duration_seconds_total", &[("cmd", "get")]) > 0.0);
    assert!(growth("redis_net_input_bytes_total", &[]) > 0.0);
    assert!(growth("holdfast_user_commands_total", &[("user", "default")]) >= 40.0);
    assert!(after.plain("redis_slowlog_length") >= 40.0);
    assert_eq!(after.plain("redis_connected_clients"), 1.0);
    let workers: f64 = after.all("holdfast_worker_commands_total").iter().map(|(_, value)| value).sum();
    assert_eq!(workers, after.plain("redis_commands_processed_total"));
    eventually("all batches are durable", || {
        let now = server.metrics();
        let appended = now.plain("holdfast_journal_appended_batches_total");
        let known = ["written", "durable"].map(|what| now.plain(&format!("holdfast_journal_{what}_batches_total")));
        known == [appended; 2]
    });
}

#[test]
fn an_index_tells_what_is_due_and_since_when() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, "IDX.CREATE jobs PREFIX 1 job: FIELD due");
    ok(&mut client, "IDX.CREATE empty PREFIX 1 none: FIELD due");
    let now_ms = unix_ms(&mut client);
    for (number, due) in [now_ms - 90_000, now_ms - 60_000, now_ms + 3_600_000].into_iter().enumerate() {
        client.run(&format!("HSET job:{number} due {due}"));
    }
    // A record without a time is due, and has no age.
    client.run("HSET job:any due 7");
    let metrics = server.metrics();
    let jobs = [("index", "jobs"), ("db", "db0")];
    assert_eq!(metrics.at("holdfast_index_entries", &jobs), 4.0);
    assert_eq!(metrics.at("holdfast_index_due_entries", &jobs), 3.0);
    let age = metrics.at("holdfast_index_oldest_due_seconds", &jobs);
    assert!((90.0..3000.0).contains(&age), "{age}");
    let empty = [("index", "empty"), ("db", "db0")];
    assert!(
        metrics.all("holdfast_index_entries").iter().any(|(labels, value)| labels["index"] == "empty" && *value == 0.0)
    );
    assert_eq!(metrics.at("holdfast_index_oldest_due_seconds", &empty), 0.0);
    client.run("DEL job:0 job:any");
    let metrics = server.metrics();
    assert_eq!(metrics.at("holdfast_index_due_entries", &jobs), 1.0);
    let age = metrics.at("holdfast_index_oldest_due_seconds", &jobs);
    assert!((60.0..3000.0).contains(&age), "{age}");
}

/// However many users there are, the number of series is bounded, and nothing is lost from the sums.
#[test]
fn many_users_share_a_series() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    for number in 0..200 {
        ok(&mut client, &format!("ACL SETUSER user{number} on nopass +@all ~*"));
    }
    // One that is called as the rest is, and one whose name is no text.
    for name in ["other", "\"\\xff\""] {
        ok(&mut client, &format!("ACL SETUSER {name} on nopass +@all"));
    }
    let mut others: Vec<_> = (0..200)
        .map(|number| {
            let mut other = server.connect();
            ok(&mut other, &format!("AUTH user{number} any"));
            other
        })
        .collect();
    others.iter_mut().for_each(|other| assert_eq!(other.run("PING").to_string(), "+PONG"));
    let metrics = server.metrics();
    let users = metrics.all("holdfast_user_clients");
    assert!(users.len() <= 65, "{}", users.len());
    assert_eq!(users.iter().map(|(_, value)| value).sum::<f64>(), 201.0);
    assert!(metrics.at("holdfast_user_clients", &[("user", "other")]) >= 100.0);
}

/// However many indexes and databases there are, the number of series is bounded, and no record is lost from the sums.
#[test]
fn many_indexes_share_a_series() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    for number in 0..20 {
        ok(&mut client, &format!("IDX.CREATE index{number} PREFIX 1 job: FIELD due"));
    }
    for db in 0..16 {
        ok(&mut client, &format!("SELECT {db}"));
        client.run("HSET job:1 due 1");
    }
    let metrics = server.metrics();
    let named = |labels: &&(crate::exposition::Labels, f64)| {
        labels.0["index"].starts_with("index") || labels.0["index"] == "other"
    };
    let entries: Vec<_> = metrics.all("holdfast_index_entries").iter().filter(named).collect();
    assert!(entries.len() <= 129, "{}", entries.len());
    assert_eq!(entries.iter().map(|(_, value)| value).sum::<f64>(), 320.0);
    let other = metrics.at("holdfast_index_entries", &[("index", "other"), ("db", "other")]);
    assert!(other >= 320.0 - 128.0, "{other}");
}

#[test]
fn a_worker_that_waits_for_a_record_is_counted() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, "IDX.CREATE jobs PREFIX 1 job: FIELD due");
    let jobs = [("index", "jobs"), ("db", "db0")];
    let mut worker = server.connect();
    worker.queue_line("CLAIM 1 jobs MAX NOW SET 1 due NOW+30000 BLOCK 0");
    worker.flush();
    eventually("it waits", || server.metrics().at("holdfast_index_waiting_clients", &jobs) == 1.0);
    assert_eq!(server.metrics().plain("redis_blocked_clients"), 1.0);
    client.run("HSET job:1 due 1");
    assert!(!worker.read().is_error());
    eventually("it waits no longer", || server.metrics().at("holdfast_index_waiting_clients", &jobs) == 0.0);
    assert_eq!(server.metrics().plain("redis_blocked_clients"), 0.0);
}

/// A long script holds shards: figures of those are the last ones, and the answer comes.
#[test]
fn a_long_script_does_not_hold_the_metrics_up() {
    let Some((server, mut client)) = Watched::start_with_client(&["--busy-reply-threshold", "1"]) else { return };
    ok(&mut client, "MSET a 1 b 2 c 3");
    assert_eq!(server.metrics().at("redis_db_keys", &[("db", "db0")]), 3.0);
    let mut long = server.connect();
    long.queue_line("EVAL \"redis.call('GET', KEYS[1]) while true do end\" 1 a");
    long.flush();
    eventually("it runs long", || client.run("GET a").to_string().starts_with("-BUSY"));
    let metrics = server.metrics();
    assert_eq!(metrics.at("redis_db_keys", &[("db", "db0")]), 3.0);
    ok(&mut client, "SCRIPT KILL");
    assert!(long.read().is_error());
}

#[test]
fn methods_and_paths() {
    let Some(server) = Watched::start(&[]) else { return };
    for (method, path, status) in [
        ("GET", "/metrics", 200),
        ("GET", "/metrics?any=thing", 200),
        ("GET", "/health/live", 200),
        ("GET", "/health/ready", 200),
        ("GET", "/", 404),
        ("GET", "/metrics/", 404),
        ("GET", "/../metrics", 404),
        ("POST", "/metrics", 405),
        ("DELETE", "/health/live", 405),
    ] {
        let response = request(server.admin, method, path, &[]);
        assert_eq!(response.status, status, "{method} {path}: {}", response.body);
        assert_eq!(response.header("connection"), "close");
    }
    let head = send(server.admin, b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200") && head.ends_with(b"\r\n\r\n"), "a head without a body");
}

#[test]
fn without_a_port_there_is_none() {
    let Some(home) = crate::support::Home::fresh() else { return };
    let server = home.start(&[]);
    let mut client = server.connect();
    assert_eq!(client.run("CONFIG GET admin-port").to_string(), "[\"admin-port\", \"0\"]");
    assert!(client.run("CONFIG SET admin-port 1234").is_error(), "it is set at the start");
    assert!(!home.stderr().contains("metrics and health"), "{}", home.stderr());
}

#[test]
fn syncs_of_the_journal_are_a_histogram() {
    let Some((server, mut client)) = Watched::start_with_client(&["--appendonly", "yes", "--appendfsync", "always"])
    else {
        return;
    };
    let count = "holdfast_journal_sync_seconds_count";
    let before = server.metrics().plain(count);
    (0..10).for_each(|number| ok(&mut client, &format!("SET a {number}")));
    // Each reply has waited for a sync of its own.
    let metrics = server.metrics();
    assert!(metrics.plain(count) >= before + 10.0, "{} after {before}", metrics.plain(count));
    assert!(metrics.plain("holdfast_journal_sync_seconds_sum") > 0.0);
    let buckets = metrics.all("holdfast_journal_sync_seconds_bucket");
    let at_most = |bound: &str| buckets.iter().find(|(labels, _)| labels["le"] == bound).map(|(_, count)| *count);
    assert_eq!(at_most("+Inf"), Some(metrics.plain(count)));
    assert!(at_most("8.589934592") <= at_most("+Inf") && at_most("0.000065536") <= at_most("8.589934592"));
    assert_eq!(buckets.len(), 19);
}

#[test]
fn claims_sweeps_and_dead_letters_are_counted() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, "IDX.CREATE jobs PREFIX 1 job: FIELD due");
    for (name, attempts) in [("a", 0), ("b", 1), ("c", 3)] {
        client.run(&format!("HSET job:{name} due 1 attempt {attempts} state pending"));
    }
    let claim = "CLAIM 1 jobs MAX NOW SET 1 due NOW+100000 COUNTER attempt UPTO 3 ELSE 2 state dead due 9e15 COUNT 10";
    assert_eq!(client.run(claim).items().len(), 2);
    // The first has a try left, the second none; the third is a dead letter, and due in the far future.
    let sweep = "SWEEP jobs BEFORE 1000000000000000 RETRY attempt 2 ELSE 2 state dead due 9e15 SET 1 due 5";
    assert_eq!(client.run(sweep).items().len(), 2);
    let metrics = server.metrics();
    assert_eq!(metrics.plain("holdfast_claimed_records_total"), 2.0);
    assert_eq!(metrics.at("holdfast_dead_letters_total", &[("command", "claim")]), 1.0);
    assert_eq!(metrics.at("holdfast_dead_letters_total", &[("command", "sweep")]), 1.0);
    assert_eq!(metrics.plain("holdfast_requeued_records_total"), 1.0);
    ok(&mut client, "CONFIG RESETSTAT");
    assert_eq!(server.metrics().plain("holdfast_claimed_records_total"), 0.0);
}

#[test]
fn keys_are_counted_by_type_and_runs_by_status() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    for line in [
        "MSET a 1 b 2",
        "RPUSH l 1",
        "SADD s 1",
        "HSET h f v",
        "ZADD z 1 m",
        "XADD x * f v",
        "CELL.SET c 1",
        "REG.PUT r 1 v",
        "SESSION.OPEN ID sid",
        "RUN.APPEND run:1 * RunStarted d",
        "RUN.APPEND run:2 * RunStarted d",
        "RUN.APPEND run:2 * RunFailed d",
        "RUN.APPEND run:3 * other d",
        "SELECT 3",
        "SET a 1",
    ] {
        assert!(!client.run(line).is_error(), "{line}");
    }
    let metrics = server.metrics();
    for (name, count) in [
        ("string", 3.0),
        ("list", 1.0),
        ("set", 1.0),
        ("hash", 1.0),
        ("zset", 1.0),
        ("stream", 1.0),
        ("cell", 1.0),
        ("register", 1.0),
        ("session", 1.0),
        ("run", 3.0),
    ] {
        assert_eq!(metrics.at("holdfast_type_keys", &[("type", name)]), count, "{name}");
    }
    for (status, count) in
        [("pending", 1.0), ("running", 1.0), ("paused", 0.0), ("completed", 0.0), ("failed", 1.0), ("cancelled", 0.0)]
    {
        assert_eq!(metrics.at("holdfast_runs", &[("status", status)]), count, "{status}");
    }
    assert_eq!(metrics.plain("holdfast_open_runs"), 2.0);
    assert_eq!(metrics.plain("holdfast_sessions"), 1.0);
    ok(&mut client, "FLUSHALL");
    let metrics = server.metrics();
    assert!(
        metrics.all("holdfast_type_keys").iter().chain(metrics.all("holdfast_runs")).all(|(_, count)| *count == 0.0)
    );
}

#[test]
fn the_reader_is_strict() {
    let good = "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"a\\\"\\\\\\n\",y=\"\"} 1.5\n";
    let metrics = Metrics::parse(good, Style::Prometheus);
    assert_eq!(metrics.at("a_total", &[("x", "a\"\\\n"), ("y", "")]), 1.5);
    for bad in [
        "a 1\n",
        "# HELP a A.\n# TYPE a gauge\na 1",
        "# HELP a A.\n# TYPE a gauge\na{x=\"1\"\n",
        "# HELP a A.\n# TYPE a gauge\na{x=\"\\d\"} 1\n",
        "# HELP a A.\n# TYPE a gauge\na 1\na 1\n",
        "# HELP a A.\n# TYPE a gauge\nb 1\n",
        "# HELP a A.\n# TYPE a counter\na 1\n",
        "# HELP a A.\n# TYPE a gauge\na NaN\n",
        "# HELP a A.\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
        "# HELP a A.\n# TYPE a gauge\n\na 1\n",
    ] {
        assert!(std::panic::catch_unwind(|| Metrics::parse(bad, Style::Prometheus)).is_err(), "{bad:?}");
    }
}
