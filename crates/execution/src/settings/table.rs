//! All settings: Redis's names, bounds and defaults (7.0, with those that 7.2 to 8.0 added), and our own. CONFIG GET
//! lists them in this order.
//!
//! A row marked `.without_effect()` is accepted, checked, stored and reported, because tools written for Redis set it;
//! it changes nothing but a line of INFO. `docs/SETTINGS.md` lists these rows, `config/holdfast.toml` has a section for
//! them, and a start logs a warning for each that differs from its default. Tests keep all three equal to this table.
//!
//! A new setting needs a row here, a line in `config/holdfast.toml`, and, if code reads it, a constant in [`row`] and
//! an accessor in `read`.

use super::choices::{
    APPENDFSYNC, LOG_FORMATS, LOG_LEVELS, MAXMEMORY_POLICIES, NO_YES_LOCAL, READS, TLS_AUTH_CLIENTS,
    TLS_AUTH_CLIENTS_USER, WORKER_BALANCES,
};
use super::schema::{Row, checked, choice, integer, memory, text, yes_no};
use super::text as check;
use super::value::{INT_MAX, Kind};

const UINT_MAX: i64 = u32::MAX as i64;
const PORT_MAX: i64 = u16::MAX as i64;
const LONG_MAX: i64 = i64::MAX;
/// The highest number of pending requests that a session can count.
const SESSION_PENDING_MAX: i64 = 1 << 31;
const SIZE_MAX: u64 = i64::MAX as u64;
const MIB: u64 = 1 << 20;
/// Lengths of strings and positions of arguments are 32 bits.
const STRING_MAX: u64 = (1 << 32) - MIB;

const NO_DEFRAGMENTATION: &str = "Active defragmentation cannot be enabled: it requires a Redis server compiled with a \
     modified Jemalloc like the one shipped by default with the Redis source distribution";

pub const TABLE: &[Row] = &[
    // Network.
    checked("bind", check::addresses, "127.0.0.1"),
    text("bind-source-addr", "").without_effect(),
    integer("port", 0, PORT_MAX, "6379"),
    yes_no("protected-mode", "yes"),
    integer("tcp-backlog", 0, INT_MAX, "511").immutable().without_effect(),
    integer("tcp-keepalive", 0, INT_MAX, "300"),
    integer("timeout", 0, INT_MAX, "0"),
    text("unixsocket", "").immutable().without_effect(),
    Row::new("unixsocketperm", Kind::Octal { max: 0o777 }, "0").immutable().without_effect(),
    integer("socket-mark-id", 0, UINT_MAX, "0").immutable().without_effect(),
    integer("max-new-connections-per-cycle", 1, 1000, "10").without_effect(),
    integer("max-new-tls-connections-per-cycle", 1, 1000, "1").without_effect(),
    // Clients.
    integer("maxclients", 1, UINT_MAX, "10000"),
    Row::new("maxmemory-clients", Kind::MemoryOrPercent, "0"),
    memory("client-query-buffer-limit", MIB, SIZE_MAX, "1073741824"),
    memory("proto-max-bulk-len", MIB, STRING_MAX, "536870912"),
    Row::new(
        "client-output-buffer-limit",
        Kind::BufferLimits,
        "normal 1073741824 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
    ),
    integer("proto-max-args", 16, INT_MAX, "1048576"),
    memory("proto-max-inline-len", 1024, 1 << 30, "65536"),
    integer("tracking-table-max-keys", 0, LONG_MAX, "1000000"),
    Row::new("notify-keyspace-events", Kind::Events, ""),
    // Claims.
    integer("claim-reject-max", 1, INT_MAX, "64"),
    // Interactive transactions.
    integer("txn-max-keys", 1, INT_MAX, "1024"),
    memory("txn-max-bytes", 1024, SIZE_MAX, "67108864"),
    integer("txn-timeout", 1, INT_MAX, "60000"),
    // Permissions.
    text("requirepass", "").sensitive(),
    text("aclfile", "").immutable(),
    choice("acl-pubsub-default", &[("allchannels", 1), ("resetchannels", 0)], "resetchannels"),
    integer("acllog-max-len", 0, LONG_MAX, "128"),
    choice("enable-protected-configs", NO_YES_LOCAL, "no").immutable(),
    choice("enable-debug-command", NO_YES_LOCAL, "no").immutable(),
    choice("enable-module-command", NO_YES_LOCAL, "no").immutable().without_effect(),
    // The process.
    yes_no("daemonize", "no").immutable().without_effect(),
    choice("supervised", &[("upstart", 3), ("systemd", 2), ("auto", 1), ("no", 0)], "no").immutable().without_effect(),
    text("pidfile", "").immutable().without_effect(),
    text("dir", "./data").protected(),
    text("log", "").immutable().sensitive(),
    text("follow", "").immutable(),
    integer("log-replicas", 1, 5, "3").immutable(),
    text("log-monitoring", "").immutable(),
    yes_no("log-unsafe-sync", "no").immutable(),
    text("log-skip", "").immutable(),
    text("log-credentials", "").immutable(),
    text("log-nkey", "").immutable(),
    text("log-tls-ca-cert-file", "").immutable(),
    text("log-tls-cert-file", "").immutable(),
    text("log-tls-key-file", "").immutable(),
    yes_no("follower-reads", "yes"),
    yes_no("import-mode", "no"),
    choice("reads", READS, "leased"),
    integer("databases", 16, 16, "16").immutable().without_effect(),
    integer("threads", 0, 512, "0").pinned(),
    choice("worker-balance", WORKER_BALANCES, "elastic"),
    integer("shards", 1, 512, "128").pinned(),
    integer("io-threads", 1, 128, "1").immutable().without_effect(),
    yes_no("io-threads-do-reads", "no").immutable().without_effect(),
    text("server-cpulist", "").alias("server_cpulist").pinned().without_effect(),
    text("bio-cpulist", "").alias("bio_cpulist").pinned().without_effect(),
    text("aof-rewrite-cpulist", "").alias("aof_rewrite_cpulist").pinned().without_effect(),
    text("bgsave-cpulist", "").alias("bgsave_cpulist").pinned().without_effect(),
    Row::new("hz", Kind::Clamped { low: 1, high: 500 }, "10").without_effect(),
    yes_no("dynamic-hz", "yes").without_effect(),
    yes_no("activerehashing", "yes").without_effect(),
    yes_no("disable-thp", "no").immutable(),
    choice("oom-score-adj", &[("no", 0), ("yes", 1), ("relative", 1), ("absolute", 2)], "no").without_effect(),
    checked("oom-score-adj-values", check::oom_score_values, "0 200 800").without_effect(),
    yes_no("set-proc-title", "yes").immutable().without_effect(),
    checked("proc-title-template", check::title_template, "{title} {listen-addr} {server-mode}").without_effect(),
    checked("locale-collate", check::locale, "").without_effect(),
    yes_no("always-show-logo", "no").immutable().without_effect(),
    integer("shutdown-timeout", 0, INT_MAX, "10"),
    Row::new("shutdown-on-sigint", Kind::ShutdownOptions, "default").without_effect(),
    Row::new("shutdown-on-sigterm", Kind::ShutdownOptions, "default").without_effect(),
    yes_no("crash-log-enabled", "yes").without_effect(),
    yes_no("crash-memcheck-enabled", "yes").without_effect(),
    yes_no("use-exit-on-panic", "no").hidden().without_effect(),
    integer("watchdog-period", 0, INT_MAX, "0").hidden().without_effect(),
    text("ignore-warnings", "").without_effect(),
    // The server's own log.
    choice("loglevel", LOG_LEVELS, "notice").alias("log-level"),
    choice("log-format", LOG_FORMATS, "text").pinned(),
    text("logfile", "").immutable().without_effect(),
    yes_no("syslog-enabled", "no").immutable().without_effect(),
    text("syslog-ident", "redis").immutable().without_effect(),
    choice(
        "syslog-facility",
        &[
            ("user", 1),
            ("local0", 16),
            ("local1", 17),
            ("local2", 18),
            ("local3", 19),
            ("local4", 20),
            ("local5", 21),
            ("local6", 22),
            ("local7", 23),
        ],
        "local0",
    )
    .immutable()
    .without_effect(),
    yes_no("hide-user-data-from-log", "no").without_effect(),
    // Slow commands and latency.
    integer("slowlog-log-slower-than", -1, LONG_MAX, "10000"),
    integer("slowlog-max-len", 0, LONG_MAX, "128"),
    integer("latency-monitor-threshold", 0, LONG_MAX, "0"),
    yes_no("latency-tracking", "yes"),
    checked("latency-tracking-info-percentiles", check::percentiles, "50 99 99.9"),
    // Scripts.
    integer("busy-reply-threshold", 0, LONG_MAX, "5000").alias("lua-time-limit"),
    yes_no("lua-enable-deprecated-api", "no").hidden().immutable().without_effect(),
    // Memory, eviction and expiry.
    memory("maxmemory", 0, u64::MAX, "0"),
    choice("maxmemory-policy", MAXMEMORY_POLICIES, "noeviction"),
    integer("maxmemory-samples", 1, 64, "5"),
    integer("maxmemory-eviction-tenacity", 0, 100, "10"),
    integer("lfu-log-factor", 0, INT_MAX, "10"),
    integer("lfu-decay-time", 0, INT_MAX, "1"),
    integer("active-expire-effort", 1, 10, "1").without_effect(),
    yes_no("lazyfree-lazy-eviction", "no").without_effect(),
    yes_no("lazyfree-lazy-expire", "no").without_effect(),
    yes_no("lazyfree-lazy-server-del", "no").without_effect(),
    yes_no("lazyfree-lazy-user-del", "no").without_effect(),
    yes_no("lazyfree-lazy-user-flush", "no").without_effect(),
    yes_no("jemalloc-bg-thread", "yes").without_effect(),
    Row::new("activedefrag", Kind::AlwaysNo(NO_DEFRAGMENTATION), "no").without_effect(),
    memory("active-defrag-ignore-bytes", 1, SIZE_MAX, "104857600").without_effect(),
    integer("active-defrag-threshold-lower", 0, 1000, "10").without_effect(),
    integer("active-defrag-threshold-upper", 0, 1000, "100").without_effect(),
    integer("active-defrag-cycle-min", 1, 99, "1").without_effect(),
    integer("active-defrag-cycle-max", 1, 99, "25").without_effect(),
    integer("active-defrag-max-scan-fields", 1, LONG_MAX, "1000").without_effect(),
    // Sizes at which compact values are converted.
    integer("hash-max-listpack-entries", 0, LONG_MAX, "512").alias("hash-max-ziplist-entries"),
    memory("hash-max-listpack-value", 0, SIZE_MAX, "64").alias("hash-max-ziplist-value"),
    integer("list-max-listpack-size", i32::MIN as i64, INT_MAX, "-2").alias("list-max-ziplist-size"),
    integer("list-compress-depth", 0, INT_MAX, "0").without_effect(),
    integer("set-max-intset-entries", 0, LONG_MAX, "512"),
    integer("set-max-listpack-entries", 0, LONG_MAX, "128"),
    integer("set-max-listpack-value", 0, LONG_MAX, "64"),
    integer("zset-max-listpack-entries", 0, LONG_MAX, "128").alias("zset-max-ziplist-entries"),
    memory("zset-max-listpack-value", 0, SIZE_MAX, "64").alias("zset-max-ziplist-value"),
    memory("hll-sparse-max-bytes", 0, SIZE_MAX, "3000"),
    memory("stream-node-max-bytes", 0, SIZE_MAX, "4096"),
    integer("stream-node-max-entries", 0, LONG_MAX, "100"),
    integer("stream-idmp-duration", 1, 86_400, "100"),
    integer("stream-idmp-maxsize", 1, 10_000, "100"),
    // Cells.
    integer("cell-max-versions", 0, LONG_MAX, "128"),
    // Registers.
    integer("reg-buffer-max", 0, LONG_MAX, "1024"),
    // Sessions.
    memory("session-cache-max-bytes", 0, SIZE_MAX, "1048576"),
    integer("session-pending-max", 0, SESSION_PENDING_MAX, "10000"),
    // Snapshots.
    checked("save", check::save_points, "3600 1"),
    checked("dbfilename", check::dump_file_name, "dump.rdb").protected().without_effect(),
    yes_no("rdbcompression", "yes").without_effect(),
    yes_no("rdbchecksum", "yes").immutable().without_effect(),
    yes_no("stop-writes-on-bgsave-error", "yes"),
    yes_no("rdb-del-sync-files", "no").without_effect(),
    yes_no("rdb-save-incremental-fsync", "yes").without_effect(),
    integer("rdb-key-save-delay", i32::MIN as i64, INT_MAX, "0").hidden().without_effect(),
    integer("key-load-delay", i32::MIN as i64, INT_MAX, "0").hidden(),
    integer("loading-process-events-interval-bytes", 1024, INT_MAX, "2097152").hidden().without_effect(),
    choice("sanitize-dump-payload", &[("no", 0), ("yes", 1), ("clients", 2)], "no").without_effect(),
    // The append-only log.
    yes_no("appendonly", "yes"),
    checked("appendfilename", check::append_file_name, "appendonly.aof").immutable().without_effect(),
    checked("appenddirname", check::append_dir_name, "appendonlydir").immutable().without_effect(),
    choice("appendfsync", APPENDFSYNC, "everysec"),
    yes_no("no-appendfsync-on-rewrite", "no").without_effect(),
    integer("auto-aof-rewrite-percentage", 0, INT_MAX, "100"),
    memory("auto-aof-rewrite-min-size", 0, SIZE_MAX, "67108864"),
    yes_no("aof-load-truncated", "yes").without_effect(),
    yes_no("aof-use-rdb-preamble", "yes").without_effect(),
    yes_no("aof-timestamp-enabled", "no").without_effect(),
    yes_no("aof-rewrite-incremental-fsync", "yes").without_effect(),
    yes_no("aof-disable-auto-gc", "no").without_effect(),
    // Replication.
    text("replicaof", "").alias("slaveof").immutable().without_effect(),
    text("masteruser", "").sensitive().without_effect(),
    text("masterauth", "").sensitive().without_effect(),
    yes_no("replica-serve-stale-data", "yes").alias("slave-serve-stale-data").without_effect(),
    yes_no("replica-read-only", "yes").alias("slave-read-only").without_effect(),
    yes_no("replica-lazy-flush", "no").alias("slave-lazy-flush").without_effect(),
    yes_no("replica-ignore-maxmemory", "yes").alias("slave-ignore-maxmemory").without_effect(),
    yes_no("replica-ignore-disk-write-errors", "no").without_effect(),
    yes_no("replica-announced", "yes").without_effect(),
    checked("replica-announce-ip", check::announced_host, "").alias("slave-announce-ip"),
    integer("replica-announce-port", 0, PORT_MAX, "0").alias("slave-announce-port"),
    integer("replica-priority", 0, INT_MAX, "100").alias("slave-priority").without_effect(),
    memory("replica-full-sync-buffer-limit", 0, SIZE_MAX, "0").without_effect(),
    integer("min-replicas-to-write", 0, INT_MAX, "0").alias("min-slaves-to-write"),
    integer("min-replicas-max-lag", 0, INT_MAX, "10").alias("min-slaves-max-lag"),
    memory("repl-backlog-size", 1, SIZE_MAX, "1048576").without_effect(),
    integer("repl-backlog-ttl", 0, LONG_MAX, "3600").without_effect(),
    yes_no("repl-disable-tcp-nodelay", "no").without_effect(),
    choice("repl-diskless-load", &[("disabled", 0), ("on-empty-db", 1), ("swapdb", 2)], "disabled").without_effect(),
    yes_no("repl-diskless-sync", "yes").without_effect(),
    integer("repl-diskless-sync-delay", 0, INT_MAX, "5").without_effect(),
    integer("repl-diskless-sync-max-replicas", 0, INT_MAX, "0").without_effect(),
    integer("repl-ping-replica-period", 1, INT_MAX, "10").alias("repl-ping-slave-period").without_effect(),
    yes_no("repl-rdb-channel", "no").hidden().without_effect(),
    integer("repl-timeout", 1, INT_MAX, "60").without_effect(),
    choice("propagation-error-behavior", &[("ignore", 0), ("panic", 1), ("panic-on-replicas", 2)], "ignore")
        .without_effect(),
    // Cluster.
    yes_no("cluster-enabled", "no").immutable().without_effect(),
    text("cluster-config-file", "nodes.conf").immutable().without_effect(),
    integer("cluster-port", 0, PORT_MAX, "0").immutable().without_effect(),
    integer("cluster-node-timeout", 0, LONG_MAX, "15000").without_effect(),
    integer("cluster-migration-barrier", 0, INT_MAX, "1").without_effect(),
    yes_no("cluster-require-full-coverage", "yes").without_effect(),
    yes_no("cluster-allow-reads-when-down", "no").without_effect(),
    yes_no("cluster-allow-pubsubshard-when-down", "yes").without_effect(),
    yes_no("cluster-allow-replica-migration", "yes").without_effect(),
    yes_no("cluster-replica-no-failover", "no").alias("cluster-slave-no-failover").without_effect(),
    integer("cluster-replica-validity-factor", 0, INT_MAX, "10")
        .alias("cluster-slave-validity-factor")
        .without_effect(),
    memory("cluster-link-sendbuf-limit", 0, u64::MAX, "0").without_effect(),
    integer("cluster-compatibility-sample-ratio", 0, 100, "0").without_effect(),
    text("cluster-announce-ip", "").without_effect(),
    checked("cluster-announce-hostname", check::host_name, "").without_effect(),
    checked("cluster-announce-human-nodename", check::node_name, "").without_effect(),
    integer("cluster-announce-port", 0, PORT_MAX, "0").without_effect(),
    integer("cluster-announce-tls-port", 0, PORT_MAX, "0").without_effect(),
    integer("cluster-announce-bus-port", 0, PORT_MAX, "0").without_effect(),
    choice("cluster-preferred-endpoint-type", &[("ip", 0), ("hostname", 1), ("unknown-endpoint", 2)], "ip")
        .without_effect(),
    // TLS. `tls-cluster` and `tls-replication` would claim that traffic is encrypted: they are fixed at start.
    integer("tls-port", 0, PORT_MAX, "0"),
    yes_no("tls-cluster", "no").pinned().without_effect(),
    yes_no("tls-replication", "no").pinned().without_effect(),
    choice("tls-auth-clients", TLS_AUTH_CLIENTS, "yes"),
    choice("tls-auth-clients-user", TLS_AUTH_CLIENTS_USER, "off"),
    text("tls-cert-file", "").names_file(),
    text("tls-key-file", "").names_file(),
    text("tls-key-file-pass", "").sensitive(),
    text("tls-client-cert-file", "").without_effect(),
    text("tls-client-key-file", "").without_effect(),
    text("tls-client-key-file-pass", "").sensitive().without_effect(),
    text("tls-dh-params-file", "").without_effect(),
    text("tls-ca-cert-file", "").names_file(),
    text("tls-ca-cert-dir", "").names_file(),
    text("tls-protocols", ""),
    text("tls-ciphers", ""),
    text("tls-ciphersuites", ""),
    yes_no("tls-prefer-server-ciphers", "no"),
    yes_no("tls-session-caching", "yes"),
    integer("tls-session-cache-size", 0, INT_MAX, "20480"),
    integer("tls-session-cache-timeout", 0, INT_MAX, "300"),
    integer("tls-handshake-timeout", 1, 3600, "10"),
    // The port for operators.
    integer("admin-port", 0, PORT_MAX, "0").pinned(),
    checked("admin-bind", check::addresses, "127.0.0.1").pinned(),
    yes_no("admin-allow-remote", "no").pinned(),
    yes_no("console", "no").pinned(),
    checked("console-origin", check::web_origin, "").pinned(),
    yes_no("console-allow-remote", "no").pinned(),
    // The port that answers as a Sentinel.
    integer("sentinel-port", 0, PORT_MAX, "0").pinned(),
    checked("sentinel-master-name", check::master_name, "holdfast").pinned(),
];

/// Returns the row number of a setting. In a constant, an unknown name does not compile.
pub const fn index_of(name: &str) -> usize {
    let mut row = 0;
    while row < TABLE.len() {
        if equal(TABLE[row].name.as_bytes(), name.as_bytes()) {
            return row;
        }
        row += 1;
    }
    panic!("no such setting")
}

/// `==` on slices is not const yet.
const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Rows by name, for reading them and for asking which ones a CONFIG SET changed.
pub mod row {
    use super::index_of;

    pub const THREADS: usize = index_of("threads");
    pub const WORKER_BALANCE: usize = index_of("worker-balance");
    pub const SHARDS: usize = index_of("shards");
    pub const DISABLE_THP: usize = index_of("disable-thp");
    pub const LOG_FORMAT: usize = index_of("log-format");
    pub const CLAIM_REJECT_MAX: usize = index_of("claim-reject-max");
    pub const TXN_MAX_KEYS: usize = index_of("txn-max-keys");
    pub const TXN_MAX_BYTES: usize = index_of("txn-max-bytes");
    pub const TXN_TIMEOUT: usize = index_of("txn-timeout");
    pub const PROTO_MAX_ARGS: usize = index_of("proto-max-args");
    pub const PROTO_MAX_INLINE_LEN: usize = index_of("proto-max-inline-len");
    pub const BIND: usize = index_of("bind");
    pub const PORT: usize = index_of("port");
    pub const PROTECTED_MODE: usize = index_of("protected-mode");
    pub const TCP_KEEPALIVE: usize = index_of("tcp-keepalive");
    pub const TIMEOUT: usize = index_of("timeout");
    pub const MAXCLIENTS: usize = index_of("maxclients");
    pub const MAXMEMORY_CLIENTS: usize = index_of("maxmemory-clients");
    pub const CLIENT_QUERY_BUFFER_LIMIT: usize = index_of("client-query-buffer-limit");
    pub const STREAM_IDMP_DURATION: usize = index_of("stream-idmp-duration");
    pub const STREAM_IDMP_MAXSIZE: usize = index_of("stream-idmp-maxsize");
    pub const PROTO_MAX_BULK_LEN: usize = index_of("proto-max-bulk-len");
    pub const KEY_LOAD_DELAY: usize = index_of("key-load-delay");
    pub const TRACKING_TABLE_MAX_KEYS: usize = index_of("tracking-table-max-keys");
    pub const NOTIFY_KEYSPACE_EVENTS: usize = index_of("notify-keyspace-events");
    pub const REQUIREPASS: usize = index_of("requirepass");
    pub const ACLFILE: usize = index_of("aclfile");
    pub const ACL_PUBSUB_DEFAULT: usize = index_of("acl-pubsub-default");
    pub const ACLLOG_MAX_LEN: usize = index_of("acllog-max-len");
    pub const ENABLE_PROTECTED_CONFIGS: usize = index_of("enable-protected-configs");
    pub const ENABLE_DEBUG_COMMAND: usize = index_of("enable-debug-command");
    pub const DIR: usize = index_of("dir");
    pub const LOG: usize = index_of("log");
    pub const FOLLOW: usize = index_of("follow");
    pub const LOG_REPLICAS: usize = index_of("log-replicas");
    pub const LOG_MONITORING: usize = index_of("log-monitoring");
    pub const LOG_UNSAFE_SYNC: usize = index_of("log-unsafe-sync");
    pub const LOG_SKIP: usize = index_of("log-skip");
    pub const LOG_CREDENTIALS: usize = index_of("log-credentials");
    pub const LOG_NKEY: usize = index_of("log-nkey");
    pub const LOG_TLS_CA_CERT_FILE: usize = index_of("log-tls-ca-cert-file");
    pub const LOG_TLS_CERT_FILE: usize = index_of("log-tls-cert-file");
    pub const LOG_TLS_KEY_FILE: usize = index_of("log-tls-key-file");
    pub const IMPORT_MODE: usize = index_of("import-mode");
    pub const FOLLOWER_READS: usize = index_of("follower-reads");
    pub const READS: usize = index_of("reads");
    pub const DATABASES: usize = index_of("databases");
    pub const HZ: usize = index_of("hz");
    pub const SHUTDOWN_TIMEOUT: usize = index_of("shutdown-timeout");
    pub const LOGLEVEL: usize = index_of("loglevel");
    pub const SLOWLOG_LOG_SLOWER_THAN: usize = index_of("slowlog-log-slower-than");
    pub const SLOWLOG_MAX_LEN: usize = index_of("slowlog-max-len");
    pub const LATENCY_MONITOR_THRESHOLD: usize = index_of("latency-monitor-threshold");
    pub const LATENCY_TRACKING: usize = index_of("latency-tracking");
    pub const LATENCY_TRACKING_INFO_PERCENTILES: usize = index_of("latency-tracking-info-percentiles");
    pub const BUSY_REPLY_THRESHOLD: usize = index_of("busy-reply-threshold");
    pub const MIN_REPLICAS_TO_WRITE: usize = index_of("min-replicas-to-write");
    pub const MIN_REPLICAS_MAX_LAG: usize = index_of("min-replicas-max-lag");
    pub const MAXMEMORY: usize = index_of("maxmemory");
    pub const MAXMEMORY_POLICY: usize = index_of("maxmemory-policy");
    pub const MAXMEMORY_SAMPLES: usize = index_of("maxmemory-samples");
    pub const MAXMEMORY_EVICTION_TENACITY: usize = index_of("maxmemory-eviction-tenacity");
    pub const LFU_LOG_FACTOR: usize = index_of("lfu-log-factor");
    pub const LFU_DECAY_TIME: usize = index_of("lfu-decay-time");
    pub const HASH_MAX_LISTPACK_ENTRIES: usize = index_of("hash-max-listpack-entries");
    pub const LIST_MAX_LISTPACK_SIZE: usize = index_of("list-max-listpack-size");
    pub const CELL_MAX_VERSIONS: usize = index_of("cell-max-versions");
    pub const REG_BUFFER_MAX: usize = index_of("reg-buffer-max");
    pub const SESSION_CACHE_MAX_BYTES: usize = index_of("session-cache-max-bytes");
    pub const SESSION_PENDING_MAX: usize = index_of("session-pending-max");
    pub const HLL_SPARSE_MAX_BYTES: usize = index_of("hll-sparse-max-bytes");
    pub const SAVE: usize = index_of("save");
    pub const DBFILENAME: usize = index_of("dbfilename");
    pub const STOP_WRITES_ON_BGSAVE_ERROR: usize = index_of("stop-writes-on-bgsave-error");
    pub const AUTO_AOF_REWRITE_PERCENTAGE: usize = index_of("auto-aof-rewrite-percentage");
    pub const AUTO_AOF_REWRITE_MIN_SIZE: usize = index_of("auto-aof-rewrite-min-size");
    pub const APPENDONLY: usize = index_of("appendonly");
    pub const REPL_BACKLOG_SIZE: usize = index_of("repl-backlog-size");
    pub const APPENDFSYNC: usize = index_of("appendfsync");
    pub const TLS_PORT: usize = index_of("tls-port");
    pub const TLS_AUTH_CLIENTS: usize = index_of("tls-auth-clients");
    pub const TLS_AUTH_CLIENTS_USER: usize = index_of("tls-auth-clients-user");
    pub const TLS_CERT_FILE: usize = index_of("tls-cert-file");
    pub const TLS_KEY_FILE: usize = index_of("tls-key-file");
    pub const TLS_KEY_FILE_PASS: usize = index_of("tls-key-file-pass");
    pub const TLS_CA_CERT_FILE: usize = index_of("tls-ca-cert-file");
    pub const TLS_CA_CERT_DIR: usize = index_of("tls-ca-cert-dir");
    pub const TLS_PROTOCOLS: usize = index_of("tls-protocols");
    pub const TLS_CIPHERS: usize = index_of("tls-ciphers");
    pub const TLS_CIPHERSUITES: usize = index_of("tls-ciphersuites");
    pub const TLS_PREFER_SERVER_CIPHERS: usize = index_of("tls-prefer-server-ciphers");
    pub const TLS_SESSION_CACHING: usize = index_of("tls-session-caching");
    pub const TLS_SESSION_CACHE_SIZE: usize = index_of("tls-session-cache-size");
    pub const TLS_SESSION_CACHE_TIMEOUT: usize = index_of("tls-session-cache-timeout");
    pub const TLS_HANDSHAKE_TIMEOUT: usize = index_of("tls-handshake-timeout");
    pub const ADMIN_PORT: usize = index_of("admin-port");
    pub const ADMIN_BIND: usize = index_of("admin-bind");
    pub const ADMIN_ALLOW_REMOTE: usize = index_of("admin-allow-remote");
    pub const CONSOLE: usize = index_of("console");
    pub const CONSOLE_ORIGIN: usize = index_of("console-origin");
    pub const CONSOLE_ALLOW_REMOTE: usize = index_of("console-allow-remote");
    pub const SENTINEL_PORT: usize = index_of("sentinel-port");
    pub const SENTINEL_MASTER_NAME: usize = index_of("sentinel-master-name");
    pub const REPLICA_ANNOUNCE_IP: usize = index_of("replica-announce-ip");
    pub const REPLICA_ANNOUNCE_PORT: usize = index_of("replica-announce-port");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::schema::Access;
    use std::collections::HashSet;

    #[test]
    fn row_constants_point_at_their_names() {
        assert_eq!(TABLE[row::BIND].name, "bind");
        assert_eq!(TABLE[row::HASH_MAX_LISTPACK_ENTRIES].name, "hash-max-listpack-entries");
        assert_eq!(TABLE[row::BUSY_REPLY_THRESHOLD].alias, Some("lua-time-limit"));
        assert_eq!(TABLE[row::REQUIREPASS].name, "requirepass");
    }

    #[test]
    fn names_are_lowercase_and_used_once() {
        let mut seen = HashSet::new();
        for row in TABLE {
            for name in [Some(row.name), row.alias].into_iter().flatten() {
                assert_eq!(name, name.to_ascii_lowercase());
                assert!(!name.contains(['*', '?', '[', ' ']), "{name}");
                assert!(seen.insert(name), "{name} is there twice");
            }
        }
    }

    #[test]
    fn secrets_are_marked() {
        let secret = |row: &Row| row.name.ends_with("pass") || row.name.ends_with("auth");
        for row in TABLE.iter().filter(|row| secret(row)) {
            assert!(row.sensitive, "{}", row.name);
        }
    }

    #[test]
    fn listening_settings_are_live() {
        for row in [row::BIND, row::PORT, row::TLS_PORT] {
            assert_eq!(TABLE[row].access, Access::Live);
        }
    }
}
