//! Strings, documented.

use super::CommandDoc;
use super::argument::{block, double, integer, key, one_of, string, token, unix_time};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("append", "2.0.0", "Adds bytes to the end of a string, starting from an empty one if the key is missing.")
        .complexity("O(1) amortized, plus the bytes appended")
        .arguments(&[key("key", 0), string("value")]),
    doc("decr", "1.0.0", "Subtracts one from the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("decrby", "1.0.0", "Subtracts an amount from the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), integer("decrement")]),
    doc("get", "1.0.0", "Reads the string a key holds.").complexity("O(1)").arguments(&[key("key", 0)]),
    doc("getdel", "6.2.0", "Reads a string and removes its key in the same step.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("getex", "6.2.0", "Reads a string and, if asked to, changes or removes its key's deadline.")
        .complexity("O(1)")
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
        ]),
    doc("getrange", "2.4.0", "Reads the part of a string that lies between two offsets.")
        .complexity("O(N) for N bytes returned")
        .arguments(&[key("key", 0), integer("start"), integer("end")]),
    doc("getset", "1.0.0", "Replaces a string and replies with the one that was there before.")
        .complexity("O(1)")
        .deprecated("6.2.0", "`SET` with the `GET` option")
        .arguments(&[key("key", 0), string("value")]),
    doc("incr", "1.0.0", "Adds one to the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("incrby", "1.0.0", "Adds an amount to the integer a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), integer("increment")]),
    doc("incrbyfloat", "2.6.0", "Adds a floating-point amount to the number a key holds; a missing key counts as 0.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), double("increment")]),
    doc("lcs", "7.0.0", "Computes the longest subsequence that two strings have in common.")
        .complexity("O(N*M) for strings of N and M bytes")
        .arguments(&[
            key("key1", 0),
            key("key2", 0),
            token("len", "LEN").optional(),
            token("idx", "IDX").optional(),
            integer("min-match-len").after("MINMATCHLEN").optional(),
            token("withmatchlen", "WITHMATCHLEN").optional(),
        ]),
    doc("mget", "1.0.0", "Reads the strings of several keys at once, with nil for each key that holds none.")
        .complexity("O(N) for N keys")
        .arguments(&[key("key", 0).multiple()]),
    doc("mset", "1.0.1", "Writes strings to several keys in one step.")
        .complexity("O(N) for N keys")
        .arguments(&[block("data", &[key("key", 0), string("value")]).multiple()]),
    doc("msetnx", "1.0.1", "Writes strings to several keys in one step, provided that none of the keys exists yet.")
        .complexity("O(N) for N keys")
        .arguments(&[block("data", &[key("key", 0), string("value")]).multiple()]),
    doc("psetex", "2.6.0", "Writes a string that expires after a number of milliseconds.")
        .complexity("O(1)")
        .deprecated("2.6.12", "`SET` with the `PX` option")
        .arguments(&[key("key", 0), integer("milliseconds"), string("value")]),
    doc("set", "1.0.0", "Writes a string to a key, whatever it held; options add conditions and a deadline.")
        .complexity("O(1)")
        .history(&[
            ("2.6.12", "New options `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "New option `KEEPTTL`."),
            ("6.2.0", "New options `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "`NX` and `GET` may be combined."),
        ])
        .arguments(&[
            key("key", 0),
            string("value"),
            one_of("condition", &[token("nx", "NX"), token("xx", "XX")]).since("2.6.12").optional(),
            token("get", "GET").since("6.2.0").optional(),
            one_of(
                "expiration",
                &[
                    integer("seconds").after("EX").since("2.6.12"),
                    integer("milliseconds").after("PX").since("2.6.12"),
                    unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                    unix_time("unix-time-milliseconds").after("PXAT").since("6.2.0"),
                    token("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ]),
    doc("setex", "2.0.0", "Writes a string that expires after a number of seconds.")
        .complexity("O(1)")
        .deprecated("2.6.12", "`SET` with the `EX` option")
        .arguments(&[key("key", 0), integer("seconds"), string("value")]),
    doc("setnx", "1.0.0", "Writes a string to a key unless the key exists already.")
        .complexity("O(1)")
        .deprecated("2.6.12", "`SET` with the `NX` option")
        .arguments(&[key("key", 0), string("value")]),
    doc("setrange", "2.2.0", "Overwrites a string from an offset on, after zero bytes if it is too short.")
        .complexity("O(M) for M bytes written, plus any padding")
        .arguments(&[key("key", 0), integer("offset"), string("value")]),
    doc("strlen", "2.2.0", "Tells how many bytes a string has.").complexity("O(1)").arguments(&[key("key", 0)]),
    doc("substr", "1.0.0", "Reads the part of a string that lies between two offsets; an older name of GETRANGE.")
        .complexity("O(N) for N bytes returned")
        .deprecated("2.0.0", "`GETRANGE`")
        .arguments(&[key("key", 0), integer("start"), integer("end")]),
];

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("string", name, since, summary)
}
