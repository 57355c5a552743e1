//! INFO, read as redis_exporter reads it: every field that it makes a metric of is there and is a number, or a word that it
//! knows.

use std::collections::BTreeMap;

use crate::http::Watched;
use crate::support::ok;

/// Fields that redis_exporter makes a gauge or a counter of, without a condition. Its names for modules, clusters and other
/// products are left out.
const NUMBERS: &str = "\
    async_loading rdb_saves rdb_last_load_keys_expired rdb_last_load_keys_loaded aof_rewrites \
    aof_rewrites_consecutive_failures current_fork_perc \
    uptime_in_seconds process_id connected_clients blocked_clients tracking_clients \
    client_recent_max_output_buffer client_recent_max_input_buffer allocator_active allocator_allocated \
    allocator_resident allocator_frag_ratio allocator_frag_bytes allocator_rss_ratio allocator_rss_bytes \
    used_memory used_memory_rss used_memory_peak used_memory_lua used_memory_overhead used_memory_startup \
    used_memory_dataset used_memory_scripts maxmemory mem_fragmentation_ratio mem_fragmentation_bytes \
    mem_clients_slaves mem_clients_normal mem_not_counted_for_evict lazyfree_pending_objects \
    active_defrag_running migrate_cached_sockets active_defrag_hits active_defrag_misses active_defrag_key_hits \
    active_defrag_key_misses expired_time_cap_reached_count loading rdb_changes_since_last_save \
    rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_time_sec rdb_current_bgsave_time_sec \
    rdb_last_cow_size aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled aof_last_rewrite_time_sec \
    aof_current_rewrite_time_sec aof_last_cow_size aof_current_size aof_base_size aof_pending_rewrite \
    aof_buffer_length aof_pending_bio_fsync aof_delayed_fsync module_fork_in_progress module_fork_last_cow_size \
    pubsub_channels pubsub_patterns latest_fork_usec connected_slaves repl_backlog_size repl_backlog_active \
    repl_backlog_first_byte_offset repl_backlog_histlen master_repl_offset second_repl_offset \
    slave_expires_tracked_keys sync_full sync_partial_ok sync_partial_err total_connections_received \
    total_commands_processed rejected_connections total_net_input_bytes total_net_output_bytes expired_keys \
    evicted_keys keyspace_hits keyspace_misses used_cpu_sys used_cpu_user used_cpu_sys_children \
    used_cpu_user_children";

#[test]
fn redis_exporter_finds_all_that_it_looks_for() {
    let Some((_server, mut client)) = Watched::start_with_client(&["--slowlog-log-slower-than", "-1"]) else { return };
    ok(&mut client, "CLIENT SETNAME redis_exporter");
    ok(&mut client, "SET a 1 EX 1000");
    assert!(client.run("LPUSH a 1").is_error());
    // Its start: CONFIG GET *, then INFO ALL.
    let settings = client.run("CONFIG GET *");
    assert!(settings.items().len().is_multiple_of(2) && settings.items().iter().any(|item| item.text() == "databases"));
    let reply = client.run("INFO ALL");
    let (mut class, mut fields) = (String::new(), BTreeMap::new());
    for line in reply.text().split('\n').map(str::trim) {
        if let Some(title) = line.strip_prefix("# ") {
            class = title.into();
        } else if let Some((name, value)) = line.split_once(':') {
            fields.insert((class.clone(), name.to_owned()), value.to_owned());
        }
    }
    let find = |name: &str| fields.iter().find(|((_, field), _)| field == name).map(|(_, value)| value.as_str());
    for name in NUMBERS.split(' ') {
        let value = find(name).unwrap_or_else(|| panic!("INFO ALL has no {name}"));
        assert!(value.parse::<f64>().is_ok(), "{name}: {value}");
    }
    for name in ["rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status"] {
        assert_eq!(find(name), Some("ok"), "{name}");
    }
    for name in
        ["role", "redis_version", "redis_build_id", "redis_mode", "os", "maxmemory_policy", "tcp_port", "run_id"]
    {
        assert!(find(name).is_some_and(|value| !value.is_empty()), "{name}");
    }
    // `cmdstat_set:calls=1,usec=2,usec_per_call=2.00,rejected_calls=0,failed_calls=0`
    let numbers = |text: &str| -> Vec<(String, f64)> {
        let parts = text.split(',').map(|part| part.split_once('=').unwrap_or_else(|| panic!("{text}")));
        parts.map(|(name, value)| (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{text}")))).collect()
    };
    let of_class = |wanted: &'static str| fields.iter().filter(move |((class, _), _)| class == wanted);
    let mut commands = 0;
    for ((_, name), value) in of_class("Commandstats") {
        assert!(name.starts_with("cmdstat_"), "{name}");
        let names: Vec<String> = numbers(value).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["calls", "usec", "usec_per_call", "rejected_calls", "failed_calls"], "{value}");
        commands += 1;
    }
    assert!(commands >= 3);
    for ((_, name), value) in of_class("Latencystats") {
        assert!(name.starts_with("latency_percentiles_usec_"), "{name}");
        assert!(numbers(value).iter().all(|(percent, _)| percent[1..].parse::<f64>().is_ok()), "{value}");
    }
    assert_eq!(find("errorstat_WRONGTYPE"), Some("count=1"));
    let databases: Vec<_> = of_class("Keyspace").collect();
    assert_eq!(databases.len(), 1);
    let names: Vec<String> = numbers(databases[0].1).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        (databases[0].0.1.as_str(), &names[..3]),
        ("db0", &["keys", "expires", "avg_ttl"].map(String::from)[..])
    );
    // What it asks next.
    assert_eq!(client.run("SLOWLOG LEN").integer(), 0);
    assert!(client.run("SLOWLOG GET 1").items().is_empty());
    assert!(client.run("LATENCY LATEST").items().is_empty());
}

/// What RedisInsight asks when it connects, and when it lists keys, is answered.
#[test]
fn redis_insight_gets_its_answers() {
    let Some((_server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, "SET a 1");
    for line in [
        "CLIENT SETNAME redisinsight",
        "CLIENT SETINFO LIB-NAME ioredis",
        "MODULE LIST",
        "COMMAND",
        "COMMAND INFO json.get",
        "INFO",
        "INFO replication",
        "ACL WHOAMI",
        "ACL CAT dangerous",
        "ACL DRYRUN default GET a",
        "CONFIG GET databases",
        "DBSIZE",
        "SCAN 0 MATCH * COUNT 500",
        "SCAN 0 MATCH * COUNT 500 TYPE string",
        "TYPE a",
        "TTL a",
        "OBJECT ENCODING a",
        "MEMORY USAGE a SAMPLES 0",
        "SLOWLOG GET 50",
        "CONFIG GET slowlog*",
        "CLIENT LIST",
        "PUBSUB CHANNELS",
        "FUNCTION LIST",
    ] {
        let reply = client.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    // No cluster, in the words by which it knows.
    assert_eq!(client.run("CLUSTER INFO").to_string(), "-ERR This instance has cluster support disabled");
}

/// The fields of INFO that RedisInsight shows, by section.
const SHOWN: &[(&str, &[&str])] = &[
    ("server", &["uptime_in_seconds"]),
    ("clients", &["connected_clients"]),
    ("memory", &["used_memory", "number_of_cached_scripts"]),
    ("stats", &["instantaneous_ops_per_sec", "instantaneous_input_kbps", "instantaneous_output_kbps"]),
    ("stats", &["keyspace_hits", "keyspace_misses"]),
    ("cpu", &["used_cpu_sys", "used_cpu_user"]),
];

/// INFO, read as RedisInsight reads it: sections by their titles in lower case, and what it shows of a database in them.
#[test]
fn redis_insight_finds_what_it_shows() {
    let Some((_server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, "CLIENT SETNAME redisinsight-browser-1a2b3c4d");
    ok(&mut client, "MSET a 1 b 2");
    ok(&mut client, "SELECT 3");
    ok(&mut client, "SET c 1 EX 1000");
    let reply = client.run("INFO");
    let mut sections: BTreeMap<String, BTreeMap<&str, &str>> = BTreeMap::new();
    for section in reply.text().split("# ").filter(|section| !section.trim().is_empty()) {
        let (title, lines) = section.split_once("\r\n").expect("a title is a line");
        let fields = lines.split("\r\n").filter(|line| !line.is_empty());
        let fields = fields.map(|line| line.split_once(':').unwrap_or_else(|| panic!("{line:?} is no field")));
        sections.insert(title.to_lowercase(), fields.collect());
    }
    for (section, names) in SHOWN {
        for name in *names {
            let value = sections[*section].get(name).unwrap_or_else(|| panic!("no {name} in {section}"));
            assert!(value.parse::<f64>().is_ok(), "{name}: {value}");
        }
    }
    assert!(sections["server"]["redis_version"].split('.').all(|part| part.parse::<u32>().is_ok()));
    assert_eq!((sections["server"]["redis_mode"], sections["replication"]["role"]), ("standalone", "master"));
    assert_eq!(sections["cluster"]["cluster_enabled"], "0");
    let keys = |db: &str| sections["keyspace"][db].split(',').find_map(|part| part.strip_prefix("keys=")).unwrap();
    assert_eq!((keys("db0"), keys("db3"), sections["keyspace"].len()), ("2", "1", 2));
    assert_eq!(client.run("CONFIG GET databases").to_string(), "[\"databases\", \"16\"]");
    assert!(client.run("MODULE LIST").items().is_empty());
    assert_eq!(client.run("DBSIZE").integer(), 1);
    let clients = client.run("CLIENT LIST");
    let lines: Vec<BTreeMap<&str, &str>> = clients
        .text()
        .lines()
        .map(|line| line.split(' ').map(|part| part.split_once('=').unwrap_or_else(|| panic!("{line}"))).collect())
        .collect();
    let own = lines.iter().find(|line| line["name"] == "redisinsight-browser-1a2b3c4d").expect("it is listed");
    assert_eq!((own["db"], own["cmd"]), ("3", "client|list"));
    assert!(own["id"].parse::<u64>().is_ok() && own["age"].parse::<u64>().is_ok());
}
