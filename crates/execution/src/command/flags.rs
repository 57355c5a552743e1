//! The flags of a command's row. Some have a name in COMMAND INFO, the others are internal.

use bitflags::bitflags;

bitflags! {
    /// Properties of a command.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct Flags: u64 {
        const WRITE = 1;
        const READONLY = 1 << 1;
        /// May need more memory: refused when memory is short.
        const DENYOOM = 1 << 2;
        const ADMIN = 1 << 3;
        const NOSCRIPT = 1 << 4;
        const LOADING = 1 << 5;
        const STALE = 1 << 6;
        const FAST = 1 << 7;
        const NO_AUTH = 1 << 8;
        const ALLOW_BUSY = 1 << 9;
        const BLOCKING = 1 << 10;
        const SKIP_MONITOR = 1 << 11;
        const SKIP_SLOWLOG = 1 << 12;
        const PUBSUB = 1 << 13;
        const NO_MULTI = 1 << 14;
        /// The positions of its keys depend on the values of its arguments. Derived from the key specs.
        const MOVABLE_KEYS = 1 << 15;
        const NO_ASYNC_LOADING = 1 << 16;
        /// It may have no key at all.
        const NO_MANDATORY_KEYS = 1 << 17;

        /// In the ACL category `@dangerous`, though not an admin command.
        const DANGEROUS = 1 << 18;
        /// Reading a key with this command does not touch it (OBJECT IDLETIME).
        const NO_TOUCH = 1 << 19;
        /// Executed at once between MULTI and EXEC, where others are queued.
        const NOT_QUEUED = 1 << 20;
        /// Executes what MULTI has queued. If it is refused, the transaction ends.
        const ENDS_QUEUE = 1 << 21;
        /// Allowed for a client that has subscribed, in RESP2 too.
        const WHILE_SUBSCRIBED = 1 << 22;
        /// Answers with messages about subscriptions, which CLIENT REPLY OFF does not silence.
        const SENDS_MESSAGES = 1 << 23;
        /// Has effects outside the keyspace, or may have effects in it: read-only scripts may not call it, and CLIENT
        /// PAUSE WRITE delays it.
        const MAY_REPLICATE = 1 << 24;
        /// Records values that it finds under its keys, not only values from its arguments.
        const COPIES_VALUES = 1 << 25;
        /// CLIENT CACHING YES or NO stays in force for the command after this one.
        const KEEPS_CACHING = 1 << 27;
        /// Reads indexes: keys that it only reads may be indexes, even if it writes others; if it has no keys, an
        /// argument names an index.
        const READS_INDEXES = 1 << 28;
        /// Ends an interactive transaction (TXN.BEGIN), even one that has failed; other commands of a failed
        /// transaction only get its error.
        const ENDS_TXN = 1 << 29;
        /// Cannot be part of an interactive transaction, though nothing else in its row says so.
        const NO_TXN = 1 << 30;
        /// Begins an interactive transaction.
        const BEGINS_TXN = 1 << 31;
        /// Can read cells as they were at an instant: may be part of a read-only transaction (TXN.BEGIN READONLY).
        const AT_INSTANT = 1 << 35;
        /// Runs Lua code of the client.
        const RUNS_LUA = 1 << 32;
        /// Runs the code of libraries, which only registers functions.
        const LOADS_LUA = 1 << 34;
        /// Calls the hooks of sessions.
        const CALLS_HOOKS = 1 << 33;
    }
}

impl Flags {
    /// In the order of COMMAND INFO.
    pub const NAMES: &'static [(Flags, &'static str)] = &[
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::ALLOW_BUSY, "allow_busy"),
        (Flags::NO_ASYNC_LOADING, "no_async_loading"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::MOVABLE_KEYS, "movablekeys"),
    ];

    /// True when any of these flags is set.
    #[inline]
    pub const fn has(self, any_of: Flags) -> bool {
        self.intersects(any_of)
    }

    /// The names of the flags that COMMAND INFO shows.
    pub fn names(self) -> Vec<&'static str> {
        Flags::NAMES.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| *name).collect()
    }
}
