//! Bits and bit fields of strings, documented.

use super::CommandDoc;
use super::argument::{block, integer, key, one_of, string, token};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("bitcount", "2.6.0", "Counts the one bits of a string, or of a range within it.")
        .complexity("O(N) for N bytes examined")
        .history(&[("7.0.0", "A range may be given in `BYTE` or `BIT` units.")])
        .arguments(&[
            key("key", 0),
            block(
                "range",
                &[
                    integer("start"),
                    integer("end"),
                    one_of("unit", &[token("byte", "BYTE"), token("bit", "BIT")]).since("7.0.0").optional(),
                ],
            )
            .optional(),
        ]),
    doc("bitfield", "3.2.0", "Reads, writes and increments integers of any width at any bit offset of a string.")
        .complexity("O(1) per operation")
        .arguments(&[
            key("key", 0),
            one_of(
                "operation",
                &[
                    block("get-block", &[string("encoding"), integer("offset")]).after("GET"),
                    block(
                        "write",
                        &[
                            one_of(
                                "overflow-block",
                                &[token("wrap", "WRAP"), token("sat", "SAT"), token("fail", "FAIL")],
                            )
                            .after("OVERFLOW")
                            .optional(),
                            one_of(
                                "write-operation",
                                &[
                                    block("set-block", &[string("encoding"), integer("offset"), integer("value")])
                                        .after("SET"),
                                    block(
                                        "incrby-block",
                                        &[string("encoding"), integer("offset"), integer("increment")],
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
    doc("bitfield_ro", "6.0.0", "Reads integers of any width at any bit offset of a string, and cannot change it.")
        .complexity("O(1) per operation")
        .arguments(&[
            key("key", 0),
            block("get-block", &[string("encoding"), integer("offset")])
                .after("GET")
                .optional()
                .multiple()
                .multiple_token(),
        ]),
    doc("bitop", "2.6.0", "Combines strings bit by bit with AND, OR, XOR or NOT and keeps the outcome in a key.")
        .complexity("O(N) for the N bytes of the longest string")
        .arguments(&[
            one_of("operation", &[token("and", "AND"), token("or", "OR"), token("xor", "XOR"), token("not", "NOT")]),
            key("destkey", 0),
            key("key", 1).multiple(),
        ]),
    doc("bitpos", "2.8.7", "Locates the first bit of a string that is one, or that is zero.")
        .complexity("O(N) for N bytes examined")
        .history(&[("7.0.0", "A range may be given in `BYTE` or `BIT` units.")])
        .arguments(&[
            key("key", 0),
            integer("bit"),
            block(
                "range",
                &[
                    integer("start"),
                    block(
                        "end-unit-block",
                        &[
                            integer("end"),
                            one_of("unit", &[token("byte", "BYTE"), token("bit", "BIT")]).since("7.0.0").optional(),
                        ],
                    )
                    .optional(),
                ],
            )
            .optional(),
        ]),
    doc("getbit", "2.2.0", "Reads one bit of a string.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), integer("offset")]),
    doc("setbit", "2.2.0", "Writes one bit of a string, lengthening it if needed, and replies with the former bit.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), integer("offset"), integer("value")]),
];

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("bitmap", name, since, summary)
}
