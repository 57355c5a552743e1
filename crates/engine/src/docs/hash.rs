//! Hashes, documented.

use super::CommandDoc;
use super::argument::{Argument, block, double, integer, key, one_of, pattern, string, token, unix_time};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("hdel", "2.0.0", "Takes fields out of a hash; a hash without fields ceases to exist.")
        .complexity("O(N) for N fields")
        .history(&[("2.4.0", "Takes several fields in one call.")])
        .arguments(&[key("key", 0), string("field").multiple()]),
    doc("hexists", "2.0.0", "Tells whether a hash has a field.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), string("field")]),
    doc("hexpire", "7.4.0", "Lets hash fields expire after a number of seconds.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), integer("seconds"), EXPIRY_CONDITION, FIELDS]),
    doc("hexpireat", "7.4.0", "Lets hash fields expire at a moment given in Unix seconds.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), unix_time("unix-time-seconds"), EXPIRY_CONDITION, FIELDS]),
    doc("hexpiretime", "7.4.0", "Tells, in Unix seconds, at which moment hash fields expire.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), FIELDS]),
    doc("hget", "2.0.0", "Reads one field of a hash.").complexity("O(1)").arguments(&[key("key", 0), string("field")]),
    doc("hgetall", "2.0.0", "Reads a whole hash, fields and values.")
        .complexity("O(N) for a hash of N fields")
        .arguments(&[key("key", 0)]),
    doc("hgetdel", "8.0.0", "Reads fields of a hash and takes them out in the same step.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), FIELDS]),
    doc("hgetex", "8.0.0", "Reads fields of a hash and, if asked to, changes or removes their deadlines.")
        .complexity("O(N) for N fields")
        .arguments(&[
            key("key", 0),
            one_of(
                "expiration",
                &[
                    integer("seconds").after("EX"),
                    integer("milliseconds").after("PX"),
                    unix_time("unix-time-seconds").after("EXAT"),
                    unix_time("unix-time-milliseconds").after("PXAT"),
                    token("persist", "PERSIST"),
                ],
            )
            .optional(),
            FIELDS,
        ]),
    doc("hincrby", "2.0.0", "Adds an amount to the integer in a hash field; a missing field counts as 0.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), string("field"), integer("increment")]),
    doc(
        "hincrbyfloat",
        "2.6.0",
        "Adds a floating-point amount to the number in a hash field; a missing one counts as 0.",
    )
    .complexity("O(1)")
    .arguments(&[key("key", 0), string("field"), double("increment")]),
    doc("hkeys", "2.0.0", "Lists the field names of a hash.")
        .complexity("O(N) for a hash of N fields")
        .arguments(&[key("key", 0)]),
    doc("hlen", "2.0.0", "Tells how many fields a hash has.").complexity("O(1)").arguments(&[key("key", 0)]),
    doc("hmget", "2.0.0", "Reads several fields of a hash, with nil for each that it lacks.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), string("field").multiple()]),
    doc("hmset", "2.0.0", "Writes several fields of a hash; an older form of HSET.")
        .complexity("O(N) for N fields")
        .deprecated("4.0.0", "`HSET`, which takes several fields")
        .arguments(&[key("key", 0), block("data", &[string("field"), string("value")]).multiple()]),
    doc("hpersist", "7.4.0", "Removes the deadlines of hash fields.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), FIELDS]),
    doc("hpexpire", "7.4.0", "Lets hash fields expire after a number of milliseconds.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), integer("milliseconds"), EXPIRY_CONDITION, FIELDS]),
    doc("hpexpireat", "7.4.0", "Lets hash fields expire at a moment given in Unix milliseconds.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), unix_time("unix-time-milliseconds"), EXPIRY_CONDITION, FIELDS]),
    doc("hpexpiretime", "7.4.0", "Tells, in Unix milliseconds, at which moment hash fields expire.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), FIELDS]),
    doc("hpttl", "7.4.0", "Tells how many milliseconds hash fields have left.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), FIELDS]),
    doc("hrandfield", "6.2.0", "Picks fields of a hash at random, with their values if wanted.")
        .complexity("O(N) for N fields returned")
        .arguments(&[
            key("key", 0),
            block("options", &[integer("count"), token("withvalues", "WITHVALUES").optional()]).optional(),
        ]),
    doc("hscan", "2.8.0", "Walks through a hash a few fields at a time, by means of a cursor.")
        .complexity("O(1) per call, O(N) for a full walk over N fields")
        .arguments(&[
            key("key", 0),
            integer("cursor"),
            pattern("pattern").after("MATCH").optional(),
            integer("count").after("COUNT").optional(),
            token("novalues", "NOVALUES").optional(),
        ]),
    doc("hset", "2.0.0", "Writes fields of a hash and replies with how many of them are new.")
        .complexity("O(N) for N fields")
        .history(&[("4.0.0", "Takes several fields and values in one call.")])
        .arguments(&[key("key", 0), block("data", &[string("field"), string("value")]).multiple()]),
    doc("hsetex", "8.0.0", "Writes fields of a hash together with a deadline, with conditions if wanted.")
        .complexity("O(N) for N fields")
        .arguments(&[
            key("key", 0),
            one_of("condition", &[token("fnx", "FNX"), token("fxx", "FXX")]).optional(),
            one_of(
                "expiration",
                &[
                    integer("seconds").after("EX"),
                    integer("milliseconds").after("PX"),
                    unix_time("unix-time-seconds").after("EXAT"),
                    unix_time("unix-time-milliseconds").after("PXAT"),
                    token("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
            block("fields", &[integer("numfields"), block("data", &[string("field"), string("value")]).multiple()])
                .after("FIELDS"),
        ]),
    doc("hsetnx", "2.0.0", "Writes a field of a hash unless the hash has that field already.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), string("field"), string("value")]),
    doc("hstrlen", "3.2.0", "Tells how many bytes the value of a hash field has.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), string("field")]),
    doc("httl", "7.4.0", "Tells how many seconds hash fields have left.")
        .complexity("O(N) for N fields")
        .arguments(&[key("key", 0), FIELDS]),
    doc("hvals", "2.0.0", "Lists the values of a hash.")
        .complexity("O(N) for a hash of N fields")
        .arguments(&[key("key", 0)]),
];

const EXPIRY_CONDITION: Argument =
    one_of("condition", &[token("nx", "NX"), token("xx", "XX"), token("gt", "GT"), token("lt", "LT")]).optional();
const FIELDS: Argument = block("fields", &[integer("numfields"), string("field").multiple()]).after("FIELDS");

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("hash", name, since, summary)
}
