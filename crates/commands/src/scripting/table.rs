//! Scripts and functions: the rows, each with its documentation: Redis's facts in our words.

use super::{eval, functions};
use crate::shared::help::help;
use crate::shared::manual;
use execution::command::{
    Command, Flags, Keys, at_least, catalogue, container, counted, definition, exactly, script, server,
};
use execution::docs::argument as arg;

pub(super) const COMMANDS: &[Command] = &[
    script("eval", at_least(3), ANY_USE, eval::eval)
        .flag(Flags::RUNS_LUA)
        .flag(RUNS)
        .flag(Flags::MAY_REPLICATE)
        .declares(eval::of_source)
        .doc("2.6.0", "Runs a script, as one step.")
        .complexity("Depends on the script")
        .arguments(&[
            arg::string("script"),
            arg::integer("numkeys"),
            arg::key("key", 0).optional().multiple(),
            arg::string("arg").optional().multiple(),
        ]),
    script("eval_ro", at_least(3), ANY_READ, eval::eval_ro)
        .flag(Flags::RUNS_LUA)
        .flag(READS)
        .doc("7.0.0", "Runs a script that changes nothing.")
        .complexity("Depends on the script")
        .arguments(&[
            arg::string("script"),
            arg::integer("numkeys"),
            arg::key("key", 0).optional().multiple(),
            arg::string("arg").optional().multiple(),
        ]),
    script("evalsha", at_least(3), counted(2).changed(), eval::evalsha)
        .flag(Flags::RUNS_LUA)
        .flag(RUNS)
        .flag(Flags::MAY_REPLICATE)
        .declares(eval::of_digest)
        .doc("2.6.0", "Runs a script that the server knows, by its digest.")
        .complexity("Depends on the script")
        .arguments(&[
            arg::string("sha1"),
            arg::integer("numkeys"),
            arg::key("key", 0).optional().multiple(),
            arg::string("arg").optional().multiple(),
        ]),
    script("evalsha_ro", at_least(3), counted(2).read(), eval::evalsha_ro)
        .flag(Flags::RUNS_LUA)
        .flag(READS)
        .doc("7.0.0", "Runs a script that the server knows and that changes nothing.")
        .complexity("Depends on the script")
        .arguments(&[
            arg::string("sha1"),
            arg::integer("numkeys"),
            arg::key("key", 0).optional().multiple(),
            arg::string("arg").optional().multiple(),
        ]),
    container("script")
        .doc("2.6.0", "Groups the subcommands about scripts.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            server("debug", exactly(3), eval::debug)
                .flag(Flags::NOSCRIPT)
                .doc("3.2.0", "Chooses how scripts are debugged; here they are not.")
                .complexity("O(1)")
                .arguments(&[arg::one_of(
                    "mode",
                    &[arg::token("yes", "YES"), arg::token("sync", "SYNC"), arg::token("no", "NO")],
                )]),
            server("exists", at_least(3), eval::exists)
                .flag(Flags::NOSCRIPT)
                .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
                .doc("2.6.0", "Returns which scripts are in the script cache.")
                .complexity("O(N) for N digests")
                .arguments(&[arg::string("sha1").multiple()]),
            server("flush", at_least(2), eval::flush)
                .flag(Flags::NOSCRIPT.union(Flags::NO_TXN))
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .doc("2.6.0", "Forgets all scripts.")
                .complexity("O(N) for N scripts")
                .history(&[("6.2.0", "New options `ASYNC` and `SYNC`.")])
                .arguments(&[arg::one_of("flush-type", &[arg::token("async", "ASYNC"), arg::token("sync", "SYNC")])
                    .since("6.2.0")
                    .optional()]),
            help(manual::help).doc("5.0.0", "Lists the subcommands of SCRIPT, with a line on each.").complexity("O(1)"),
            server("kill", exactly(2), eval::kill)
                .flag(Flags::NOSCRIPT.union(Flags::ALLOW_BUSY).union(Flags::NO_TXN))
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
                .doc("2.6.0", "Stops the script that is running, if it has changed nothing yet.")
                .complexity("O(1)"),
            server("load", exactly(3), eval::load)
                .flag(Flags::NOSCRIPT.union(Flags::STALE))
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .doc("2.6.0", "Makes a script known, to be run by its digest.")
                .complexity("O(N) for a script of N bytes")
                .arguments(&[arg::string("script")]),
        ]),
    script("fcall", at_least(3), ANY_USE, functions::fcall)
        .flag(Flags::RUNS_LUA)
        .flag(RUNS)
        .flag(Flags::MAY_REPLICATE)
        .declares(functions::of_function)
        .doc("7.0.0", "Runs a function of a library, as one step.")
        .complexity("Depends on the function")
        .arguments(&[
            arg::string("function"),
            arg::integer("numkeys"),
            arg::key("key", 0).optional().multiple(),
            arg::string("arg").optional().multiple(),
        ]),
    script("fcall_ro", at_least(3), ANY_READ, functions::fcall_ro)
        .flag(Flags::RUNS_LUA)
        .flag(READS)
        .doc("7.0.0", "Runs a function that changes nothing.")
        .complexity("Depends on the function")
        .arguments(&[
            arg::string("function"),
            arg::integer("numkeys"),
            arg::key("key", 0).optional().multiple(),
            arg::string("arg").optional().multiple(),
        ]),
    container("function")
        .doc("7.0.0", "Groups the subcommands about libraries of functions.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            definition("delete", exactly(3), functions::delete)
                .flag(Flags::NOSCRIPT)
                .tips(EVERYWHERE)
                .doc("7.0.0", "Deletes a library and its functions.")
                .complexity("O(1)")
                .arguments(&[arg::string("library-name")]),
            catalogue("dump", exactly(2), functions::dump)
                .flag(Flags::NOSCRIPT.union(Flags::NO_TXN))
                .doc("7.0.0", "Gives all libraries as one payload for FUNCTION RESTORE.")
                .complexity("O(N) for N bytes of code"),
            definition("flush", at_least(2), functions::flush)
                .flag(Flags::NOSCRIPT)
                .tips(EVERYWHERE)
                .doc("7.0.0", "Deletes all libraries.")
                .complexity("O(N) for N libraries")
                .arguments(&[
                    arg::one_of("flush-type", &[arg::token("async", "ASYNC"), arg::token("sync", "SYNC")]).optional()
                ]),
            help(manual::help)
                .doc("7.0.0", "Lists the subcommands of FUNCTION, with a line on each.")
                .complexity("O(1)"),
            server("kill", exactly(2), functions::kill)
                .flag(Flags::NOSCRIPT.union(Flags::ALLOW_BUSY).union(Flags::NO_TXN))
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
                .doc("7.0.0", "Stops the function that is running, if it has changed nothing yet.")
                .complexity("O(1)"),
            catalogue("list", at_least(2), functions::list)
                .flag(Flags::NOSCRIPT.union(Flags::NO_TXN))
                .tips(&["nondeterministic_output_order"])
                .doc("7.0.0", "Lists libraries with their functions.")
                .complexity("O(N) for N functions")
                .arguments(&[
                    arg::string("library-name-pattern").after("LIBRARYNAME").optional(),
                    arg::token("withcode", "WITHCODE").optional(),
                ]),
            definition("load", at_least(3), functions::load)
                .flag(Flags::LOADS_LUA)
                .flag(Flags::NOSCRIPT.union(Flags::DENYOOM))
                .tips(EVERYWHERE)
                .doc("7.0.0", "Makes a library from its code.")
                .complexity("O(N) for N bytes of code")
                .arguments(&[arg::token("replace", "REPLACE").optional(), arg::string("function-code")]),
            definition("restore", at_least(3), functions::restore)
                .flag(Flags::LOADS_LUA)
                .flag(Flags::NOSCRIPT.union(Flags::DENYOOM))
                .tips(EVERYWHERE)
                .doc("7.0.0", "Brings libraries back from a payload of FUNCTION DUMP.")
                .complexity("O(N) for N functions in the payload")
                .arguments(&[
                    arg::string("serialized-value"),
                    arg::one_of(
                        "policy",
                        &[
                            arg::token("flush", "FLUSH"),
                            arg::token("append", "APPEND"),
                            arg::token("replace", "REPLACE"),
                        ],
                    )
                    .optional(),
                ]),
            server("stats", exactly(2), functions::stats)
                .flag(Flags::NOSCRIPT.union(Flags::ALLOW_BUSY).union(Flags::NO_TXN))
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
                .doc("7.0.0", "Returns which function runs, and how many libraries there are.")
                .complexity("O(1)"),
        ]),
];

const ANY_USE: Keys =
    counted(2).changed().noted("What a script does with its keys is not known before it runs: the worst is assumed.");
const ANY_READ: Keys = counted(2).read().noted("What a script reads is not known before it runs: all is assumed.");

const RUNS: Flags = Flags::NOSCRIPT.union(Flags::STALE).union(Flags::SKIP_MONITOR).union(Flags::NO_MANDATORY_KEYS);
const READS: Flags = RUNS.union(Flags::READONLY);
const EVERYWHERE: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
