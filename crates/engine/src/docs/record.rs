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
    doc("hput", "Writes fields of a hash and its deadline in one step, in place of the others if wanted.")
        .complexity("O(N) for N fields of the hash")
        .arguments(&[
            key("key", 0),
            token("replace", "REPLACE").optional(),
            one_of("lifetime", LIFETIMES_WITH_KEEPTTL).optional(),
            pairs("fields", "FIELDS"),
        ]),
];

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
