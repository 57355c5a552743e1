//! Clusters, replicas and modules: the rows, each with its documentation: Redis's facts in our words.

use super::answers;
use crate::shared::help::help;
use execution::command::{Command, Flags, at_least, container, exactly, server};
use execution::docs::argument as arg;

pub(super) const CLUSTER: &[Command] = &[container("cluster")
    .doc("3.0.0", "Groups the subcommands about a cluster; all are refused, as there is none.")
    .complexity("Depends on the subcommand")
    .with_subcommands(&[
        server("addslots", at_least(3), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Gives a node of a cluster slots; refused.")
            .complexity("O(N) for N slots")
            .arguments(&[arg::integer("slot").multiple()]),
        server("addslotsrange", at_least(4), answers::no_cluster)
            .flag(MANAGING)
            .doc("7.0.0", "Gives a node of a cluster ranges of slots; refused.")
            .complexity("O(N) for N slots")
            .arguments(&[
                arg::block("start-slot_end-slot", &[arg::integer("start-slot"), arg::integer("end-slot")]).multiple()
            ]),
        server("bumpepoch", exactly(2), answers::no_cluster)
            .flag(MANAGING)
            .tips(VARYING)
            .doc("3.0.0", "Raises the epoch of a cluster; refused.")
            .complexity("O(1)"),
        server("count-failure-reports", exactly(3), answers::no_cluster)
            .flag(Flags::ADMIN.union(Flags::STALE))
            .tips(VARYING)
            .doc("3.0.0", "Counts the reports that a node of a cluster has failed; refused.")
            .complexity("O(N) for N reports")
            .arguments(&[arg::string("node-id")]),
        server("countkeysinslot", exactly(3), answers::no_cluster)
            .flag(Flags::STALE)
            .doc("3.0.0", "Counts the keys in a slot; refused.")
            .complexity("O(1)")
            .arguments(&[arg::integer("slot")]),
        server("delslots", at_least(3), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Takes slots away from a node of a cluster; refused.")
            .complexity("O(N) for N slots")
            .arguments(&[arg::integer("slot").multiple()]),
        server("delslotsrange", at_least(4), answers::no_cluster)
            .flag(MANAGING)
            .doc("7.0.0", "Takes ranges of slots away from a node of a cluster; refused.")
            .complexity("O(N) for N slots")
            .arguments(&[
                arg::block("start-slot_end-slot", &[arg::integer("start-slot"), arg::integer("end-slot")]).multiple()
            ]),
        server("failover", at_least(2), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Makes a replica of a cluster take over; refused.")
            .complexity("O(1)")
            .arguments(&[
                arg::one_of("options", &[arg::token("force", "FORCE"), arg::token("takeover", "TAKEOVER")]).optional()
            ]),
        server("flushslots", exactly(2), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Takes all slots away from a node of a cluster; refused.")
            .complexity("O(1)"),
        server("forget", exactly(3), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Removes a node from a cluster; refused.")
            .complexity("O(1)")
            .arguments(&[arg::string("node-id")]),
        server("getkeysinslot", exactly(4), answers::no_cluster)
            .flag(Flags::STALE)
            .tips(VARYING)
            .doc("3.0.0", "Lists keys in a slot; refused.")
            .complexity("O(log(N)) for N keys")
            .arguments(&[arg::integer("slot"), arg::integer("count")]),
        help(answers::no_cluster).doc("5.0.0", "Lists the subcommands of CLUSTER; refused.").complexity("O(1)"),
        server("info", exactly(2), answers::no_cluster)
            .flag(Flags::STALE)
            .tips(VARYING)
            .doc("3.0.0", "Tells of the state of a cluster; refused.")
            .complexity("O(1)"),
        server("keyslot", exactly(3), answers::no_cluster)
            .flag(Flags::STALE)
            .doc("3.0.0", "Returns the slot of a key; refused.")
            .complexity("O(N) for a key of N bytes")
            .arguments(&[arg::string("key")]),
        server("links", exactly(2), answers::no_cluster)
            .flag(Flags::STALE)
            .tips(VARYING)
            .doc("7.0.0", "Lists the connections between the nodes of a cluster; refused.")
            .complexity("O(N) for N nodes"),
        server("meet", at_least(4), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Joins another node into a cluster; refused.")
            .complexity("O(1)")
            .history(&[("4.0.0", "Takes the port of the cluster bus.")])
            .arguments(&[
                arg::string("ip"),
                arg::integer("port"),
                arg::integer("cluster_bus_port").since("4.0.0").optional(),
            ]),
        server("myid", exactly(2), answers::no_cluster)
            .flag(Flags::STALE)
            .doc("3.0.0", "Returns the name of this node of a cluster; refused.")
            .complexity("O(1)"),
        server("nodes", exactly(2), answers::no_cluster)
            .flag(Flags::STALE)
            .tips(VARYING)
            .doc("3.0.0", "Lists the nodes of a cluster; refused.")
            .complexity("O(N) for N nodes"),
        server("replicas", exactly(3), answers::no_cluster)
            .flag(Flags::ADMIN.union(Flags::STALE))
            .tips(VARYING)
            .doc("5.0.0", "Lists the replicas of a node of a cluster; refused.")
            .complexity("O(1)")
            .arguments(&[arg::string("node-id")]),
        server("replicate", exactly(3), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Makes a node of a cluster a replica of another; refused.")
            .complexity("O(1)")
            .arguments(&[arg::string("node-id")]),
        server("reset", at_least(2), answers::no_cluster)
            .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::STALE)))
            .doc("3.0.0", "Makes a node forget its cluster; refused.")
            .complexity("O(N) for N nodes")
            .arguments(&[
                arg::one_of("hard_soft", &[arg::token("hard", "HARD"), arg::token("soft", "SOFT")]).optional()
            ]),
        server("saveconfig", exactly(2), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Saves the state of a cluster; refused.")
            .complexity("O(1)"),
        server("set-config-epoch", exactly(3), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Sets the epoch of a new node of a cluster; refused.")
            .complexity("O(1)")
            .arguments(&[arg::integer("config-epoch")]),
        server("setslot", at_least(4), answers::no_cluster)
            .flag(MANAGING)
            .doc("3.0.0", "Binds a slot to a node of a cluster; refused.")
            .complexity("O(1)")
            .arguments(&[
                arg::integer("slot"),
                arg::one_of(
                    "subcommand",
                    &[
                        arg::string("node-id").after("IMPORTING"),
                        arg::string("node-id").after("MIGRATING"),
                        arg::string("node-id").after("NODE"),
                        arg::token("stable", "STABLE"),
                    ],
                ),
            ]),
        server("shards", exactly(2), answers::no_cluster)
            .flag(Flags::STALE)
            .tips(VARYING)
            .doc("7.0.0", "Lists the nodes of a cluster by their slots; refused.")
            .complexity("O(N) for N nodes"),
        server("slaves", exactly(3), answers::no_cluster)
            .flag(Flags::ADMIN.union(Flags::STALE))
            .tips(VARYING)
            .doc("3.0.0", "Lists the replicas of a node of a cluster; refused.")
            .complexity("O(1)")
            .deprecated("5.0.0", "`CLUSTER REPLICAS`")
            .arguments(&[arg::string("node-id")]),
        server("slots", exactly(2), answers::no_cluster)
            .flag(Flags::STALE)
            .tips(VARYING)
            .doc("3.0.0", "Lists the slots of a cluster with their nodes; refused.")
            .complexity("O(N) for N nodes")
            .deprecated("7.0.0", "`CLUSTER SHARDS`")
            .history(&[("4.0.0", "Has the names of the nodes."), ("7.0.0", "Has more about the addresses of nodes.")]),
    ])];

pub(super) const CLUSTER_CONNECTION: &[Command] = &[
    server("asking", exactly(1), answers::no_cluster)
        .flag(Flags::FAST)
        .doc("3.0.0", "Says that the next command follows a redirection; refused, as there is no cluster.")
        .complexity("O(1)"),
    server("readonly", exactly(1), answers::no_cluster)
        .flag(Flags::LOADING.union(Flags::STALE.union(Flags::FAST)))
        .doc("3.0.0", "Lets a connection read from a replica of a cluster; refused, as there is no cluster.")
        .complexity("O(1)"),
    server("readwrite", exactly(1), answers::no_cluster)
        .flag(Flags::LOADING.union(Flags::STALE.union(Flags::FAST)))
        .doc("3.0.0", "Takes back READONLY; refused, as there is no cluster.")
        .complexity("O(1)"),
];

pub(super) const REPLICATION: &[Command] = &[
    server("failover", at_least(1), answers::failover)
        .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::STALE)))
        .doc("6.2.0", "Tells a follower to take over.")
        .complexity("O(1)")
        .arguments(&[
            arg::block("target", &[arg::string("host"), arg::integer("port"), arg::token("force", "FORCE").optional()])
                .after("TO")
                .optional(),
            arg::token("abort", "ABORT").optional(),
            arg::integer("milliseconds").after("TIMEOUT").optional(),
        ]),
    container("module")
        .doc("4.0.0", "Groups the subcommands about modules.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            help(answers::module_help)
                .doc("5.0.0", "Lists the subcommands of MODULE, with a line on each.")
                .complexity("O(1)"),
            server("list", exactly(2), answers::module_list)
                .flag(Flags::ADMIN.union(Flags::NOSCRIPT))
                .tips(&["nondeterministic_output_order"])
                .doc("4.0.0", "Lists the modules that are loaded: there are none.")
                .complexity("O(N) for N modules"),
            server("load", at_least(3), answers::no_modules)
                .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::NO_ASYNC_LOADING)))
                .doc("4.0.0", "Loads a module; refused.")
                .complexity("O(1)")
                .arguments(&[arg::string("path"), arg::string("arg").optional().multiple()]),
            server("loadex", at_least(3), answers::no_modules)
                .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::NO_ASYNC_LOADING)))
                .doc("7.0.0", "Loads a module with its settings; refused.")
                .complexity("O(1)")
                .arguments(&[
                    arg::string("path"),
                    arg::block("configs", &[arg::string("name"), arg::string("value")])
                        .after("CONFIG")
                        .optional()
                        .multiple()
                        .multiple_token(),
                    arg::block("args", &[arg::string("arg")]).after("ARGS").optional().multiple(),
                ]),
            server("unload", exactly(3), answers::no_modules)
                .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::NO_ASYNC_LOADING)))
                .doc("4.0.0", "Unloads a module; refused.")
                .complexity("O(1)")
                .arguments(&[arg::string("name")]),
        ]),
    server("psync", at_least(3), answers::no_replication)
        .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::NO_ASYNC_LOADING.union(Flags::NO_MULTI))))
        .doc("2.8.0", "Asks for a stream of changes; refused.")
        .arguments(&[arg::string("replicationid"), arg::integer("offset")]),
    server("replconf", at_least(1), answers::replconf)
        .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::LOADING.union(Flags::STALE.union(Flags::ALLOW_BUSY)))))
        .doc("3.0.0", "Tells of a replica that is about to ask for a stream of changes.")
        .complexity("O(1)")
        .system(),
    server("replicaof", exactly(3), answers::replicaof)
        .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::STALE.union(Flags::NO_ASYNC_LOADING))))
        .doc("5.0.0", "Makes a follower the writer, with NO ONE; an address to follow is refused.")
        .complexity("O(1)")
        .arguments(&[arg::one_of(
            "args",
            &[
                arg::block("host-port", &[arg::string("host"), arg::integer("port")]),
                arg::block("no-one", &[arg::token("no", "NO"), arg::token("one", "ONE")]),
            ],
        )]),
    server("role", exactly(1), answers::role)
        .flag(Flags::NOSCRIPT.union(Flags::LOADING.union(Flags::STALE.union(Flags::FAST))))
        .doc("2.8.12", "Returns whether this server writes or follows, how far it is, and the other side.")
        .complexity("O(1)")
        .categories(&["admin", "dangerous"]),
    server("slaveof", exactly(3), answers::replicaof)
        .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::STALE.union(Flags::NO_ASYNC_LOADING))))
        .doc("1.0.0", "Makes a follower the writer, with NO ONE; an address to follow is refused.")
        .complexity("O(1)")
        .deprecated("5.0.0", "`REPLICAOF`")
        .arguments(&[arg::one_of(
            "args",
            &[
                arg::block("host-port", &[arg::string("host"), arg::integer("port")]),
                arg::block("no-one", &[arg::token("no", "NO"), arg::token("one", "ONE")]),
            ],
        )]),
    server("sync", exactly(1), answers::no_replication)
        .flag(Flags::ADMIN.union(Flags::NOSCRIPT.union(Flags::NO_ASYNC_LOADING.union(Flags::NO_MULTI))))
        .doc("1.0.0", "Asks for a snapshot and a stream of changes; refused."),
];

/// Commands that change a cluster.
const MANAGING: Flags = Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING);
const VARYING: &[&str] = &["nondeterministic_output"];
