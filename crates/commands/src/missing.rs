//! The commands of Redis up to 8.8 and of Valkey up to 9.1 that this server does not have, each with the reason:
//! docs/COMMANDS.md lists them. A test checks that these lists and the command table together equal their commands.

/// Commands that are missing. Of a container, all subcommands are missing, unless one is named.
pub const MISSING: &[Missing] = &[
    Missing::of(
        "migrate",
        "Redis 2.6",
        "It needs a connection to another server, and holds both up until that has answered. DUMP, RESTORE and DEL through \
         a client do the same.",
    ),
    Missing::of(
        "restore-asking",
        "Redis 3.0",
        "MIGRATE sends it between the nodes of a cluster, and there is no cluster.",
    ),
    Missing::of(
        "xidmprecord",
        "Redis 8.8",
        "Redis writes it into its AOF to say which entry a producer has added. Here the journal says so. What an AOF \
         of Redis 8.8 says of producers is not read, and exports leave producers out: their ids last for seconds.",
    ),
    Missing::of(
        "cluster|myshardid",
        "Redis 7.2",
        "It names the shard of a node of a cluster, and there is no cluster.",
    ),
    Missing::of(
        "cluster|slot-stats",
        "Redis 8.2, Valkey 8.0",
        "It counts by slots of a cluster, and there is no cluster. HOTKEYS and MEMORY PREFIXES tell which keys take time and \
         memory.",
    ),
    Missing::of(
        "cluster|migration",
        "Redis 8.4",
        "It moves slots between the nodes of a cluster, and there is no cluster.",
    ),
    Missing::of(
        "cluster|syncslots",
        "Redis 8.4, Valkey 9.0",
        "Nodes of a cluster send it to each other while slots move.",
    ),
    Missing::of("trimslots", "Redis 8.4", "A cluster removes slots that have moved with it, and there is no cluster."),
    Missing::of(
        "cluster|migrateslots, cluster|cancelslotmigrations, cluster|getslotmigrations",
        "Valkey 9.0",
        "They move slots between the nodes of a cluster, and there is no cluster.",
    ),
    Missing::of(
        "cluster|flushslot",
        "Valkey 9.0",
        "It removes the keys of a slot of a cluster, and there is no cluster.",
    ),
    Missing::of("clusterscan", "Valkey 9.1", "It is SCAN over the slots of a cluster. SCAN visits everything here."),
    Missing::of(
        "client|capa",
        "Valkey 8.0",
        "Its one capability is that the client follows -REDIRECT. A follower answers -READONLY, which every client knows, \
         and Sentinel's protocol names the writer.",
    ),
    Missing::of(
        "commandlog",
        "Valkey 8.1",
        "SLOWLOG has the slow commands; CLIENT LIST, HOTKEYS and the limits of users show and bound large requests and \
         replies.",
    ),
    Missing::of(
        "script|show",
        "Valkey 8.0",
        "It returns the source of a script to anyone who knows its digest. SCRIPT EXISTS tells that it is known; functions \
         are for what others should read (FUNCTION LIST WITHCODE).",
    ),
];

/// Families that are missing: all commands with names of that form.
pub const MISSING_FAMILIES: &[Missing] = &[
    Missing::of(
        "AR*",
        "Redis 8.8",
        "Arrays are a type of their own. Lists find elements by index, and hashes with numbers as fields are sparse.",
    ),
    Missing::of(
        "V*",
        "Redis 8.0",
        "Vector sets search by similarity, which is another workload than state of workers: it takes cores for long.",
    ),
    Missing::of(
        "FT.*",
        "Redis 8.0",
        "The query engine indexes text and vectors. Indexes of records (IDX.CREATE, HFIND, CLAIM) find what workers look for.",
    ),
    Missing::of(
        "JSON.*",
        "Redis 8.0",
        "Documents of JSON with paths are a type of their own. Hashes have fields that change alone; cells and runs keep \
         whole documents with versions.",
    ),
    Missing::of("TS.*", "Redis 8.0", "Time series are for metrics, which Prometheus keeps and reads from here."),
    Missing::of(
        "BF.*, CF.*, CMS.*, TOPK.*, TDIGEST.*",
        "Redis 8.0",
        "Probabilistic types beside HyperLogLogs: nothing that workers need is a guess.",
    ),
];

/// Options of commands that are built, which are missing.
pub const MISSING_OPTIONS: &[Missing] = &[
    Missing::of(
        "ZUNION AGGREGATE COUNT, ZINTER AGGREGATE COUNT",
        "Redis 8.8",
        "It counts in how many sets a member is. No library for workers or jobs asks for that; a script can.",
    ),
    Missing::of(
        "notify-keyspace-events",
        "Redis 8.8",
        "Its classes for single fields of hashes (subkeys). Followers of runs and waits for versions of cells tell what has changed.",
    ),
    Missing::of(
        "CLIENT KILL CAPA, CLIENT LIST CAPA",
        "Valkey 9.0",
        "Clients cannot claim capabilities: see CLIENT CAPA.",
    ),
];

/// Something that Redis or Valkey has.
pub struct Missing {
    /// Names in lower case, separated by commas; of subcommands with their container's.
    pub names: &'static str,
    /// The product, and its first version that has it.
    pub since: &'static str,
    pub why: &'static str,
}

impl Missing {
    const fn of(names: &'static str, since: &'static str, why: &'static str) -> Missing {
        Missing { names, since, why }
    }
}

/// Subcommands of DEBUG that are missing. COMMAND does not list any.
pub const MISSING_IN_DEBUG: &[(&str, &str)] = &[
    (
        "assert, crash-and-recover, leak, oom, panic, restart, segfault",
        "They harm the server, and are refused; tests of crashes use signals.",
    ),
    ("config-rewrite-force-all", "CONFIG REWRITE keeps the file's own lines; CONFIG GET * has all settings."),
    ("mallctl, mallctl-str", "MEMORY MALLOC-STATS shows what the allocator has to say; its settings are fixed."),
    ("clusterlink, replicate", "There is no cluster and no replica."),
];
