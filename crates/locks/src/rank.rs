//! The order in which locks are taken: a thread that holds one takes only those of a higher rank. This is the table that
//! docs/ARCHITECTURE.md shows; a test keeps the two equal.

/// Defines the ranks in their order, and a table of them.
macro_rules! ranks {
    ($($name:ident = $rank:literal, $guards:literal;)*) => {
        $(#[doc = $guards] pub const $name: u16 = $rank;)*
        /// Every rank: its number, its name, and what the lock guards.
        pub const ALL: &[(u16, &str, &str)] = &[$(($rank, stringify!($name), $guards)),*];
    };
}

ranks! {
    SHARDS = 10, "the shards of the keyspace; all that a command needs at once, in ascending order";
    SETTINGS_CHANGE = 20, "one CONFIG SET at a time";
    JOURNAL_STATE = 30, "changes of the journal's state";
    SNAPSHOTS = 40, "which snapshot is being taken";
    JOURNAL_THREAD = 48, "the handle of the journal's thread";
    JOURNAL_WRITER = 50, "the segment that is being written";
    JOURNAL_TAIL = 51, "batches that are not written yet";
    JOURNAL_PROGRESS = 52, "how far the journal has come";
    JOURNAL_SEGMENTS = 53, "the list of segments";
    JOURNAL_MARKS = 54, "the file MARKS";
    JOURNAL_RESTART = 55, "the segment of a restart that was not accepted yet";
    JOURNAL_WATCHERS = 56, "who is told when the journal gets further";
    SNAPSHOT_FAILURE = 60, "why the last snapshot failed";
    LOADING = 61, "how far the start has come";
    REFUSAL = 62, "why writes are refused";
    FORKS = 63, "forks of cells that are under way";
    SESSION_HOOKS = 64, "functions that are called for sessions";
    INDEXES = 70, "the indexes there are";
    CONFIGURED_INDEXES = 71, "the names of those of the configuration";
    FUNCTIONS = 72, "libraries of functions";
    SCRIPTS = 73, "scripts by their digest";
    SCRIPT_RUNNING = 74, "the script that runs on the script thread";
    SCRIPT_QUEUE = 75, "scripts that wait for it";
    BACKGROUND_QUEUE = 76, "indexes that wait to be filled";
    LEFT_WATCHES = 77, "watches of clients that are gone";
    LEFT_WAITERS = 78, "waiters that could not leave their keys yet";
    DEFERRED_KEYS = 79, "keys whose waiters are served when locks are released";
    PAUSE = 80, "the pause in force, and who waits for its end";
    EVICTION = 81, "one thread at a time evicts clients";
    TRACKING_PREFIXES = 82, "prefixes that clients which cache want to hear of";
    TRACKING_CLIENTS = 83, "clients that cache what they read";
    SUBSCRIBERS = 84, "subscribers of channels, of patterns, or of shard channels; one of the three at a time";
    RECORD_LINES = 85, "clients that wait for records, in the order in which they came";
    OFFERED_RECORDS = 86, "records that a waiting client may take";
    MONITORS = 87, "clients in MONITOR";
    CLIENTS = 88, "all clients by their number";
    CLIENT_LABELS = 90, "what a client calls itself";
    CLIENT_OUTBOX = 91, "messages for a client";
    TICKET = 92, "the reply that was made elsewhere";
    LISTENERS = 93, "the addresses that are listened on";
    SETTINGS_TEXTS = 94, "settings that are texts";
    REPLICATION_ID = 95, "the id of this server's history";
    SLOWLOG = 96, "slow commands";
    LATENCY = 97, "latency events";
    ERRORS = 98, "errors by their code";
    SAMPLES = 99, "how much was done, a few times a second";
    WAKER = 100, "how the task of a connection or worker is woken";
}
