//! Commands about the server: the rows, each with its documentation: Redis's facts in our words.

use super::{command, config, debug, hot_keys, info, latency, memory, persistence, prefixes, process};
use crate::shared::help::help;
use crate::shared::manual;
use execution::command::{Command, Flags, Keys, at_least, container, exactly, key, overview, read, server, write};
use execution::docs::argument as arg;

pub(super) const COMMAND: &[Command] = &[server("command", at_least(1), command::command)
    .flag(ANYTIME)
    .tips(ANY_ORDER)
    .doc("2.8.13", "Describes all commands; its subcommands describe chosen ones.")
    .complexity("O(N) for N commands known")
    .with_subcommands(&[
        server("count", exactly(2), command::count)
            .flag(ANYTIME)
            .doc("2.8.13", "Returns how many commands there are.")
            .complexity("O(1)"),
        server("docs", at_least(2), command::docs)
            .flag(ANYTIME)
            .tips(ANY_ORDER)
            .doc("7.0.0", "Documents the given commands, or all of them.")
            .complexity("O(N) for N commands looked up")
            .arguments(&[arg::string("command-name").optional().multiple()]),
        server("getkeys", at_least(3), command::getkeys)
            .flag(ANYTIME)
            .doc("2.8.13", "Finds the keys in a complete command line.")
            .complexity("O(N) for N arguments")
            .arguments(&[arg::string("command"), arg::string("arg").optional().multiple()]),
        server("getkeysandflags", at_least(3), command::getkeysandflags)
            .flag(ANYTIME)
            .doc("7.0.0", "Finds the keys in a complete command line and says how each is used.")
            .complexity("O(N) for N arguments")
            .arguments(&[arg::string("command"), arg::string("arg").optional().multiple()]),
        help(manual::help).doc("5.0.0", "Lists the subcommands of COMMAND, with a line on each.").complexity("O(1)"),
        server("info", at_least(2), command::info)
            .flag(ANYTIME)
            .tips(ANY_ORDER)
            .doc("2.8.13", "Describes the given commands, or all of them.")
            .complexity("O(N) for N commands looked up")
            .history(&[("7.0.0", "Without arguments, describes all commands.")])
            .arguments(&[arg::string("command-name").optional().multiple()]),
        server("list", at_least(2), command::list)
            .flag(ANYTIME)
            .tips(ANY_ORDER)
            .doc("7.0.0", "Lists the names of all commands, or of those that a filter selects.")
            .complexity("O(N) for N commands known")
            .arguments(&[arg::one_of(
                "filterby",
                &[
                    arg::string("module-name").after("MODULE"),
                    arg::string("category").after("ACLCAT"),
                    arg::pattern("pattern").after("PATTERN"),
                ],
            )
            .after("FILTERBY")
            .optional()]),
    ])];

pub(super) const WAITING: &[Command] = &[
    server("wait", exactly(3), persistence::wait)
        .flag(Flags::BLOCKING)
        .tips(WAIT_TIPS)
        .doc("3.0.0", "Waits until replicas have received this connection's writes, or until a time limit.")
        .complexity("O(1)")
        .arguments(&[arg::integer("numreplicas"), arg::integer("timeout")]),
    server("waitaof", exactly(4), persistence::waitaof)
        .flag(Flags::BLOCKING)
        .tips(WAIT_TIPS)
        .doc("7.2.0", "Waits until this connection's writes are on disk, or until a time limit.")
        .complexity("O(1)")
        .arguments(&[arg::integer("numlocal"), arg::integer("numreplicas"), arg::integer("timeout")]),
];

pub(super) const COMMANDS: &[Command] = &[
    container("config")
        .doc("2.0.0", "Groups the subcommands about the server's settings.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            server("get", at_least(3), config::get)
                .flag(SETTINGS)
                .doc("2.0.0", "Reads settings by patterns of names; docs/SETTINGS.md says which have no effect.")
                .complexity("O(N) for N patterns")
                .history(&[("7.0.0", "Takes several patterns in one call.")])
                .arguments(&[arg::string("parameter").multiple()]),
            help(manual::help).doc("5.0.0", "Lists the subcommands of CONFIG, with a line on each.").complexity("O(1)"),
            server("resetstat", exactly(2), config::resetstat)
                .flag(SETTINGS)
                .tips(EVERYWHERE)
                .doc("2.0.0", "Sets the counters that INFO shows back to zero.")
                .complexity("O(1)"),
            server("rewrite", exactly(2), config::rewrite)
                .flag(SETTINGS)
                .tips(EVERYWHERE)
                .doc("2.8.0", "Writes the settings now in force to the configuration file.")
                .complexity("O(1)"),
            server("set", at_least(4), config::set)
                .flag(SETTINGS)
                .tips(EVERYWHERE)
                .doc("2.0.0", "Changes settings while the server runs, all of them or none.")
                .complexity("O(N) for N settings")
                .history(&[("7.0.0", "Takes several settings in one call.")])
                .arguments(&[arg::block("data", &[arg::string("parameter"), arg::string("value")]).multiple()]),
        ]),
    container("hotkeys")
        .doc("8.6.0", "Groups the subcommands that find the keys which take most time and network.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            server("get", exactly(2), hot_keys::get)
                .flag(TRACKING)
                .tips(REPORT_OF_NODE)
                .doc("8.6.0", "Lists the keys that were found in the last session, with what each took.")
                .complexity("O(K) for K keys returned"),
            help(manual::help)
                .doc("8.6.0", "Lists the subcommands of HOTKEYS, with a line on each.")
                .complexity("O(1)"),
            server("reset", exactly(2), hot_keys::reset)
                .flag(TRACKING)
                .tips(EVERYWHERE)
                .doc("8.6.0", "Forgets the last session and frees its memory.")
                .complexity("O(1)"),
            server("start", at_least(2), hot_keys::start)
                .flag(TRACKING)
                .tips(EVERYWHERE)
                .doc("8.6.0", "Begins a session that counts what each key takes.")
                .complexity("O(1)")
                .arguments(&[
                    arg::block(
                        "metrics",
                        &[
                            arg::integer("count"),
                            arg::token("cpu", "CPU").optional(),
                            arg::token("net", "NET").optional(),
                        ],
                    )
                    .after("METRICS"),
                    arg::integer("k").after("COUNT").optional(),
                    arg::integer("seconds").after("DURATION").optional(),
                    arg::integer("ratio").after("SAMPLE").optional(),
                    arg::block("slots", &[arg::integer("count"), arg::integer("slot").multiple()])
                        .after("SLOTS")
                        .optional(),
                ]),
            server("stop", exactly(2), hot_keys::stop)
                .flag(TRACKING)
                .tips(EVERYWHERE)
                .doc("8.6.0", "Ends the session and keeps what it has counted.")
                .complexity("O(1)"),
        ]),
    read("info", at_least(1), Keys::WALK, info::info)
        .not_data()
        .flag(Flags::LOADING.union(Flags::STALE).union(Flags::DANGEROUS))
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .doc("1.0.0", "Reports facts and counters about the server, by section.")
        .complexity("O(1)")
        .history(&[("7.0.0", "Takes several sections in one call.")])
        .arguments(&[arg::string("section").optional().multiple()]),
    server("lolwut", at_least(1), process::lolwut)
        .flag(Flags::READONLY.union(Flags::FAST))
        .doc("5.0.0", "Draws a small piece of generative art and names the server's version.")
        .arguments(&[arg::integer("version").after("VERSION").optional()]),
    server("monitor", exactly(1), process::monitor)
        .flag(OPERATING)
        .flag(Flags::NOSCRIPT)
        .doc("1.0.0", "Streams every command that the server runs to this connection."),
    server("shutdown", at_least(1), process::shutdown)
        .flag(OPERATING)
        .flag(Flags::NOSCRIPT.union(Flags::NO_MULTI).union(Flags::ALLOW_BUSY))
        .doc("1.0.0", "Stops the server, after saving if it is set up to save.")
        .complexity("O(N) for N keys if it saves, else O(1)")
        .history(&[("7.0.0", "New options `NOW`, `FORCE` and `ABORT`.")])
        .arguments(&[
            arg::one_of("save-selector", &[arg::token("nosave", "NOSAVE"), arg::token("save", "SAVE")]).optional(),
            arg::token("now", "NOW").since("7.0.0").optional(),
            arg::token("force", "FORCE").since("7.0.0").optional(),
            arg::token("abort", "ABORT").since("7.0.0").optional(),
        ]),
    container("slowlog")
        .doc("2.2.12", "Groups the subcommands about the log of slow commands.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            server("get", at_least(2), process::slowlog_get)
                .flag(OPERATING)
                .tips(&["request_policy:all_nodes", "nondeterministic_output"])
                .doc("2.2.12", "Lists the newest entries of the slow log.")
                .complexity("O(N) for N entries returned")
                .history(&[("4.0.0", "Entries name the client and its address.")])
                .arguments(&[arg::integer("count").optional()]),
            help(manual::help)
                .doc("6.2.0", "Lists the subcommands of SLOWLOG, with a line on each.")
                .complexity("O(1)"),
            server("len", exactly(2), process::slowlog_len)
                .flag(OPERATING)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
                .doc("2.2.12", "Returns how many entries the slow log has.")
                .complexity("O(1)"),
            server("reset", exactly(2), process::slowlog_reset)
                .flag(OPERATING)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .doc("2.2.12", "Empties the slow log.")
                .complexity("O(N) for N entries"),
        ]),
    server("time", exactly(1), process::time)
        .flag(Flags::LOADING.union(Flags::STALE).union(Flags::FAST))
        .tips(&["nondeterministic_output"])
        .doc("2.6.0", "Returns the server's clock in seconds and microseconds.")
        .complexity("O(1)"),
    server("bgrewriteaof", exactly(1), persistence::bgrewriteaof)
        .flag(SAVING)
        .doc("1.0.0", "Writes a snapshot in the background, so that the journal before it can go.")
        .complexity("O(1)"),
    server("bgsave", at_least(1), persistence::bgsave)
        .flag(SAVING)
        .doc("1.0.0", "Writes a snapshot in the background.")
        .complexity("O(1)")
        .history(&[("3.2.2", "New option `SCHEDULE`.")])
        .arguments(&[arg::token("schedule", "SCHEDULE").since("3.2.2").optional()]),
    server("lastsave", exactly(1), persistence::lastsave)
        .fast()
        .flag(Flags::LOADING.union(Flags::STALE).union(Flags::DANGEROUS))
        .categories(&["admin"])
        .tips(&["nondeterministic_output"])
        .doc("1.0.0", "Returns when the last good snapshot was written, in unix seconds.")
        .complexity("O(1)"),
    server("save", exactly(1), persistence::save)
        .flag(SAVING)
        .flag(Flags::NO_MULTI)
        .doc("1.0.0", "Writes a snapshot and replies when it is on disk.")
        .complexity("O(N) for N keys in all databases"),
    container("memory")
        .doc("4.0.0", "Groups the subcommands about memory.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            read("doctor", exactly(2), Keys::WALK, memory::doctor)
                .not_data()
                .tips(REPORT_OF_SHARD)
                .doc("4.0.0", "Explains in plain words what is unusual about the server's use of memory.")
                .complexity("O(1)"),
            help(manual::help).doc("4.0.0", "Lists the subcommands of MEMORY, with a line on each.").complexity("O(1)"),
            server("malloc-stats", exactly(2), memory::malloc_stats)
                .tips(REPORT_OF_SHARD)
                .doc("4.0.0", "Reports what the memory allocator says about itself.")
                .complexity("Depends on how much memory is allocated; can be slow"),
            overview("prefixes", at_least(2), prefixes::prefixes)
                .searches(prefixes::searched)
                .flag(Flags::DANGEROUS.union(Flags::NOSCRIPT).union(Flags::NO_MULTI).union(Flags::NO_TXN))
                .flag(Flags::NO_TOUCH)
                .tips(REPORT_OF_SHARD)
                .own_doc("0.1.0", "Counts keys and their memory by the beginnings of their names, largest first.")
                .complexity("O(N) for N keys of the database, in slices")
                .arguments(&[
                    arg::integer("depth").optional(),
                    arg::string("prefix").after("PREFIX").optional(),
                    arg::string("separator").after("SEPARATOR").optional(),
                    arg::integer("count").after("LIMIT").optional(),
                ]),
            server("purge", exactly(2), memory::purge)
                .flag(Flags::NO_TXN)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .doc("4.0.0", "Asks the memory allocator to give unused pages back to the system.")
                .complexity("Depends on how much memory is allocated; can be slow"),
            read("stats", exactly(2), Keys::WALK, memory::stats)
                .not_data()
                .tips(REPORT_OF_SHARD)
                .doc("4.0.0", "Reports where the server's memory goes.")
                .complexity("O(1)"),
            read("usage", at_least(3), key(2).examined(), memory::usage)
                .flag(Flags::NO_TOUCH)
                .doc("4.0.0", "Estimates how many bytes a key and its value take.")
                .complexity("O(N) for N elements sampled")
                .arguments(&[arg::key("key", 0), arg::integer("count").after("SAMPLES").optional()]),
        ]),
    container("latency")
        .doc("2.8.13", "Groups the subcommands about slow events.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            server("doctor", exactly(2), latency::doctor)
                .flag(SETTINGS)
                .tips(REPORT_OF_NODE)
                .doc("2.8.13", "Explains in plain words what made the server slow and what could be done.")
                .complexity("O(1)"),
            server("graph", exactly(3), latency::graph)
                .flag(SETTINGS)
                .tips(REPORT_OF_NODE)
                .doc("2.8.13", "Draws an event's recent latencies with text characters.")
                .complexity("O(1)")
                .arguments(&[arg::string("event")]),
            help(manual::help)
                .doc("2.8.13", "Lists the subcommands of LATENCY, with a line on each.")
                .complexity("O(1)"),
            server("histogram", at_least(2), latency::histogram)
                .flag(SETTINGS)
                .tips(REPORT_OF_NODE)
                .doc("7.0.0", "Reports how the run times of commands are distributed.")
                .complexity("O(N) for N commands reported")
                .arguments(&[arg::string("command").optional().multiple()]),
            server("history", exactly(3), latency::history)
                .flag(SETTINGS)
                .tips(REPORT_OF_NODE)
                .doc("2.8.13", "Lists the recorded times and latencies of one event.")
                .complexity("O(1)")
                .arguments(&[arg::string("event")]),
            server("latest", exactly(2), latency::latest)
                .flag(SETTINGS)
                .tips(REPORT_OF_NODE)
                .doc("2.8.13", "Lists, for every event, its newest and its worst latency.")
                .complexity("O(1)"),
            server("reset", at_least(2), latency::reset)
                .flag(SETTINGS)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum"])
                .doc("2.8.13", "Forgets the recorded latencies of the given events, or of all.")
                .complexity("O(1)")
                .arguments(&[arg::string("event").optional().multiple()]),
        ]),
    write("debug", at_least(2), Keys::EVERYTHING, debug::debug)
        .not_data()
        .flag(Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::NO_TOUCH))
        .doc("1.0.0", "Groups the subcommands for tests and for looking inside the server.")
        .complexity("Depends on the subcommand")
        .system(),
];

const ANYTIME: Flags = Flags::LOADING.union(Flags::STALE);
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];
const SAVING: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING);
const WAIT_TIPS: &[&str] = &["request_policy:all_shards", "response_policy:agg_min"];
const TRACKING: Flags = Flags::ADMIN.union(Flags::NOSCRIPT);
const SETTINGS: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE);
const EVERYWHERE: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
const OPERATING: Flags = Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE);
const REPORT_OF_SHARD: &[&str] = &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"];
const REPORT_OF_NODE: &[&str] = &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];
