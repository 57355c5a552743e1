//! The commands of Redis 7.0 that this server does not have, each with the reason: docs/COMMANDS.md lists them. A test
//! checks that this list and the command table together equal Redis's commands.

/// A command, or a container with all its subcommands, in lower case, and why it is missing.
pub const MISSING: &[(&str, &str)] = &[
    (
        "migrate",
        "It needs a connection to another server, and holds both up until that has answered. DUMP, RESTORE and DEL through \
         a client do the same.",
    ),
    ("restore-asking", "MIGRATE sends it between the nodes of a cluster, and there is no cluster."),
];

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
