//! The ranks of locks. A thread that holds a lock takes only locks of a higher rank. docs/architecture/locks.md shows
//! the same table; a test keeps the two equal.

/// Defines the ranks in their order, and a table of them.
macro_rules! ranks {
    ($($name:ident = $rank:literal, $guards:literal;)*) => {
        $(#[doc = $guards] pub const $name: u16 = $rank;)*
        /// Every rank: its number, its name, and what the lock guards.
        pub const ALL: &[(u16, &str, &str)] = &[$(($rank, stringify!($name), $guards)),*];
    };
}

ranks! {
    SHARDS = 10, "the shards of the keyspace; a command locks all that it needs in one call, in ascending order";
    SETTINGS_CHANGE = 20, "one CONFIG SET at a time";
    JOURNAL_STATE = 30, "changes of the journal's state";
    SNAPSHOTS = 40, "the snapshot in progress";
    ROLES = 47, "whether this server writes or follows, and what was asked for";
    JOURNAL_THREAD = 48, "the handle of the journal's thread";
    JOURNAL_WRITER = 50, "the segment that is being written";
    JOURNAL_TAIL = 51, "batches that are not written yet";
    JOURNAL_SYNC = 52, "what is written and synced, and what is to be synced";
    JOURNAL_SEGMENTS = 53, "the list of segments";
    JOURNAL_MARKS = 54, "the file MARKS";
    JOURNAL_RESTART = 55, "the segment of a restart that is not confirmed yet";
    JOURNAL_WATCHERS = 56, "callbacks for progress of the journal";
    SNAPSHOT_FAILURE = 60, "why the last snapshot failed";
    LOADING = 61, "the progress of the start";
    REFUSAL = 62, "why writes are refused";
    FORKS = 63, "forks of cells in progress";
    SESSION_HOOKS = 64, "the hook functions of sessions";
    SESSION_UNDO = 65, "what undoes the changes of a hook that fails";
    INSTANTS = 66, "the instants of read-only transactions, and the cells kept for them";
    ACL_USERS = 67, "changes of users";
    ACL_LOG = 68, "what was refused to users";
    SWEEPERS = 69, "how the sweepers of the configuration fare";
    INDEXES = 70, "all indexes";
    CONFIGURED_INDEXES = 71, "the names of the configured indexes";
    FUNCTIONS = 72, "libraries of functions";
    SCRIPTS = 73, "scripts by their digest";
    SCRIPT_RUNNING = 74, "the long scripts that are running";
    SCRIPT_QUEUE = 75, "requests that wait for a script thread";
    BACKGROUND_QUEUE = 76, "tasks of the background thread";
    ORPHANED_WATCHES = 77, "watches of disconnected clients, to be removed";
    ORPHANED_WAITERS = 78, "waiters that are still to be removed from their keys' queues";
    DEFERRED_KEYS = 79, "keys whose waiters are served when locks are released";
    PAUSE = 80, "the current pause, and the clients that wait for its end or for the start";
    EVICTION = 81, "eviction of clients, by one thread at a time";
    TRACKING_PREFIXES = 82, "prefixes that tracking clients subscribe to (BCAST)";
    TRACKING_CLIENTS = 83, "clients that track keys";
    SUBSCRIBERS = 84, "subscribers of channels, of patterns, or of shard channels; one of the three at a time";
    RECORD_LINES = 85, "clients that wait for records, in order of arrival";
    OFFERED_RECORDS = 86, "records that are offered to waiting clients";
    MONITORS = 87, "clients in MONITOR";
    CLIENTS = 88, "all clients by id";
    PARKED_CLIENTS = 89, "clients that wait for a lock that a long script holds";
    CLIENT_LABELS = 90, "a client's name and library";
    CLIENT_OUTBOX = 91, "messages for a client";
    TICKET = 92, "the reply of a command that ran on another thread";
    LISTENERS = 93, "the listening sockets";
    SETTINGS_TEXTS = 94, "settings that are text";
    REPLICATION_ID = 95, "the replication id";
    SLOWLOG = 96, "slow commands";
    LATENCY = 97, "latency events";
    ERRORS = 98, "error counts by code";
    SAMPLES = 99, "samples of throughput";
    HOT_KEYS = 100, "the session of HOTKEYS";
    HOT_KEYS_OF_WORKER = 101, "what HOTKEYS counts on a worker";
    WAKER = 102, "the waker of a connection's or worker's task";
    GROUP_QUEUES = 103, "the groups of an index in one database";
    GROUP_LIMITS = 104, "the limits of the groups of an index";
}
