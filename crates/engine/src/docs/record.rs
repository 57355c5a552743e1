//! Records, documented: what Holdfast has for hashes beside Redis's commands.

use super::CommandDoc;
use super::argument::{Argument, block, integer, key, one_of, string, token, unix_time};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("hcas", "Changes fields of a hash if others hold what is expected, in one step.")
        .complexity("O(N) for N fields named")
        .arguments(&[
            key("key", 0),
            one_of(
                "exchange",
                &[
                    block("swap", &[string("field"), string("expected"), string("new")]),
                    block(
                        "options",
                        &[
                            pairs("condition", "IF").optional(),
                            names("absent", "ABSENT").optional(),
                            pairs("set", "SET").optional(),
                            names("delete", "DEL").optional(),
                            one_of("lifetime", LIFETIMES_WITH_PERSIST).optional(),
                            token("withcurrent", "WITHCURRENT").optional(),
                        ],
                    ),
                ],
            ),
        ]),
    doc("hfind", "Finds records under a prefix that pass filters, up to LIMIT (1000) at a time.")
        .complexity("O(N) for N keys looked at; with an index of a filtered field, for N records in its range")
        .arguments(&[
            string("prefix"),
            block("filter", FILTER).after("FILTER").optional().multiple().multiple_token(),
            integer("cursor").after("CURSOR").optional(),
            integer("limit").after("LIMIT").optional(),
            SHOWN,
        ]),
    doc("hput", "Writes fields of a hash and its deadline in one step, in place of the others if wanted.")
        .complexity("O(N) for N fields of the hash")
        .arguments(&[
            key("key", 0),
            token("replace", "REPLACE").optional(),
            one_of("lifetime", LIFETIMES_WITH_KEEPTTL).optional(),
            pairs("fields", "FIELDS"),
        ]),
    doc("idx.create", "Makes an index of records by a field, and keeps it from then on.")
        .complexity("O(N) for N keys, while other commands go on")
        .arguments(&[
            string("name"),
            block("prefixes", &[integer("count"), string("prefix").multiple()]).after("PREFIX"),
            string("field").after("FIELD"),
            one_of(
                "condition",
                &[block("only", CONDITION).after("ONLY"), block("exclude", CONDITION).after("EXCLUDE")],
            )
            .optional(),
            token("stamp", "STAMP").optional(),
        ]),
    doc("idx.drop", "Removes an index; its records stay.")
        .complexity("O(N) for N records")
        .arguments(&[string("name")]),
    doc("idx.info", "Tells what an index is of, and how large it is.").complexity("O(1)").arguments(&[string("name")]),
    doc("idx.list", "Lists the indexes.").complexity("O(N) for N indexes"),
    doc("idx.range", "Finds records by an index, those that pass filters, in the order of their scores.")
        .complexity("O(log(N)+M) for M records looked at")
        .arguments(&[
            string("name"),
            string("min"),
            string("max"),
            token("rev", "REV").optional(),
            block("filter", FILTER).after("FILTER").optional().multiple().multiple_token(),
            integer("limit").after("LIMIT").optional(),
            SHOWN,
        ]),
    doc("sweep", "Changes up to LIMIT (1000) old records, each in the step in which it is judged.")
        .complexity("O(log(N)+M) for M records looked at")
        .arguments(&[
            string("index"),
            integer("milliseconds").after("BEFORE"),
            block("where", CONDITION).after("WHERE").optional(),
            block("retry", &[string("field"), integer("max"), pairs("else", "ELSE")]).after("RETRY").optional(),
            pairs("set", "SET"),
            integer("limit").after("LIMIT").optional(),
            string("channel").after("PUBLISH").optional(),
        ]),
];

const CONDITION: &[Argument] = &[string("field"), integer("count"), string("value").multiple()];
const FILTER: &[Argument] = &[
    string("field"),
    one_of(
        "operator",
        &[
            token("eq", "EQ"),
            token("ne", "NE"),
            token("lt", "LT"),
            token("le", "LE"),
            token("gt", "GT"),
            token("ge", "GE"),
        ],
    ),
    string("value"),
];
const SHOWN: Argument = one_of("shown", &[names("fields", "FIELDS"), token("keys", "KEYS")]).optional();

const PAIRS: &[Argument] = &[integer("count"), block("data", &[string("field"), string("value")]).multiple()];
const NAMES: &[Argument] = &[integer("count"), string("field").multiple()];

const fn pairs(name: &'static str, option: &'static str) -> Argument {
    block(name, PAIRS).after(option)
}

const fn names(name: &'static str, option: &'static str) -> Argument {
    block(name, NAMES).after(option)
}

const LIFETIMES_WITH_PERSIST: &[Argument] = &[
    integer("seconds").after("EX"),
    integer("milliseconds").after("PX"),
    unix_time("unix-time-seconds").after("EXAT"),
    unix_time("unix-time-milliseconds").after("PXAT"),
    token("persist", "PERSIST"),
];

const LIFETIMES_WITH_KEEPTTL: &[Argument] = &[
    integer("seconds").after("EX"),
    integer("milliseconds").after("PX"),
    unix_time("unix-time-seconds").after("EXAT"),
    unix_time("unix-time-milliseconds").after("PXAT"),
    token("keepttl", "KEEPTTL"),
];

const fn doc(name: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("hash", name, "7.4.0", summary)
}
