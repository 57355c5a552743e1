//! Strings: the rows, each with its documentation: Redis's facts in our words.

use super::{conditions, counters, increx, multiple, values};
use crate::shared::deadline::{always, ex_or_px_from};
use execution::args::is_word;
use execution::command::{
    Command, FoundKeys, KeyFlags, Keys, at_least, counted_pairs, exactly, key, keys, read, write,
};
use execution::docs::argument::{self as arg, Argument};
use numbers::parse_i64;
use resp::Request;

pub(super) const COMMANDS: &[Command] = &[
    write("append", exactly(3), key(1).added_to(), values::append)
        .fast()
        .grows_memory()
        .doc("2.0.0", "Adds bytes to the end of a string, starting from an empty one if the key is missing.")
        .complexity("O(1) amortized, plus the bytes appended")
        .arguments(&[arg::key("key", 0), arg::string("value")]),
    write("decr", exactly(2), key(1).changed(), counters::decr)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Subtracts one from the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("decrby", exactly(3), key(1).changed(), counters::decrby)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Subtracts an amount from the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::integer("decrement")]),
    write("delex", at_least(2), DELEX_KEY, conditions::delex)
        .fast()
        .doc("8.4.0", "Removes a key, if asked to only while its string or the digest of it is a given one.")
        .complexity("O(1), or O(N) for IFDEQ and IFDNE of a string of N bytes")
        .arguments(&[arg::key("key", 0), arg::one_of("condition", CONTENT_CONDITIONS).optional()]),
    write("delifeq", exactly(3), key(1).removed(), conditions::delifeq)
        .fast()
        .valkey_doc("9.0.0", "0.1.0", "Removes a string that equals a given one, as DELEX with IFEQ does.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::string("value")]),
    read("digest", exactly(2), key(1), conditions::digest)
        .fast()
        .doc("8.4.0", "Returns the digest of a string (XXH3), which SET and DELEX can compare with.")
        .complexity("O(N) for N bytes")
        .arguments(&[arg::key("key", 0)]),
    read("get", exactly(2), key(1), values::get)
        .fast()
        .doc("1.0.0", "Reads the string a key holds.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("getdel", exactly(2), key(1).taken_from(), values::getdel)
        .fast()
        .doc("6.2.0", "Reads a string and removes its key in the same step.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("getex", at_least(2), key(1).changed().noted("It may change the deadline."), values::getex)
        .fast()
        .tells_if(|request| request.len() == 2)
        .relative_time(ex_or_px_from::<2>)
        .doc("6.2.0", "Reads a string and, if asked to, changes or removes its key's deadline.")
        .complexity("O(1)")
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
        ]),
    read("getrange", exactly(4), key(1), values::getrange)
        .doc("2.4.0", "Reads the part of a string that lies between two offsets.")
        .complexity("O(N) for N bytes returned")
        .arguments(&[arg::key("key", 0), arg::integer("start"), arg::integer("end")]),
    write("getset", exactly(3), key(1).changed(), values::getset)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Replaces a string and replies with the one that was there before.")
        .complexity("O(1)")
        .deprecated("6.2.0", "`SET` with the `GET` option")
        .arguments(&[arg::key("key", 0), arg::string("value")]),
    write("incr", exactly(2), key(1).changed(), counters::incr)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Adds one to the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    write("incrby", exactly(3), key(1).changed(), counters::incrby)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Adds an amount to the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::integer("increment")]),
    write("incrbyfloat", exactly(3), key(1).changed(), counters::incrbyfloat)
        .fast()
        .grows_memory()
        .doc("2.6.0", "Adds a floating-point amount to the number a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::double("increment")]),
    write("increx", at_least(2), key(1).changed(), increx::increx)
        .fast()
        .grows_memory()
        .relative_time(ex_or_px_from::<2>)
        .doc("8.8.0", "Adds to the number that a key holds, within bounds, and may change the key's deadline.")
        .complexity("O(1)")
        .arguments(&[
            arg::key("key", 0),
            arg::one_of("increment", &[arg::double("float").after("BYFLOAT"), arg::integer("integer").after("BYINT")])
                .optional(),
            arg::string("lowerbound").after("LBOUND").optional(),
            arg::string("upperbound").after("UBOUND").optional(),
            arg::token("saturate", "SATURATE").optional(),
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
            arg::token("enx", "ENX").optional(),
        ]),
    read("lcs", at_least(3), keys(1, 2, 1), values::lcs_command)
        .doc("7.0.0", "Computes the longest subsequence that two strings have in common.")
        .complexity("O(N*M) for strings of N and M bytes")
        .arguments(&[
            arg::key("key1", 0),
            arg::key("key2", 0),
            arg::token("len", "LEN").optional(),
            arg::token("idx", "IDX").optional(),
            arg::integer("min-match-len").after("MINMATCHLEN").optional(),
            arg::token("withmatchlen", "WITHMATCHLEN").optional(),
        ]),
    read("mget", at_least(2), keys(1, -1, 1), multiple::mget)
        .fast()
        .tips(&["request_policy:multi_shard"])
        .doc("1.0.0", "Reads the strings of several keys at once, with nil for each key that holds none.")
        .complexity("O(N) for N keys")
        .arguments(&[arg::key("key", 0).multiple()]),
    write("mset", at_least(3), keys(1, -1, 2).overwritten(), multiple::mset)
        .grows_memory()
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .doc("1.0.1", "Writes strings to several keys in one step.")
        .complexity("O(N) for N keys")
        .arguments(&[arg::block("data", &[arg::key("key", 0), arg::string("value")]).multiple()]),
    write("msetex", at_least(4), counted_pairs(1).overwritten(), multiple::msetex)
        .grows_memory()
        .relative_time(ex_or_px_of_msetex)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .doc("8.4.0", "Writes strings to several keys in one step, with one deadline and one condition for all.")
        .complexity("O(N) for N keys")
        .arguments(&[
            arg::integer("numkeys"),
            arg::block("data", &[arg::key("key", 0), arg::string("value")]).multiple(),
            arg::one_of("condition", &[arg::token("nx", "NX"), arg::token("xx", "XX")]).optional(),
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
        ]),
    write("msetnx", at_least(3), keys(1, -1, 2).created(), multiple::msetnx)
        .grows_memory()
        .doc("1.0.1", "Writes strings to several keys in one step, provided that none of the keys exists yet.")
        .complexity("O(N) for N keys")
        .arguments(&[arg::block("data", &[arg::key("key", 0), arg::string("value")]).multiple()]),
    write("psetex", exactly(4), key(1).overwritten(), values::psetex)
        .grows_memory()
        .relative_time(always)
        .doc("2.6.0", "Writes a string that expires after a number of milliseconds.")
        .complexity("O(1)")
        .deprecated("2.6.12", "`SET` with the `PX` option")
        .arguments(&[arg::key("key", 0), arg::integer("milliseconds"), arg::string("value")]),
    write("set", at_least(3), SET_KEY, values::set)
        .grows_memory()
        .relative_time(ex_or_px_from::<3>)
        .doc("1.0.0", "Writes a string to a key, whatever it held; options add conditions and a deadline.")
        .complexity("O(1)")
        .history(&[
            ("2.6.12", "New options `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "New option `KEEPTTL`."),
            ("6.2.0", "New options `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "`NX` and `GET` may be combined."),
            ("8.4.0", "New options `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE`."),
        ])
        .arguments(&[
            arg::key("key", 0),
            arg::string("value"),
            arg::one_of(
                "condition",
                &[
                    arg::token("nx", "NX").since("2.6.12"),
                    arg::token("xx", "XX").since("2.6.12"),
                    arg::string("ifeq-value").after("IFEQ").since("8.4.0"),
                    arg::string("ifne-value").after("IFNE").since("8.4.0"),
                    arg::string("ifdeq-digest").after("IFDEQ").since("8.4.0"),
                    arg::string("ifdne-digest").after("IFDNE").since("8.4.0"),
                ],
            )
            .optional(),
            arg::token("get", "GET").since("6.2.0").optional(),
            arg::one_of(
                "expiration",
                &[
                    arg::integer("seconds").after("EX").since("2.6.12"),
                    arg::integer("milliseconds").after("PX").since("2.6.12"),
                    arg::unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                    arg::unix_time("unix-time-milliseconds").after("PXAT").since("6.2.0"),
                    arg::token("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ]),
    write("setex", exactly(4), key(1).overwritten(), values::setex)
        .grows_memory()
        .relative_time(always)
        .doc("2.0.0", "Writes a string that expires after a number of seconds.")
        .complexity("O(1)")
        .deprecated("2.6.12", "`SET` with the `EX` option")
        .arguments(&[arg::key("key", 0), arg::integer("seconds"), arg::string("value")]),
    write("setnx", exactly(3), key(1).created(), values::setnx)
        .fast()
        .grows_memory()
        .doc("1.0.0", "Writes a string to a key unless the key exists already.")
        .complexity("O(1)")
        .deprecated("2.6.12", "`SET` with the `NX` option")
        .arguments(&[arg::key("key", 0), arg::string("value")]),
    write("setrange", exactly(4), key(1), values::setrange)
        .grows_memory()
        .doc("2.2.0", "Overwrites a string from an offset on, after zero bytes if it is too short.")
        .complexity("O(M) for M bytes written, plus any padding")
        .arguments(&[arg::key("key", 0), arg::integer("offset"), arg::string("value")]),
    read("strlen", exactly(2), key(1).examined(), values::strlen)
        .fast()
        .doc("2.2.0", "Returns how many bytes a string has.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    read("substr", exactly(4), key(1), values::getrange)
        .doc("1.0.0", "Reads the part of a string that lies between two offsets; an older name of GETRANGE.")
        .complexity("O(N) for N bytes returned")
        .deprecated("2.0.0", "`GETRANGE`")
        .arguments(&[arg::key("key", 0), arg::integer("start"), arg::integer("end")]),
];

const CONTENT_CONDITIONS: &[Argument] = &[
    arg::string("ifeq-value").after("IFEQ"),
    arg::string("ifne-value").after("IFNE"),
    arg::string("ifdeq-digest").after("IFDEQ"),
    arg::string("ifdne-digest").after("IFDNE"),
];

const DELEX_KEY: Keys = key(1).removed_from().noted("With a condition it compares the value.").varying(key_of_delex);

fn key_of_delex(request: Request<'_>) -> FoundKeys {
    let compares = request.len() > 2;
    let removes = if compares { KeyFlags::RW } else { KeyFlags::RM };
    FoundKeys::one(1, removes.union(KeyFlags::DELETE))
}

/// The options of MSETEX come after its pairs.
fn ex_or_px_of_msetex(request: Request<'_>) -> bool {
    let pairs = request.iter().nth(1).and_then(parse_i64).and_then(|pairs| usize::try_from(pairs).ok());
    let options = pairs.and_then(|pairs| pairs.checked_mul(2)).unwrap_or(usize::MAX - 2);
    request.iter().skip(2).skip(options).any(|word| is_word(word, "EX") || is_word(word, "PX"))
}

const SET_KEY: Keys = key(1).changed().noted("With GET it returns what it replaces.").varying(key_of_set);

fn key_of_set(request: Request<'_>) -> FoundKeys {
    let gets = request.iter().skip(3).any(|word| is_word(word, "GET"));
    FoundKeys::one(1, if gets { KeyFlags::CHANGE } else { KeyFlags::OVERWRITE })
}
