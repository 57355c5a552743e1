//! INFO.

use std::collections::BTreeMap;
use wire::{Connection, Reply, Session, check};

/// The lines of INFO's sections, by name.
fn info(connection: &mut Connection, sections: &str) -> BTreeMap<String, String> {
    let Reply::Bulk(text) = connection.run(&format!("INFO {sections}")) else { panic!("INFO {sections}: no text") };
    let text = String::from_utf8(text).expect("INFO is text");
    let lines = text.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("{line:?} is no field"));
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

fn titles(connection: &mut Connection, sections: &str) -> Vec<String> {
    let Reply::Bulk(text) = connection.run(&format!("INFO {sections}")) else { panic!("INFO {sections}: no text") };
    let text = String::from_utf8(text).expect("INFO is text");
    let titles = text.lines().filter_map(|line| line.strip_prefix("# "));
    // Redis 8 has two more.
    titles.filter(|title| !["Threads", "Keysizes"].contains(title)).map(str::to_owned).collect()
}

const USUAL: &[&str] = &[
    "Server",
    "Clients",
    "Memory",
    "Persistence",
    "Stats",
    "Replication",
    "CPU",
    "Modules",
    "Errorstats",
    "Cluster",
    "Keyspace",
];

#[test]
fn sections_are_chosen_by_name() {
    let session = Session::start();
    let mut connection = session.connect();
    assert_eq!(titles(&mut connection, ""), USUAL);
    assert_eq!(titles(&mut connection, "default"), USUAL);
    let mut all = USUAL.to_vec();
    all.insert(8, "Commandstats");
    all.insert(10, "Latencystats");
    assert_eq!(titles(&mut connection, "all"), all);
    assert_eq!(titles(&mut connection, "everything"), all);
    assert_eq!(titles(&mut connection, "cluster all"), all);
    assert_eq!(titles(&mut connection, "keyspace SERVER nosuch server"), ["Server", "Keyspace"]);
    assert_eq!(titles(&mut connection, "commandstats latencystats"), ["Commandstats", "Latencystats"]);
    assert_eq!(titles(&mut connection, "module_list"), ["Modules"]);
    assert_eq!(titles(&mut connection, "nosuch"), [""; 0]);
}

#[test]
fn the_report_is_text() {
    check(
        r##"
        > INFO nosuch
        ""
        > INFO cluster
        "# Cluster\r\ncluster_enabled:0\r\n"
        > INFO Cluster MODULES
        ~"# Modules\r\n*\r\n# Cluster\r\ncluster_enabled:0\r\n"
        > HELLO 3
        *
        > INFO cluster
        txt:"# Cluster\r\ncluster_enabled:0\r\n"
        > INFO nosuch
        txt:""
        "##,
    );
}

/// What redis_exporter and RedisInsight read.
#[test]
fn monitoring_finds_its_fields() {
    let session = Session::start();
    let mut connection = session.connect();
    let found = info(&mut connection, "everything");
    let fields = "redis_version redis_mode os arch_bits process_id run_id tcp_port server_time_usec uptime_in_seconds \
        uptime_in_days hz configured_hz lru_clock executable config_file connected_clients maxclients blocked_clients \
        tracking_clients clients_in_timeout_table client_recent_max_input_buffer client_recent_max_output_buffer \
        used_memory used_memory_human used_memory_rss used_memory_peak used_memory_peak_human used_memory_peak_perc \
        used_memory_overhead used_memory_startup used_memory_dataset used_memory_dataset_perc allocator_allocated \
        allocator_active allocator_resident total_system_memory used_memory_lua used_memory_scripts \
        number_of_cached_scripts maxmemory maxmemory_policy allocator_frag_ratio allocator_frag_bytes \
        allocator_rss_ratio allocator_rss_bytes rss_overhead_ratio rss_overhead_bytes mem_fragmentation_ratio \
        mem_fragmentation_bytes mem_not_counted_for_evict mem_replication_backlog mem_clients_slaves \
        mem_clients_normal mem_aof_buffer mem_allocator active_defrag_running lazyfree_pending_objects loading \
        async_loading rdb_saves rdb_last_load_keys_expired rdb_last_load_keys_loaded \
        aof_current_rewrite_time_sec aof_rewrites aof_rewrites_consecutive_failures aof_last_cow_size current_fork_perc \
        module_fork_in_progress module_fork_last_cow_size rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status \
        rdb_last_bgsave_time_sec rdb_current_bgsave_time_sec rdb_last_cow_size aof_enabled aof_rewrite_in_progress \
        aof_rewrite_scheduled aof_last_rewrite_time_sec aof_last_bgrewrite_status aof_last_write_status \
        total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes \
        total_net_output_bytes instantaneous_input_kbps instantaneous_output_kbps rejected_connections sync_full \
        sync_partial_ok sync_partial_err expired_keys expired_time_cap_reached_count expire_cycle_cpu_milliseconds \
        evicted_keys evicted_clients keyspace_hits keyspace_misses pubsub_channels pubsub_patterns latest_fork_usec \
        total_forks migrate_cached_sockets slave_expires_tracked_keys tracking_total_keys unexpected_error_replies \
        total_error_replies dump_payload_sanitizations total_reads_processed total_writes_processed role \
        connected_slaves master_failover_state master_replid master_replid2 master_repl_offset second_repl_offset \
        repl_backlog_active repl_backlog_size repl_backlog_first_byte_offset repl_backlog_histlen used_cpu_sys \
        used_cpu_user used_cpu_sys_children used_cpu_user_children used_cpu_sys_main_thread \
        used_cpu_user_main_thread cluster_enabled";
    let missing: Vec<&str> = fields.split_whitespace().filter(|field| !found.contains_key(*field)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(found["redis_mode"], "standalone");
    assert_eq!(found["role"], "master");
    assert_eq!(found["run_id"].len(), 40);
    assert_eq!(found["maxmemory_policy"], "noeviction");
    assert!(found["used_memory"].parse::<u64>().unwrap() > 10_000);
    assert!(found["used_memory_rss"].parse::<u64>().unwrap() > 1_000_000);
    assert!(found["mem_fragmentation_ratio"].parse::<f64>().unwrap() > 0.0);
    assert!(found["mem_allocator"].starts_with("jemalloc"));
}

#[test]
fn counters_count() {
    let session = Session::start();
    let mut connection = session.connect();
    let number = |found: &BTreeMap<String, String>, name: &str| -> i64 {
        found[name].parse().unwrap_or_else(|_| panic!("{name}:{} is no number", found[name]))
    };
    let before = info(&mut connection, "stats clients persistence");
    let mut other = session.connect();
    // A connection counts when it is accepted.
    other.run("PING");
    let lines = ["SET a 1", "GET a", "GET a", "GET b", "LPUSHX", "INCR a b", "NOSUCH"];
    for line in lines {
        connection.run(line);
    }
    let after = info(&mut connection, "stats clients persistence");
    let grown = |name: &str| number(&after, name) - number(&before, name);
    assert_eq!(grown("keyspace_hits"), 2);
    assert_eq!(grown("keyspace_misses"), 1);
    assert_eq!(grown("total_connections_received"), 1);
    assert_eq!(grown("connected_clients"), 1);
    assert_eq!(grown("rdb_changes_since_last_save"), 1);
    assert_eq!(grown("total_error_replies"), 3);
    // The INFO before, the PING and the four commands that ran.
    assert_eq!(grown("total_commands_processed"), 6);
    assert!(grown("total_net_input_bytes") > 100, "{}", grown("total_net_input_bytes"));
    assert!(grown("total_net_output_bytes") > 100, "{}", grown("total_net_output_bytes"));
    drop(other);
}

#[test]
fn commands_are_counted_by_name_and_outcome() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("CONFIG RESETSTAT");
    for line in
        ["SET a x", "SET a x", "INCR a", "GET", "GET a b", "MEMORY USAGE", "MEMORY USAGE a", "MEMORY", "MEMORY X"]
    {
        connection.run(line);
    }
    let found = info(&mut connection, "commandstats");
    let outcome = |command: &str| {
        let stat = &found[&format!("cmdstat_{command}")];
        let figures: Vec<&str> = stat.split(',').map(|figure| figure.split_once('=').unwrap().1).collect();
        let [calls, _, _, rejected, failed] = figures[..5] else { panic!("{stat}") };
        [calls, rejected, failed].map(|figure| figure.parse::<u64>().unwrap())
    };
    assert_eq!(outcome("set"), [2, 0, 0]);
    assert_eq!(outcome("incr"), [1, 0, 1]);
    assert_eq!(outcome("get"), [0, 2, 0]);
    assert_eq!(outcome("memory|usage"), [1, 1, 0]);
    assert_eq!(outcome("memory"), [0, 1, 0]);
    assert!(!found.contains_key("cmdstat_del"));
    let found = info(&mut connection, "latencystats");
    assert!(found["latency_percentiles_usec_set"].starts_with("p50="), "{found:?}");
    assert!(found["latency_percentiles_usec_set"].contains(",p99="), "{found:?}");
    assert!(found["latency_percentiles_usec_set"].contains(",p99.9="), "{found:?}");
    assert!(!found.contains_key("latency_percentiles_usec_get"));
}

#[test]
fn errors_are_counted_by_code() {
    check(
        r##"
        CONFIG RESETSTAT => +OK
        SET a x => +OK
        INCR a => -ERR value is not an integer or out of range
        NOSUCH => ~-ERR unknown command *
        HGET a f => -WRONGTYPE Operation against a key holding the wrong kind of value
        INFO errorstats => "# Errorstats\r\nerrorstat_ERR:count=2\r\nerrorstat_WRONGTYPE:count=1\r\n"
        "##,
    );
}

#[test]
fn databases_are_counted() {
    check(
        r##"
        > INFO keyspace
        "# Keyspace\r\n"
        > SET a 1
        +OK
        > SET b 1 EX 1000
        +OK
        > HSET h f v
        :1
        > SELECT 9
        +OK
        > SET a 1
        +OK
        > INFO keyspace
        ~"# Keyspace\r\ndb0:keys=3,expires=1,avg_ttl=*\r\ndb9:keys=1,expires=0,avg_ttl=0*\r\n"
        > FLUSHALL
        +OK
        > INFO keyspace
        "# Keyspace\r\n"
        # needs redis >= 7.4
        > HSET h f v
        :1
        > HEXPIRE h 1000 FIELDS 1 f
        [:1]
        > INFO keyspace
        ~"# Keyspace\r\ndb9:keys=1,expires=0,avg_ttl=0,subexpiry=1\r\n"
        "##,
    );
}

#[test]
fn percentiles_can_be_chosen() {
    check(
        r##"
        > CONFIG SET latency-tracking-info-percentiles "50 100"
        +OK
        > CONFIG RESETSTAT
        +OK
        > PING
        +PONG
        > INFO latencystats
        ~"# Latencystats\r\n*latency_percentiles_usec_ping:p50=*,p100=*\r\n*"
        > CONFIG SET latency-tracking-info-percentiles ""
        +OK
        > INFO latencystats
        ~"# Latencystats\r\n*latency_percentiles_usec_ping:\r\n*"
        > CONFIG SET latency-tracking-info-percentiles "50 99 99.9"
        +OK
        "##,
    );
}

#[test]
fn latency_tracking_can_be_off() {
    check(
        r##"
        # config latency-tracking no
        > CONFIG RESETSTAT
        +OK
        > PING
        +PONG
        > INFO latencystats
        "# Latencystats\r\n"
        > LATENCY HISTOGRAM ping
        []
        "##,
    );
}

#[test]
fn lolwut_names_the_version() {
    check(
        r#"
        LOLWUT => ~"*Redis ver. *"
        LOLWUT VERSION 5 8 2 2 => ~"*Redis ver. *"
        LOLWUT VERSION x => -ERR value is not an integer or out of range
        LOLWUT VERSION => ~"*Redis ver. *"
        "#,
    );
}

#[test]
fn time_is_seconds_and_microseconds() {
    let session = Session::start();
    session.check(
        r#"
        > TIME x
        -ERR wrong number of arguments for 'time' command
        "#,
    );
    let Reply::Array(parts) = session.connect().run("TIME") else { panic!("no array") };
    let parts = parts.iter().map(|part| match part {
        Reply::Bulk(digits) => String::from_utf8_lossy(digits).parse::<u64>().expect("digits"),
        other => panic!("{other:?}"),
    });
    let parts: Vec<u64> = parts.collect();
    assert!(parts.len() == 2 && parts[0] > 1_600_000_000 && parts[1] < 1_000_000, "{parts:?}");
}

#[test]
fn values_that_another_thread_frees_are_counted() {
    check(
        r#"
        > CONFIG RESETSTAT
        +OK
        > MSET a 1 b 2 c 3
        +OK
        > FLUSHALL ASYNC
        +OK
        # until lazyfreed_objects:3
        > EVAL "for i = 1, 20000 do redis.call('ZADD', KEYS[1], i, i) redis.call('HSET', KEYS[2], i, i) end" 2 {large}zset {large}hash
        (nil)
        > UNLINK {large}zset {large}hash
        :2
        # until lazyfreed_objects:5
        # until lazyfree_pending_objects:0
        > CONFIG RESETSTAT
        +OK
        # until lazyfreed_objects:0
        "#,
    );
}

#[test]
fn the_memory_of_lua_is_told() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("EVAL 'return 1' 0");
    let found = info(&mut connection, "memory");
    let total: u64 = found["used_memory_vm_total"].parse().expect("a number");
    let parts = ["used_memory_vm_eval", "used_memory_vm_functions"].map(|part| found[part].parse::<u64>().expect(part));
    assert!(total > 10_000 && total == parts.iter().sum(), "{found:?}");
}

/// Regression: what was done before memory is told locked a shard, which a script or transaction holds already.
#[test]
fn memory_is_told_in_scripts_and_transactions() {
    let session = Session::start();
    let mut connection = session.connect();
    let script = "redis.call('SET', KEYS[1], 'v') return #redis.call('INFO', 'memory') > 0";
    assert_eq!(connection.run(&format!("EVAL \"{script}\" 1 k")).to_string(), ":1");
    assert_eq!(connection.run(&format!("EVAL \"{script}\" 0").replace("KEYS[1]", "'k'")).to_string(), ":1");
    connection.run("MULTI");
    for command in ["SET k v", "INFO memory", "MEMORY STATS"] {
        assert_eq!(connection.run(command).to_string(), "+QUEUED");
    }
    let replies = connection.run("EXEC");
    assert!(replies.items().iter().all(|reply| !matches!(reply, Reply::Error(_))), "{replies}");
}
