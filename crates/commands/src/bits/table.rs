//! Strings as bits: the rows, each with its documentation: Redis's facts in our words.

use super::bitmap;
use execution::args::is_word;
use execution::command::{Command, FoundKeys, KeyFlags, Keys, at_least, exactly, key, keys, read, write};
use execution::docs::argument as arg;
use resp::Request;

pub(super) const COMMANDS: &[Command] = &[
    read("bitcount", at_least(2), key(1), bitmap::bitcount)
        .doc("2.6.0", "Counts the one bits of a string, or of a range within it.")
        .complexity("O(N) for N bytes examined")
        .history(&[("7.0.0", "A range may be given in `BYTE` or `BIT` units.")])
        .arguments(&[
            arg::key("key", 0),
            arg::block(
                "range",
                &[
                    arg::integer("start"),
                    arg::integer("end"),
                    arg::one_of("unit", &[arg::token("byte", "BYTE"), arg::token("bit", "BIT")])
                        .since("7.0.0")
                        .optional(),
                ],
            )
            .optional(),
        ]),
    write("bitfield", at_least(2), BITFIELD_KEY, bitmap::bitfield)
        .grows_memory()
        .tells_if(only_gets)
        .doc("3.2.0", "Reads, writes and increments integers of any width at any bit offset of a string.")
        .complexity("O(1) per operation")
        .arguments(&[
            arg::key("key", 0),
            arg::one_of(
                "operation",
                &[
                    arg::block("get-block", &[arg::string("encoding"), arg::integer("offset")]).after("GET"),
                    arg::block(
                        "write",
                        &[
                            arg::one_of(
                                "overflow-block",
                                &[arg::token("wrap", "WRAP"), arg::token("sat", "SAT"), arg::token("fail", "FAIL")],
                            )
                            .after("OVERFLOW")
                            .optional(),
                            arg::one_of(
                                "write-operation",
                                &[
                                    arg::block(
                                        "set-block",
                                        &[arg::string("encoding"), arg::integer("offset"), arg::integer("value")],
                                    )
                                    .after("SET"),
                                    arg::block(
                                        "incrby-block",
                                        &[arg::string("encoding"), arg::integer("offset"), arg::integer("increment")],
                                    )
                                    .after("INCRBY"),
                                ],
                            ),
                        ],
                    ),
                ],
            )
            .optional()
            .multiple(),
        ]),
    read("bitfield_ro", at_least(2), key(1), bitmap::bitfield_ro)
        .fast()
        .doc("6.0.0", "Reads integers of any width at any bit offset of a string, and cannot change it.")
        .complexity("O(1) per operation")
        .arguments(&[
            arg::key("key", 0),
            arg::block("get-block", &[arg::string("encoding"), arg::integer("offset")])
                .after("GET")
                .optional()
                .multiple()
                .multiple_token(),
        ]),
    write("bitop", at_least(4), key(2).overwritten().and(keys(3, -1, 1).read()), bitmap::bitop)
        .grows_memory()
        .copies_values()
        .doc("2.6.0", "Combines strings bit by bit and keeps the outcome in a key.")
        .complexity("O(N) for the N bytes of the longest string")
        .history(&[("8.2.0", "New operations `DIFF`, `DIFF1`, `ANDOR` and `ONE`.")])
        .arguments(&[
            arg::one_of(
                "operation",
                &[
                    arg::token("and", "AND"),
                    arg::token("or", "OR"),
                    arg::token("xor", "XOR"),
                    arg::token("not", "NOT"),
                    arg::token("diff", "DIFF").since("8.2.0"),
                    arg::token("diff1", "DIFF1").since("8.2.0"),
                    arg::token("andor", "ANDOR").since("8.2.0"),
                    arg::token("one", "ONE").since("8.2.0"),
                ],
            ),
            arg::key("destkey", 0),
            arg::key("key", 1).multiple(),
        ]),
    read("bitpos", at_least(3), key(1), bitmap::bitpos)
        .doc("2.8.7", "Locates the first bit of a string that is one, or that is zero.")
        .complexity("O(N) for N bytes examined")
        .history(&[("7.0.0", "A range may be given in `BYTE` or `BIT` units.")])
        .arguments(&[
            arg::key("key", 0),
            arg::integer("bit"),
            arg::block(
                "range",
                &[
                    arg::integer("start"),
                    arg::block(
                        "end-unit-block",
                        &[
                            arg::integer("end"),
                            arg::one_of("unit", &[arg::token("byte", "BYTE"), arg::token("bit", "BIT")])
                                .since("7.0.0")
                                .optional(),
                        ],
                    )
                    .optional(),
                ],
            )
            .optional(),
        ]),
    read("getbit", exactly(3), key(1), bitmap::getbit)
        .fast()
        .doc("2.2.0", "Reads one bit of a string.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::integer("offset")]),
    write("setbit", exactly(4), key(1).changed(), bitmap::setbit)
        .grows_memory()
        .doc("2.2.0", "Writes one bit of a string, lengthening it if needed, and replies with the former bit.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0), arg::integer("offset"), arg::integer("value")]),
];

const BITFIELD_KEY: Keys = key(1)
    .changed()
    .noted("With SET or INCRBY it changes the value, with GET alone it only reads it.")
    .varying(key_of_bitfield);

/// With GET alone it only reads. A request that cannot be parsed counts as a write.
fn key_of_bitfield(request: Request<'_>) -> FoundKeys {
    FoundKeys::one(1, if only_gets(request) { KeyFlags::READ } else { KeyFlags::CHANGE })
}

/// True when a BITFIELD has neither SET nor INCRBY.
fn only_gets(request: Request<'_>) -> bool {
    let (mut at, len) = (2, request.len());
    loop {
        match request.iter().nth(at) {
            None => return true,
            Some(word) if is_word(word, "GET") && at + 2 < len => at += 3,
            Some(word) if is_word(word, "OVERFLOW") && at + 1 < len => at += 2,
            Some(_) => return false,
        }
    }
}
