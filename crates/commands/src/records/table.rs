//! Records: the rows, each with its documentation: Redis's facts in our words.

use super::{change, claim, find, groups, indexes, sweep};
use crate::shared::reach;
use execution::command::{Command, Flags, Keys, at_least, catalogue, definition, exactly, key, overview, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write("hcas", at_least(4), key(1).changed(), change::hcas)
        .fast()
        .grows_memory()
        .unless(change::only_removes)
        .own_doc("0.1.0", "Changes fields of a hash if others hold what is expected, in one step.")
        .complexity("O(N) for N fields named")
        .arguments(&[
            arg::key("key", 0),
            arg::one_of(
                "exchange",
                &[
                    arg::block("swap", &[arg::string("field"), arg::string("expected"), arg::string("new")]),
                    arg::block(
                        "options",
                        &[
                            pairs("condition", "IF").optional(),
                            names("absent", "ABSENT").optional(),
                            pairs("set", "SET").optional(),
                            names("delete", "DEL").optional(),
                            STAMP,
                            arg::one_of("lifetime", LIFETIMES_WITH_PERSIST).optional(),
                            arg::token("withcurrent", "WITHCURRENT").optional(),
                        ],
                    ),
                ],
            ),
        ]),
    write("hput", at_least(6), key(1).changed(), change::hput)
        .fast()
        .grows_memory()
        .own_doc("0.1.0", "Writes fields of a hash and its deadline in one step, in place of the others if wanted.")
        .complexity("O(N) for N fields of the hash")
        .arguments(&[
            arg::key("key", 0),
            arg::token("replace", "REPLACE").optional(),
            arg::one_of("lifetime", LIFETIMES_WITH_KEEPTTL).optional(),
            STAMP,
            pairs("fields", "FIELDS"),
        ]),
    read("hfind", at_least(2), Keys::WALK, find::hfind)
        .searches(reach::finds)
        .tips(&["nondeterministic_output"])
        .own_doc("0.1.0", "Finds records under a prefix that pass filters, up to LIMIT (1000) at a time.")
        .complexity("O(N) for N keys looked at; with an index of a filtered field, for N records in its range")
        .arguments(&[
            arg::string("prefix"),
            arg::block("filter", FILTER).after("FILTER").optional().multiple().multiple_token(),
            arg::integer("cursor").after("CURSOR").optional(),
            arg::integer("limit").after("LIMIT").optional(),
            SHOWN,
            WITHTTL,
        ]),
    definition("claim", at_least(5), claim::claim)
        .searches(reach::claim)
        .flag(Flags::READS_INDEXES)
        .grows_memory()
        .flag(Flags::BLOCKING)
        .own_doc("0.1.0", "Takes the first records of an index that qualify, changes and returns them.")
        .complexity("O(log(N)+M) for N records and M that are looked at")
        .arguments(&[
            arg::block("indexes", &[arg::integer("count"), arg::string("index").multiple()]),
            arg::string("min").after("MIN").optional(),
            arg::string("max").after("MAX").optional(),
            arg::block("where", CONDITION).after("WHERE").optional().multiple().multiple_token(),
            pairs("set", "SET"),
            arg::string("counter").after("COUNTER").optional(),
            arg::block("limit", &[arg::integer("max"), pairs("else", "ELSE")]).after("UPTO").optional(),
            arg::integer("count").after("COUNT").optional(),
            arg::one_of("order", &[arg::token("fair", "FAIR"), arg::token("score", "SCORE")]).after("ORDER").optional(),
            arg::integer("milliseconds").after("BLOCK").optional(),
            SHOWN,
            WITHTTL,
        ]),
    definition("idx.create", at_least(6), indexes::create)
        .searches(reach::creates_index)
        .categories(&["admin", "dangerous"])
        .grows_memory()
        .own_doc("0.1.0", "Makes an index of records by a field, and keeps it from then on.")
        .complexity("O(N) for N keys, while other commands go on")
        .arguments(&[
            arg::string("name"),
            arg::token("ifabsent", "IFABSENT").optional(),
            arg::block("prefixes", &[arg::integer("count"), arg::string("prefix").multiple()]).after("PREFIX"),
            arg::string("field").after("FIELD"),
            arg::one_of(
                "condition",
                &[arg::block("only", CONDITION).after("ONLY"), arg::block("exclude", CONDITION).after("EXCLUDE")],
            )
            .optional(),
            arg::string("group").after("GROUP").optional(),
            arg::block("held", CONDITION).after("HELD").optional(),
            arg::token("stamp", "STAMP").optional(),
        ]),
    definition("idx.drop", exactly(2), indexes::drop_index)
        .searches(reach::drops_index)
        .categories(&["admin", "dangerous"])
        .own_doc("0.1.0", "Removes an index; its records stay.")
        .complexity("O(N) for N records")
        .arguments(&[arg::string("name")]),
    overview("idx.groups", at_least(2), groups::groups)
        .categories(&["read"])
        .searches(reach::reads_index)
        .flag(Flags::READS_INDEXES)
        .own_doc("0.1.0", "Lists the groups of an index: how many records wait and are held, and what limits apply.")
        .complexity("O(N) for N groups returned, at most 4096 at a time")
        .arguments(&[
            arg::string("name"),
            arg::integer("cursor").after("CURSOR").optional(),
            arg::integer("limit").after("LIMIT").optional(),
        ]),
    overview("idx.info", exactly(2), indexes::info)
        .categories(&["read"])
        .searches(reach::reads_index)
        .flag(Flags::READS_INDEXES)
        .own_doc("0.1.0", "Returns the definition and the size of an index.")
        .complexity("O(1)")
        .arguments(&[arg::string("name")]),
    definition("idx.limit", at_least(2), groups::set_limit)
        .reads_if(groups::only_lists)
        .searches(reach::drops_index)
        .categories(&["admin", "dangerous"])
        .grows_memory()
        .own_doc("0.1.0", "Limits how many records of a group are held, and how fast they are taken.")
        .complexity("O(1) for GROUP; O(N) for N groups in slices for EACH, ALL and RESET of everything")
        .arguments(&[
            arg::string("name"),
            arg::one_of(
                "scope",
                &[arg::string("group").after("GROUP"), arg::token("each", "EACH"), arg::token("all", "ALL")],
            )
            .optional(),
            arg::one_of("change", &[arg::block("attributes", ATTRIBUTES), arg::token("reset", "RESET")]).optional(),
        ]),
    catalogue("idx.list", exactly(1), indexes::list)
        .flag(Flags::NO_TXN)
        .own_doc("0.1.0", "Lists the indexes.")
        .complexity("O(N) for N indexes"),
    overview("idx.range", at_least(4), indexes::range)
        .categories(&["read"])
        .searches(reach::reads_index)
        .flag(Flags::READS_INDEXES)
        .own_doc("0.1.0", "Finds records by an index, those that pass filters, in the order of their scores.")
        .complexity("O(log(N)+M) for M records looked at")
        .arguments(&[
            arg::string("name"),
            arg::string("min"),
            arg::string("max"),
            arg::token("rev", "REV").optional(),
            arg::block("filter", FILTER).after("FILTER").optional().multiple().multiple_token(),
            arg::integer("limit").after("LIMIT").optional(),
            SHOWN,
            WITHTTL,
        ]),
    definition("sweep", at_least(7), sweep::sweep)
        .searches(reach::sweep)
        .flag(Flags::READS_INDEXES)
        .grows_memory()
        .own_doc("0.1.0", "Changes old records, each in the step in which it is judged.")
        .complexity("O(log(N)+M) for M records looked at")
        .arguments(&[
            arg::string("index"),
            arg::string("milliseconds").after("BEFORE"),
            arg::block("where", CONDITION).after("WHERE").optional(),
            arg::block("retry", &[arg::string("field"), arg::integer("max"), pairs("else", "ELSE")])
                .after("RETRY")
                .optional(),
            pairs("set", "SET"),
            arg::integer("limit").after("LIMIT").optional(),
            arg::string("channel").after("PUBLISH").optional(),
        ]),
];

const ATTRIBUTES: &[Argument] = &[
    arg::one_of("held", &[arg::integer("max"), arg::token("none", "NONE"), arg::token("default", "DEFAULT")])
        .after("HELD")
        .optional(),
    arg::one_of(
        "rate",
        &[
            arg::block(
                "numbers",
                &[arg::integer("takes"), arg::integer("milliseconds"), arg::integer("burst").after("BURST").optional()],
            ),
            arg::token("none", "NONE"),
            arg::token("default", "DEFAULT"),
        ],
    )
    .after("RATE")
    .optional(),
    arg::double("weight").after("WEIGHT").optional(),
    arg::one_of("pause", &[arg::token("yes", "YES"), arg::token("no", "NO")]).after("PAUSE").optional(),
];
const CONDITION: &[Argument] = &[arg::string("field"), arg::integer("count"), arg::string("value").multiple()];
const FILTER: &[Argument] = &[
    arg::string("field"),
    arg::one_of(
        "test",
        &[
            arg::string("value").after("EQ"),
            arg::string("value").after("NE"),
            arg::string("value").after("LT"),
            arg::string("value").after("LE"),
            arg::string("value").after("GT"),
            arg::string("value").after("GE"),
            arg::block("in", VALUES).after("IN"),
            arg::block("notin", VALUES).after("NOTIN"),
        ],
    ),
];
const VALUES: &[Argument] = &[arg::integer("count"), arg::string("value").multiple()];
const SHOWN: Argument = arg::one_of("shown", &[names("fields", "FIELDS"), arg::token("keys", "KEYS")]).optional();

const WITHTTL: Argument = arg::token("withttl", "WITHTTL").optional();

const STAMP: Argument = arg::block("stamp", STAMPS).after("STAMP").optional();
const STAMPS: &[Argument] =
    &[arg::integer("count"), arg::block("data", &[arg::string("field"), arg::integer("offset-ms")]).multiple()];
const PAIRS: &[Argument] =
    &[arg::integer("count"), arg::block("data", &[arg::string("field"), arg::string("value")]).multiple()];
const NAMES: &[Argument] = &[arg::integer("count"), arg::string("field").multiple()];

const fn pairs(name: &'static str, option: &'static str) -> Argument {
    arg::block(name, PAIRS).after(option)
}

const fn names(name: &'static str, option: &'static str) -> Argument {
    arg::block(name, NAMES).after(option)
}

const LIFETIMES_WITH_PERSIST: &[Argument] = &[
    arg::integer("seconds").after("EX"),
    arg::integer("milliseconds").after("PX"),
    arg::unix_time("unix-time-seconds").after("EXAT"),
    arg::unix_time("unix-time-milliseconds").after("PXAT"),
    arg::token("persist", "PERSIST"),
];

const LIFETIMES_WITH_KEEPTTL: &[Argument] = &[
    arg::integer("seconds").after("EX"),
    arg::integer("milliseconds").after("PX"),
    arg::unix_time("unix-time-seconds").after("EXAT"),
    arg::unix_time("unix-time-milliseconds").after("PXAT"),
    arg::token("keepttl", "KEEPTTL"),
];
