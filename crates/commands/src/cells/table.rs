//! Cells: the rows, each with its documentation.

use super::{drop, fork, list, read, write};
use crate::shared::deadline::ex_or_px_from;
use crate::shared::reach;
use execution::command::{Command, Flags, Keys, at_least, definition, exactly, key, keys, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write("cell.cas", at_least(4), key(1).changed(), write::cas)
        .fast()
        .grows_memory()
        .relative_time(ex_or_px_from::<4>)
        .own_doc("0.1.0", "Writes a cell if its version is the expected one; NONE creates it.")
        .complexity("O(1)")
        .arguments(&[
            CELL,
            arg::one_of("expected", &[arg::integer("version"), arg::token("none", "NONE")]),
            arg::string("value"),
            arg::one_of("lifetime", LIFETIMES_WITH_PERSIST).optional(),
            arg::token("withcurrent", "WITHCURRENT").optional(),
        ]),
    write("cell.del", at_least(2), key(1).removed(), write::del)
        .fast()
        .own_doc("0.1.0", "Removes a cell with its history, if its version is the given one.")
        .complexity("O(1); large histories are freed in the background")
        .arguments(&[CELL, arg::integer("version").after("IF").optional()]),
    definition("cell.drop", exactly(2), drop::drop_cells)
        .searches(reach::drops)
        .own_doc("0.1.0", "Removes all cells under a prefix and returns how many there were.")
        .complexity("O(N) for N keys, while other commands go on")
        .arguments(&[arg::string("prefix")]),
    definition("cell.fork", exactly(3), fork::fork)
        .searches(reach::forks)
        .grows_memory()
        .own_doc("0.1.0", "Copies all cells under a prefix to another one, as they are at one instant.")
        .complexity("O(N) for N keys, while other commands go on")
        .arguments(&[arg::string("from-prefix"), arg::string("to-prefix")]),
    read("cell.get", exactly(2), key(1).read(), read::get)
        .fast()
        .flag(Flags::AT_INSTANT)
        .own_doc("0.1.0", "Returns the value of a cell.")
        .complexity("O(1)")
        .arguments(&[CELL]),
    read("cell.getv", at_least(2), key(1).read(), read::getv)
        .fast()
        .flag(Flags::BLOCKING)
        .flag(Flags::AT_INSTANT)
        .own_doc("0.1.0", "Returns value, version and time of a cell: now, in the past, or once it is newer.")
        .complexity("O(log(N)) for N versions")
        .arguments(&[
            CELL,
            arg::one_of(
                "which",
                &[
                    arg::integer("version").after("VERSION"),
                    arg::integer("unix-time-microseconds").after("ASOF"),
                    arg::block(
                        "after",
                        &[arg::integer("version"), arg::integer("milliseconds").after("BLOCK").optional()],
                    )
                    .after("AFTER"),
                ],
            )
            .optional(),
        ]),
    read("cell.history", at_least(2), key(1).read(), read::history)
        .flag(Flags::AT_INSTANT)
        .own_doc("0.1.0", "Returns versions of a cell, the newest first, up to LIMIT (1000).")
        .complexity("O(log(N)+M) for N versions and M returned")
        .arguments(&[
            CELL,
            arg::integer("limit").after("LIMIT").optional(),
            arg::integer("version").after("BEFORE").optional(),
        ]),
    write("cell.init", at_least(3), key(1).changed(), write::init)
        .fast()
        .grows_memory()
        .relative_time(ex_or_px_from::<3>)
        .own_doc("0.1.0", "Creates a cell unless it exists, and returns its version.")
        .complexity("O(1)")
        .arguments(&[CELL, arg::string("value"), arg::one_of("lifetime", LIFETIMES).optional()]),
    read("cell.list", at_least(1), Keys::WALK, list::list)
        .searches(reach::lists)
        .tips(&["nondeterministic_output"])
        .flag(Flags::AT_INSTANT)
        .own_doc("0.1.0", "Lists cells under a prefix, up to LIMIT (1000) at a time.")
        .complexity("O(N) for N keys looked at")
        .arguments(&[
            arg::string("prefix").after("PREFIX").optional(),
            arg::integer("cursor").after("CURSOR").optional(),
            arg::integer("limit").after("LIMIT").optional(),
        ]),
    read("cell.mget", at_least(2), keys(1, -1, 1).read(), read::mget)
        .fast()
        .flag(Flags::AT_INSTANT)
        .own_doc("0.1.0", "Returns value, version and time of each of several cells, all of one instant.")
        .complexity("O(N) for N cells")
        .arguments(&[CELL.multiple()]),
    write("cell.set", at_least(3), key(1).changed(), write::set)
        .fast()
        .grows_memory()
        .relative_time(ex_or_px_from::<3>)
        .own_doc("0.1.0", "Writes a cell whatever its version, and returns the new one.")
        .complexity("O(1)")
        .arguments(&[CELL, arg::string("value"), arg::one_of("lifetime", LIFETIMES_WITH_PERSIST).optional()]),
];

const CELL: Argument = arg::key("cell", 0);

const LIFETIMES: &[Argument] = &[arg::integer("seconds").after("EX"), arg::integer("milliseconds").after("PX")];

const LIFETIMES_WITH_PERSIST: &[Argument] =
    &[arg::integer("seconds").after("EX"), arg::integer("milliseconds").after("PX"), arg::token("persist", "PERSIST")];
