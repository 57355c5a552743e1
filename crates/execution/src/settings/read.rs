//! Typed reading of settings. Numbers, switches and choices cost one relaxed load; texts take a read lock.

use super::events::Events;
use super::limits::{BufferLimit, BufferLimits, ClientClass};
use super::{
    AllowedFor, AppendFsync, LogLevel, MaxmemoryPolicy, Settings, TlsAuthClients, TlsAuthClientsUser, WorkerBalance,
    row, text,
};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// By row, for settings without an accessor.
impl Settings {
    #[inline]
    pub fn number(&self, row: usize) -> i64 {
        self.numbers[row].load(Relaxed)
    }

    #[inline]
    pub fn flag(&self, row: usize) -> bool {
        self.number(row) != 0
    }

    /// For rows of bytes, whose slot holds the bits of a `u64`, and for counts, which are never negative.
    #[inline]
    pub fn size(&self, row: usize) -> u64 {
        self.number(row).cast_unsigned()
    }

    /// For rows of text; empty for all others.
    pub fn text(&self, row: usize) -> Arc<str> {
        self.texts.read()[row].clone()
    }

    /// Any row, as CONFIG GET prints it.
    pub fn printed(&self, row: usize) -> String {
        self.print(row, &self.texts.read())
    }

    pub(super) fn limits(&self) -> BufferLimits {
        BufferLimits(self.buffer_limits.each_ref().map(|slots| BufferLimit {
            hard_bytes: slots[0].load(Relaxed),
            soft_bytes: slots[1].load(Relaxed),
            soft_seconds: slots[2].load(Relaxed),
        }))
    }
}

/// Clients and the network.
impl Settings {
    pub fn bind(&self) -> Arc<str> {
        self.text(row::BIND)
    }

    /// Worker threads; 0 = one for each core.
    pub fn threads(&self) -> usize {
        self.number(row::THREADS) as usize
    }

    pub fn worker_balance(&self) -> WorkerBalance {
        WorkerBalance::from_number(self.number(row::WORKER_BALANCE))
    }

    pub fn disable_thp(&self) -> bool {
        self.flag(row::DISABLE_THP)
    }

    pub fn shards(&self) -> usize {
        self.number(row::SHARDS) as usize
    }

    /// Log one JSON object for each line, instead of text.
    pub fn log_as_json(&self) -> bool {
        self.number(row::LOG_FORMAT) == 1
    }

    pub fn proto_max_args(&self) -> u64 {
        self.size(row::PROTO_MAX_ARGS)
    }

    pub fn proto_max_inline_len(&self) -> u64 {
        self.size(row::PROTO_MAX_INLINE_LEN)
    }

    pub fn port(&self) -> u16 {
        self.number(row::PORT) as u16
    }

    /// The port for TLS; 0 is none.
    pub fn tls_port(&self) -> u16 {
        self.number(row::TLS_PORT) as u16
    }

    /// The port at which clients reach this server: that for TLS if there is no other.
    pub fn client_port(&self) -> u16 {
        if self.port() > 0 { self.port() } else { self.tls_port() }
    }

    pub fn tls_auth_clients(&self) -> TlsAuthClients {
        TlsAuthClients::from_number(self.number(row::TLS_AUTH_CLIENTS))
    }

    pub fn tls_auth_clients_user(&self) -> TlsAuthClientsUser {
        TlsAuthClientsUser::from_number(self.number(row::TLS_AUTH_CLIENTS_USER))
    }

    /// Seconds that a handshake may take.
    pub fn tls_handshake_timeout(&self) -> u64 {
        self.size(row::TLS_HANDSHAKE_TIMEOUT)
    }

    /// The port for operators: metrics and health, over HTTP; 0 is none.
    pub fn admin_port(&self) -> u16 {
        self.number(row::ADMIN_PORT) as u16
    }

    /// The addresses of that port.
    pub fn admin_bind(&self) -> Arc<str> {
        self.text(row::ADMIN_BIND)
    }

    /// The port for operators may be open to other machines even if the default user needs no password.
    pub fn admin_allow_remote(&self) -> bool {
        self.flag(row::ADMIN_ALLOW_REMOTE)
    }

    /// The port for operators has the console.
    pub fn console(&self) -> bool {
        self.flag(row::CONSOLE)
    }

    /// Where browsers find the console, if not at the address of its port: that of a proxy, such as `https://ops.example`.
    pub fn console_origin(&self) -> Arc<str> {
        self.text(row::CONSOLE_ORIGIN)
    }

    /// The console may be open to other machines although its port has no TLS.
    pub fn console_allow_remote(&self) -> bool {
        self.flag(row::CONSOLE_ALLOW_REMOTE)
    }

    /// The port that answers as a Sentinel; 0 is none.
    pub fn sentinel_port(&self) -> u16 {
        self.number(row::SENTINEL_PORT) as u16
    }

    /// What clients of that port call the writer and its followers.
    pub fn sentinel_master_name(&self) -> Arc<str> {
        self.text(row::SENTINEL_MASTER_NAME)
    }

    /// The address at which others are told to reach this server; empty if none is set.
    pub fn announced_host(&self) -> Arc<str> {
        self.text(row::REPLICA_ANNOUNCE_IP)
    }

    /// The port at which others are told to reach this server.
    pub fn announced_port(&self) -> u16 {
        match self.number(row::REPLICA_ANNOUNCE_PORT) as u16 {
            0 => self.client_port(),
            port => port,
        }
    }

    pub fn protected_mode(&self) -> bool {
        self.flag(row::PROTECTED_MODE)
    }

    pub fn maxclients(&self) -> u64 {
        self.size(row::MAXCLIENTS)
    }

    /// Seconds after which an idle client is dropped; 0 is never.
    pub fn timeout(&self) -> u64 {
        self.size(row::TIMEOUT)
    }

    /// Seconds between TCP keepalive probes; 0 is off.
    pub fn tcp_keepalive(&self) -> u64 {
        self.size(row::TCP_KEEPALIVE)
    }

    /// For how many seconds streams remember the ids of producers, unless XCFGSET says otherwise.
    pub fn stream_idmp_duration(&self) -> u64 {
        self.size(row::STREAM_IDMP_DURATION)
    }

    /// How many ids of each producer streams remember, unless XCFGSET says otherwise.
    pub fn stream_idmp_maxsize(&self) -> u64 {
        self.size(row::STREAM_IDMP_MAXSIZE)
    }

    pub fn proto_max_bulk_len(&self) -> u64 {
        self.size(row::PROTO_MAX_BULK_LEN)
    }

    pub fn client_query_buffer_limit(&self) -> u64 {
        self.size(row::CLIENT_QUERY_BUFFER_LIMIT)
    }

    #[inline]
    pub fn client_output_buffer_limit(&self, class: ClientClass) -> BufferLimit {
        self.limits().0[class as usize]
    }

    /// Bytes that all clients' buffers may take together; 0 is no limit.
    pub fn maxmemory_clients(&self) -> u64 {
        match self.number(row::MAXMEMORY_CLIENTS) {
            percent @ ..0 => {
                let share = u128::from(self.maxmemory()) * u128::from(percent.unsigned_abs()) / 100;
                share as u64
            }
            bytes => bytes.cast_unsigned(),
        }
    }

    /// Microseconds by which each key that it reads delays a start, for tests. A negative number -n delays by 1/n
    /// microsecond.
    pub fn key_load_delay(&self) -> i64 {
        self.number(row::KEY_LOAD_DELAY)
    }

    pub fn tracking_table_max_keys(&self) -> u64 {
        self.size(row::TRACKING_TABLE_MAX_KEYS)
    }

    /// The most keys that an interactive transaction may touch.
    pub fn txn_max_keys(&self) -> u64 {
        self.size(row::TXN_MAX_KEYS)
    }

    /// The most bytes that an interactive transaction may hold.
    pub fn txn_max_bytes(&self) -> u64 {
        self.size(row::TXN_MAX_BYTES)
    }

    /// Records that a CLAIM rejects before it waits, or uses a side index.
    pub fn claim_reject_max(&self) -> usize {
        self.number(row::CLAIM_REJECT_MAX) as usize
    }

    /// Milliseconds for which an interactive transaction may be open.
    pub fn txn_timeout(&self) -> u64 {
        self.size(row::TXN_TIMEOUT)
    }

    #[inline]
    pub fn notify_keyspace_events(&self) -> Events {
        Events::from_bits_retain(self.number(row::NOTIFY_KEYSPACE_EVENTS) as u32)
    }
}

/// Permissions.
impl Settings {
    /// Whether there is a password, without a lock.
    pub fn requires_password(&self) -> bool {
        self.number(row::REQUIREPASS) != 0
    }

    /// The file with the users; empty if there is none.
    pub fn aclfile(&self) -> Arc<str> {
        self.text(row::ACLFILE)
    }

    /// A new user may use all channels.
    pub fn acl_pubsub_default(&self) -> bool {
        self.number(row::ACL_PUBSUB_DEFAULT) != 0
    }

    pub fn acllog_max_len(&self) -> u64 {
        self.number(row::ACLLOG_MAX_LEN) as u64
    }

    /// The password of the default user; empty if there is none.
    pub fn requirepass(&self) -> Arc<str> {
        self.text(row::REQUIREPASS)
    }

    pub fn enable_debug_command(&self) -> AllowedFor {
        AllowedFor::from_number(self.number(row::ENABLE_DEBUG_COMMAND))
    }
}

/// The process, its log and its metrics.
impl Settings {
    pub fn databases(&self) -> usize {
        self.number(row::DATABASES) as usize
    }

    pub fn hz(&self) -> u64 {
        self.size(row::HZ)
    }

    pub fn loglevel(&self) -> LogLevel {
        LogLevel::from_number(self.number(row::LOGLEVEL))
    }

    /// Seconds a shutdown waits for replicas.
    pub fn shutdown_timeout(&self) -> u64 {
        self.size(row::SHUTDOWN_TIMEOUT)
    }

    /// Microseconds; 0 logs every command, negative none.
    #[inline]
    pub fn slowlog_log_slower_than(&self) -> i64 {
        self.number(row::SLOWLOG_LOG_SLOWER_THAN)
    }

    pub fn slowlog_max_len(&self) -> u64 {
        self.size(row::SLOWLOG_MAX_LEN)
    }

    /// Milliseconds; 0 is off.
    #[inline]
    pub fn latency_monitor_threshold(&self) -> u64 {
        self.size(row::LATENCY_MONITOR_THRESHOLD)
    }

    #[inline]
    pub fn latency_tracking(&self) -> bool {
        self.flag(row::LATENCY_TRACKING)
    }

    pub fn latency_tracking_info_percentiles(&self) -> Vec<f64> {
        text::read_percentiles(&self.text(row::LATENCY_TRACKING_INFO_PERCENTILES))
    }

    /// Versions that a cell keeps, the newest included; 0 is all.
    pub fn cell_max_versions(&self) -> u64 {
        self.size(row::CELL_MAX_VERSIONS)
    }

    /// Versions of a register that may be buffered.
    pub fn reg_buffer_max(&self) -> u64 {
        self.size(row::REG_BUFFER_MAX)
    }

    /// Bytes of replies that a session may keep; beyond that it refuses requests.
    pub fn session_cache_max_bytes(&self) -> u64 {
        self.size(row::SESSION_CACHE_MAX_BYTES)
    }

    /// Requests to its client that a session may have pending.
    pub fn session_pending_max(&self) -> u64 {
        self.size(row::SESSION_PENDING_MAX)
    }

    /// Milliseconds after which a running script makes other clients see BUSY.
    pub fn busy_reply_threshold(&self) -> u64 {
        self.size(row::BUSY_REPLY_THRESHOLD)
    }
}

/// Replicas.
impl Settings {
    /// True when writes are to be refused while there are not enough replicas. With a maximum lag of 0, Redis counts no
    /// replica as good, and refuses nothing.
    #[inline]
    pub fn writes_need_replicas(&self) -> bool {
        self.flag(row::MIN_REPLICAS_TO_WRITE) && self.flag(row::MIN_REPLICAS_MAX_LAG)
    }

    /// How many replicas must be there for a write.
    pub fn min_replicas_to_write(&self) -> u64 {
        self.size(row::MIN_REPLICAS_TO_WRITE)
    }

    /// The most seconds since a replica's last message for it to count.
    pub fn min_replicas_max_lag(&self) -> u64 {
        self.size(row::MIN_REPLICAS_MAX_LAG)
    }
}

/// Memory, eviction and expiry.
impl Settings {
    /// Bytes; 0 is no limit.
    #[inline]
    pub fn maxmemory(&self) -> u64 {
        self.size(row::MAXMEMORY)
    }

    #[inline]
    pub fn maxmemory_policy(&self) -> MaxmemoryPolicy {
        MaxmemoryPolicy::from_number(self.number(row::MAXMEMORY_POLICY))
    }

    pub fn maxmemory_samples(&self) -> u64 {
        self.size(row::MAXMEMORY_SAMPLES)
    }

    pub fn maxmemory_eviction_tenacity(&self) -> u64 {
        self.size(row::MAXMEMORY_EVICTION_TENACITY)
    }

    pub fn lfu_log_factor(&self) -> u64 {
        self.size(row::LFU_LOG_FACTOR)
    }

    /// Minutes.
    pub fn lfu_decay_time(&self) -> u64 {
        self.size(row::LFU_DECAY_TIME)
    }
}

/// Sizes at which compact values are converted.
impl Settings {
    pub fn hash_max_listpack_entries(&self) -> u64 {
        self.size(row::HASH_MAX_LISTPACK_ENTRIES)
    }

    /// Entries in a node; negative is a class of bytes, -1 (4 KiB) to -5 (64 KiB).
    pub fn list_max_listpack_size(&self) -> i64 {
        self.number(row::LIST_MAX_LISTPACK_SIZE)
    }

    pub fn hll_sparse_max_bytes(&self) -> u64 {
        self.size(row::HLL_SPARSE_MAX_BYTES)
    }
}

/// Persistence.
impl Settings {
    /// Snapshot after so many seconds if there were at least so many changes; empty is never.
    pub fn save_points(&self) -> Vec<(u64, u64)> {
        text::read_save_points(&self.text(row::SAVE))
    }

    pub fn dir(&self) -> Arc<str> {
        self.text(row::DIR)
    }

    /// The log that this server writes, as a URL; empty for files in `dir`.
    pub fn log(&self) -> Arc<str> {
        self.text(row::LOG)
    }

    /// The log of the server to follow, as a URL or the path of its data directory; empty for a server that writes.
    pub fn follow(&self) -> Arc<str> {
        self.text(row::FOLLOW)
    }

    /// How many servers keep each message of a replicated log.
    pub fn log_replicas(&self) -> usize {
        self.number(row::LOG_REPLICAS) as usize
    }

    /// The monitoring ports of the servers of a replicated log, separated by commas.
    pub fn log_monitoring(&self) -> Arc<str> {
        self.text(row::LOG_MONITORING)
    }

    pub fn log_unsafe_sync(&self) -> bool {
        self.flag(row::LOG_UNSAFE_SYNC)
    }

    /// The messages of other programs in a replicated log that are passed over: their numbers, separated by commas.
    pub fn log_skip(&self) -> Arc<str> {
        self.text(row::LOG_SKIP)
    }

    pub fn log_credentials(&self) -> Arc<str> {
        self.text(row::LOG_CREDENTIALS)
    }

    pub fn log_nkey(&self) -> Arc<str> {
        self.text(row::LOG_NKEY)
    }

    pub fn log_tls_ca_cert_file(&self) -> Arc<str> {
        self.text(row::LOG_TLS_CA_CERT_FILE)
    }

    pub fn log_tls_cert_file(&self) -> Arc<str> {
        self.text(row::LOG_TLS_CERT_FILE)
    }

    pub fn log_tls_key_file(&self) -> Arc<str> {
        self.text(row::LOG_TLS_KEY_FILE)
    }

    /// Nothing expires and nothing is evicted: another server's changes are on their way.
    pub fn import_mode(&self) -> bool {
        self.flag(row::IMPORT_MODE)
    }

    /// A server that follows another answers reads.
    pub fn follower_reads(&self) -> bool {
        self.flag(row::FOLLOWER_READS)
    }

    /// A reply waits until the log has confirmed, after the request was executed, that this server still writes it.
    pub fn confirms_reads(&self) -> bool {
        self.number(row::READS) == 1
    }

    pub fn dbfilename(&self) -> Arc<str> {
        self.text(row::DBFILENAME)
    }

    pub fn stop_writes_on_bgsave_error(&self) -> bool {
        self.flag(row::STOP_WRITES_ON_BGSAVE_ERROR)
    }

    /// A new snapshot is due when the journal has grown by so many percent of the last one; 0 = never.
    pub fn auto_aof_rewrite_percentage(&self) -> u64 {
        self.size(row::AUTO_AOF_REWRITE_PERCENTAGE)
    }

    pub fn auto_aof_rewrite_min_size(&self) -> u64 {
        self.size(row::AUTO_AOF_REWRITE_MIN_SIZE)
    }

    pub fn appendonly(&self) -> bool {
        self.flag(row::APPENDONLY)
    }

    pub fn appendfsync(&self) -> AppendFsync {
        AppendFsync::from_number(self.number(row::APPENDFSYNC))
    }
}
