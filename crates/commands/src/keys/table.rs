//! Commands for keys of any type: the rows, each with its documentation: Redis's facts in our words.

use super::{dump, expire, generic, object, scan};
use crate::shared::deadline::always;
use crate::shared::help::help;
use execution::args::is_word;
use execution::command::{Command, DatabasesUsed, Flags, Keys, at_least, container, exactly, key, keys, read, write};
use execution::context::ReadCx;
use execution::docs::argument::{self as arg, Argument};
use execution::error::CommandResult;
use resp::Request;
use smallvec::smallvec;

pub(super) const COMMANDS: &[Command] = &[
    write("copy", at_least(3), key(1).read().and(key(2).overwritten()), generic::copy)
        .copies_values()
        .grows_memory()
        .crosses_databases(generic::copies_to_db)
        .uses_databases(DatabasesUsed::SelectedAndNamed(generic::databases_of_copy))
        .doc("6.2.0", "Duplicates a value under another key, in the same or another database.")
        .complexity("O(N) for a value of N elements, O(1) for a string")
        .arguments(&[
            arg::key("source", 0),
            arg::key("destination", 1),
            arg::integer("destination-db").after("DB").optional(),
            arg::token("replace", "REPLACE").optional(),
        ]),
    read("dbsize", exactly(1), Keys::EVERYTHING, generic::dbsize)
        .fast()
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
        .doc("1.0.0", "Returns how many keys the selected database has.")
        .complexity("O(1)")
        .group("server"),
    write("del", at_least(2), keys(1, -1, 1).removed(), generic::delete)
        .tips(SUM_OVER_SHARDS)
        .doc("1.0.0", "Removes keys and replies with how many there were.")
        .complexity("O(N) for N keys, plus O(M) for each collection of M elements")
        .arguments(&[arg::key("key", 0).multiple()]),
    read("exists", at_least(2), keys(1, -1, 1).examined(), generic::exists)
        .fast()
        .flag(Flags::NO_TOUCH)
        .tips(SUM_OVER_SHARDS)
        .doc("1.0.0", "Counts how many of the given keys exist.")
        .complexity("O(N) for N keys")
        .history(&[("3.0.3", "Takes several keys in one call.")])
        .arguments(&[arg::key("key", 0).multiple()]),
    write("flushall", at_least(1), Keys::EVERYTHING, generic::flushall)
        .uses_databases(DatabasesUsed::All)
        .flag(Flags::DANGEROUS)
        .tips(EVERY_SHARD)
        .doc("1.0.0", "Empties every database.")
        .complexity("O(N) for N keys in all databases")
        .history(&[("4.0.0", "New option `ASYNC`."), ("6.2.0", "New option `SYNC`.")])
        .arguments(&[arg::one_of(
            "flush-type",
            &[arg::token("async", "ASYNC").since("4.0.0"), arg::token("sync", "SYNC").since("6.2.0")],
        )
        .optional()])
        .group("server"),
    write("flushdb", at_least(1), Keys::EVERYTHING, generic::flushdb)
        .flag(Flags::DANGEROUS)
        .tips(EVERY_SHARD)
        .doc("1.0.0", "Empties the selected database.")
        .complexity("O(N) for N keys in the database")
        .history(&[("4.0.0", "New option `ASYNC`."), ("6.2.0", "New option `SYNC`.")])
        .arguments(&[arg::one_of(
            "flush-type",
            &[arg::token("async", "ASYNC").since("4.0.0"), arg::token("sync", "SYNC").since("6.2.0")],
        )
        .optional()])
        .group("server"),
    write("move", exactly(3), key(1).changed(), generic::move_to)
        .fast()
        .crosses_databases(|_| true)
        .uses_databases(DatabasesUsed::SelectedAndNamed(|_| smallvec![2]))
        .doc("1.0.0", "Transfers a key from the selected database to another one.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::integer("db")]),
    read("randomkey", exactly(1), Keys::EVERYTHING, generic::randomkey)
        .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"])
        .doc("1.0.0", "Picks a key of the selected database at random.")
        .complexity("O(1)"),
    write("rename", exactly(3), key(1).taken_from().and(key(2).overwritten()), generic::rename)
        .copies_values()
        .doc("1.0.0", "Gives a key another name, replacing any key that has it.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::key("newkey", 1)]),
    write("renamenx", exactly(3), key(1).taken_from().and(key(2).created()), generic::renamenx)
        .copies_values()
        .fast()
        .doc("1.0.0", "Gives a key another name unless that name is taken.")
        .complexity("O(1)")
        .history(&[("3.2.0", "Equal source and destination names are no error any more.")])
        .arguments(&[arg::key("key", 0), arg::key("newkey", 1)]),
    write("swapdb", exactly(3), Keys::EVERYTHING, generic::swapdb)
        .uses_databases(DatabasesUsed::Named(|_| smallvec![1, 2]))
        .fast()
        .flag(Flags::DANGEROUS)
        .doc("4.0.0", "Exchanges the contents of two databases.")
        .complexity("O(N) for N clients that watch or wait on keys of either database")
        .arguments(&[arg::integer("index1"), arg::integer("index2")])
        .group("server"),
    read("touch", at_least(2), keys(1, -1, 1).examined(), generic::touch)
        .fast()
        .tips(SUM_OVER_SHARDS)
        .doc("3.2.1", "Marks keys as just used and replies with how many of them exist.")
        .complexity("O(N) for N keys")
        .arguments(&[arg::key("key", 0).multiple()]),
    read("type", exactly(2), key(1).examined(), generic::type_of)
        .fast()
        .flag(Flags::NO_TOUCH)
        .doc("1.0.0", "Names the type of value a key holds.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("unlink", at_least(2), keys(1, -1, 1).removed(), generic::delete)
        .fast()
        .tips(SUM_OVER_SHARDS)
        .doc("4.0.0", "Removes keys at once and frees their memory later.")
        .complexity("O(1) per key, plus O(N) in the background for values of N allocations")
        .arguments(&[arg::key("key", 0).multiple()]),
    read("keys", exactly(2), Keys::EVERYTHING, scan::keys)
        .flag(Flags::DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .doc("1.0.0", "Lists every key whose name matches a glob pattern.")
        .complexity("O(N) for a database of N keys")
        .arguments(&[arg::pattern("pattern")]),
    read("scan", at_least(2), Keys::WALK, scan::scan)
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"])
        .doc("2.8.0", "Walks through the keys of the selected database a few at a time, by means of a cursor.")
        .complexity("O(1) per call, O(N) for a full walk over N keys")
        .history(&[("6.0.0", "New option `TYPE`.")])
        .arguments(&[
            arg::integer("cursor"),
            arg::pattern("pattern").after("MATCH").optional(),
            arg::integer("count").after("COUNT").optional(),
            arg::string("type").after("TYPE").since("6.0.0").optional(),
        ]),
    write("expire", at_least(3), key(1), expire::expire)
        .fast()
        .relative_time(always)
        .doc("1.0.0", "Lets a key expire after a number of seconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[arg::key("key", 0), arg::integer("seconds"), EXPIRY_CONDITION]),
    write("expireat", at_least(3), key(1), expire::expireat)
        .fast()
        .doc("1.2.0", "Lets a key expire at a moment given in Unix seconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[arg::key("key", 0), arg::unix_time("unix-time-seconds"), EXPIRY_CONDITION]),
    read("expiretime", exactly(2), key(1), expire::expiretime)
        .fast()
        .flag(Flags::NO_TOUCH)
        .doc("7.0.0", "Returns, in Unix seconds, when a key expires.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("persist", exactly(2), key(1), expire::persist)
        .fast()
        .doc("2.2.0", "Removes a key's deadline.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("pexpire", at_least(3), key(1), expire::pexpire)
        .fast()
        .relative_time(always)
        .doc("2.6.0", "Lets a key expire after a number of milliseconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[arg::key("key", 0), arg::integer("milliseconds"), EXPIRY_CONDITION]),
    write("pexpireat", at_least(3), key(1), expire::pexpireat)
        .fast()
        .doc("2.6.0", "Lets a key expire at a moment given in Unix milliseconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[arg::key("key", 0), arg::unix_time("unix-time-milliseconds"), EXPIRY_CONDITION]),
    read("pexpiretime", exactly(2), key(1), expire::pexpiretime)
        .fast()
        .flag(Flags::NO_TOUCH)
        .doc("7.0.0", "Returns, in Unix milliseconds, when a key expires.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    read("pttl", exactly(2), key(1), expire::pttl)
        .fast()
        .flag(Flags::NO_TOUCH)
        .tips(TIME_PASSES)
        .doc("2.6.0", "Returns how many milliseconds a key has left.")
        .complexity("O(1)")
        .history(&[("2.8.0", "Replies -2 if there is no such key.")])
        .arguments(&[arg::key("key", 0)]),
    read("ttl", exactly(2), key(1), expire::ttl)
        .fast()
        .flag(Flags::NO_TOUCH)
        .tips(TIME_PASSES)
        .doc("1.0.0", "Returns how many seconds a key has left.")
        .complexity("O(1)")
        .history(&[("2.8.0", "Replies -2 if there is no such key.")])
        .arguments(&[arg::key("key", 0)]),
    read("dump", exactly(2), key(1), dump::dump)
        .tips(&["nondeterministic_output"])
        .doc("2.6.0", "Serializes a value into bytes that RESTORE understands.")
        .complexity("O(N*M) for N elements of M bytes on average")
        .arguments(&[arg::key("key", 0)]),
    write("restore", at_least(4), key(1).overwritten(), dump::restore)
        .grows_memory()
        .flag(Flags::DANGEROUS)
        .relative_time(restores_for_a_time)
        .doc("2.6.0", "Creates a key from bytes that DUMP produced.")
        .complexity("O(N*M) for N elements of M bytes, times log(N) for sorted sets")
        .history(&[
            ("3.0.0", "New option `REPLACE`."),
            ("5.0.0", "New option `ABSTTL`."),
            ("5.0.0", "New options `IDLETIME` and `FREQ`."),
        ])
        .arguments(&[
            arg::key("key", 0),
            arg::integer("ttl"),
            arg::string("serialized-value"),
            arg::token("replace", "REPLACE").since("3.0.0").optional(),
            arg::token("absttl", "ABSTTL").since("5.0.0").optional(),
            arg::integer("seconds").after("IDLETIME").since("5.0.0").optional(),
            arg::integer("frequency").after("FREQ").since("5.0.0").optional(),
        ]),
    container("object")
        .doc("2.2.3", "Groups the subcommands that look at how a value is kept.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            look("encoding", object::encoding)
                .doc("2.2.3", "Names the internal form in which a value is kept.")
                .complexity("O(1)")
                .arguments(&[arg::key("key", 0)]),
            look("freq", object::freq)
                .doc("4.0.0", "Returns how often a key is used, as a logarithmic counter.")
                .complexity("O(1)")
                .arguments(&[arg::key("key", 0)]),
            help(object::help).doc("6.2.0", "Lists the subcommands of OBJECT, with a line on each.").complexity("O(1)"),
            look("idletime", object::idletime)
                .doc("2.2.3", "Returns how many seconds ago a key was last used.")
                .complexity("O(1)")
                .arguments(&[arg::key("key", 0)]),
            look("refcount", object::refcount)
                .doc("2.2.3", "Returns how many references there are to a value.")
                .complexity("O(1)")
                .arguments(&[arg::key("key", 0)]),
        ]),
];

/// Response policy for cluster clients: the replies of several servers are summed.
const SUM_OVER_SHARDS: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const EVERY_SHARD: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const TIME_PASSES: &[&str] = &["nondeterministic_output"];
fn restores_for_a_time(request: Request<'_>) -> bool {
    request.arg(2) != b"0" && !request.iter().skip(4).any(|word| is_word(word, "ABSTTL"))
}

const fn look(name: &'static str, handler: fn(&mut ReadCx<'_>) -> CommandResult) -> Command {
    read(name, exactly(3), key(2).examined(), handler).flag(Flags::NO_TOUCH).tips(&["nondeterministic_output"])
}

const EXPIRY_CONDITION: Argument = arg::one_of(
    "condition",
    &[arg::token("nx", "NX"), arg::token("xx", "XX"), arg::token("gt", "GT"), arg::token("lt", "LT")],
)
.since("7.0.0")
.optional();
