//! Hashes: the rows, each with its documentation: Redis's facts in our words.

use super::{deadlines, fields, scan};
use crate::shared::deadline::{always, ex_or_px_from};
use execution::args::is_word;
use execution::command::{Command, at_least, exactly, key, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write("hdel", at_least(3), key(1).removed_from(), fields::hdel)
        .fast()
        .doc("2.0.0", "Takes fields out of a hash; a hash without fields ceases to exist.")
        .complexity("O(N) for N fields")
        .history(&[("2.4.0", "Takes several fields in one call.")])
        .arguments(&[arg::key("key", 0), arg::string("field").multiple()]),
    read("hexists", exactly(3), key(1).examined(), fields::hexists)
        .fast()
        .doc("2.0.0", "Returns whether a hash has a field.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("field")]),
    read("hget", exactly(3), key(1), fields::hget)
        .fast()
        .doc("2.0.0", "Reads one field of a hash.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("field")]),
    read("hgetall", exactly(2), key(1), fields::hgetall)
        .tips(&["nondeterministic_output_order"])
        .doc("2.0.0", "Reads a whole hash, fields and values.")
        .complexity("O(N) for a hash of N fields")
        .arguments(&[arg::key("key", 0)]),
    write("hincrby", exactly(4), key(1).changed(), fields::hincrby)
        .fast()
        .grows_memory()
        .doc("2.0.0", "Adds an amount to the integer in a hash field; a missing field counts as 0.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("field"), arg::integer("increment")]),
    write("hincrbyfloat", exactly(4), key(1).changed(), fields::hincrbyfloat)
        .fast()
        .grows_memory()
        .doc("2.6.0", "Adds a floating-point amount to the number in a hash field; a missing one counts as 0.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("field"), arg::double("increment")]),
    read("hkeys", exactly(2), key(1), fields::hkeys)
        .tips(&["nondeterministic_output_order"])
        .doc("2.0.0", "Lists the field names of a hash.")
        .complexity("O(N) for a hash of N fields")
        .arguments(&[arg::key("key", 0)]),
    read("hlen", exactly(2), key(1).examined(), fields::hlen)
        .fast()
        .doc("2.0.0", "Returns how many fields a hash has.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    read("hmget", at_least(3), key(1), fields::hmget)
        .fast()
        .doc("2.0.0", "Reads several fields of a hash, with nil for each that it lacks.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), arg::string("field").multiple()]),
    write("hmset", at_least(4), key(1), fields::hmset)
        .fast()
        .grows_memory()
        .doc("2.0.0", "Writes several fields of a hash; an older form of HSET.")
        .complexity("O(N) for N fields")
        .deprecated("4.0.0", "`HSET`, which takes several fields")
        .arguments(&[arg::key("key", 0), arg::block("data", &[arg::string("field"), arg::string("value")]).multiple()]),
    write("hset", at_least(4), key(1), fields::hset)
        .fast()
        .grows_memory()
        .doc("2.0.0", "Writes fields of a hash and replies with how many of them are new.")
        .complexity("O(N) for N fields")
        .history(&[("4.0.0", "Takes several fields and values in one call.")])
        .arguments(&[arg::key("key", 0), arg::block("data", &[arg::string("field"), arg::string("value")]).multiple()]),
    write("hsetnx", exactly(4), key(1).added_to(), fields::hsetnx)
        .fast()
        .grows_memory()
        .doc("2.0.0", "Writes a field of a hash unless the hash has that field already.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("field"), arg::string("value")]),
    read("hstrlen", exactly(3), key(1).examined(), fields::hstrlen)
        .fast()
        .doc("3.2.0", "Returns how many bytes the value of a hash field has.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("field")]),
    read("hvals", exactly(2), key(1), fields::hvals)
        .tips(&["nondeterministic_output_order"])
        .doc("2.0.0", "Lists the values of a hash.")
        .complexity("O(N) for a hash of N fields")
        .arguments(&[arg::key("key", 0)]),
    read("hrandfield", at_least(2), key(1), scan::hrandfield)
        .tips(BY_CHANCE)
        .doc("6.2.0", "Picks fields of a hash at random, with their values if wanted.")
        .complexity("O(N) for N fields returned")
        .arguments(&[
            arg::key("key", 0),
            arg::block("options", &[arg::integer("count"), arg::token("withvalues", "WITHVALUES").optional()])
                .optional(),
        ]),
    read("hscan", at_least(3), key(1), scan::hscan)
        .tips(BY_CHANCE)
        .doc("2.8.0", "Walks through a hash a few fields at a time, by means of a cursor.")
        .complexity("O(1) per call, O(N) for a full walk over N fields")
        .arguments(&[
            arg::key("key", 0),
            arg::integer("cursor"),
            arg::pattern("pattern").after("MATCH").optional(),
            arg::integer("count").after("COUNT").optional(),
            arg::token("novalues", "NOVALUES").optional(),
        ]),
    write("hexpire", at_least(6), key(1), deadlines::hexpire)
        .fast()
        .relative_time(always)
        .doc("7.4.0", "Lets hash fields expire after a number of seconds.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), arg::integer("seconds"), EXPIRY_CONDITION, FIELDS]),
    write("hexpireat", at_least(6), key(1), deadlines::hexpireat)
        .fast()
        .doc("7.4.0", "Lets hash fields expire at a moment given in Unix seconds.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), arg::unix_time("unix-time-seconds"), EXPIRY_CONDITION, FIELDS]),
    read("hexpiretime", at_least(5), key(1), deadlines::hexpiretime)
        .fast()
        .doc("7.4.0", "Returns, in Unix seconds, when hash fields expire.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), FIELDS]),
    write("hgetdel", at_least(5), key(1).taken_from(), deadlines::hgetdel)
        .fast()
        .doc("8.0.0", "Reads fields of a hash and takes them out in the same step.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), FIELDS]),
    write("hgetex", at_least(5), key(1).changed(), deadlines::hgetex)
        .fast()
        .tells_if(|request| is_word(request.arg(2), "FIELDS"))
        .relative_time(ex_or_px_from::<2>)
        .doc("8.0.0", "Reads fields of a hash and, if asked to, changes or removes their deadlines.")
        .complexity("O(N) for N fields")
        .arguments(&[
            arg::key("key", 0),
            arg::one_of(
                "expiration",
                &[
                    arg::integer("seconds").after("EX"),
                    arg::integer("milliseconds").after("PX"),
                    arg::unix_time("unix-time-seconds").after("EXAT"),
                    arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    arg::token("persist", "PERSIST"),
                ],
            )
            .optional(),
            FIELDS,
        ]),
    write("hpersist", at_least(5), key(1), deadlines::hpersist)
        .fast()
        .doc("7.4.0", "Removes the deadlines of hash fields.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), FIELDS]),
    write("hpexpire", at_least(6), key(1), deadlines::hpexpire)
        .fast()
        .relative_time(always)
        .doc("7.4.0", "Lets hash fields expire after a number of milliseconds.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), arg::integer("milliseconds"), EXPIRY_CONDITION, FIELDS]),
    write("hpexpireat", at_least(6), key(1), deadlines::hpexpireat)
        .fast()
        .doc("7.4.0", "Lets hash fields expire at a moment given in Unix milliseconds.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), arg::unix_time("unix-time-milliseconds"), EXPIRY_CONDITION, FIELDS]),
    read("hpexpiretime", at_least(5), key(1), deadlines::hpexpiretime)
        .fast()
        .doc("7.4.0", "Returns, in Unix milliseconds, when hash fields expire.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), FIELDS]),
    read("hpttl", at_least(5), key(1), deadlines::hpttl)
        .fast()
        .tips(BY_THE_CLOCK)
        .doc("7.4.0", "Returns how many milliseconds hash fields have left.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), FIELDS]),
    write("hsetex", at_least(6), key(1), deadlines::hsetex)
        .fast()
        .grows_memory()
        .relative_time(ex_or_px_from::<2>)
        .doc("8.0.0", "Writes fields of a hash together with a deadline, with conditions if wanted.")
        .complexity("O(N) for N fields")
        .arguments(&[
            arg::key("key", 0),
            arg::one_of("condition", &[arg::token("fnx", "FNX"), arg::token("fxx", "FXX")]).optional(),
            arg::one_of(
                "expiration",
                &[
                    arg::integer("seconds").after("EX"),
                    arg::integer("milliseconds").after("PX"),
                    arg::unix_time("unix-time-seconds").after("EXAT"),
                    arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    arg::token("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
            arg::block(
                "fields",
                &[
                    arg::integer("numfields"),
                    arg::block("data", &[arg::string("field"), arg::string("value")]).multiple(),
                ],
            )
            .after("FIELDS"),
        ]),
    read("httl", at_least(5), key(1), deadlines::httl)
        .fast()
        .tips(BY_THE_CLOCK)
        .doc("7.4.0", "Returns how many seconds hash fields have left.")
        .complexity("O(N) for N fields")
        .arguments(&[arg::key("key", 0), FIELDS]),
];

/// Neither the order of fields nor random choices are deterministic.
const BY_CHANCE: &[&str] = &["nondeterministic_output"];
/// The reply depends on the time of the call.
const BY_THE_CLOCK: &[&str] = &["nondeterministic_output"];

const EXPIRY_CONDITION: Argument = arg::one_of(
    "condition",
    &[arg::token("nx", "NX"), arg::token("xx", "XX"), arg::token("gt", "GT"), arg::token("lt", "LT")],
)
.optional();
const FIELDS: Argument =
    arg::block("fields", &[arg::integer("numfields"), arg::string("field").multiple()]).after("FIELDS");
