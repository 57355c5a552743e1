//! Runs: the rows, each with its documentation.

use super::{append, events, list, snapshot};
use crate::shared::reach;
use execution::command::{Command, Flags, Keys, at_least, exactly, key, read, write};
use execution::docs::argument::{self as arg, Argument};

pub(super) const COMMANDS: &[Command] = &[
    write("run.append", at_least(5), key(1).changed(), append::append)
        .fast()
        .grows_memory()
        .own_doc("0.1.0", "Appends an event to a run, unless one of its idempotency key is there.")
        .complexity("O(1)")
        .arguments(&[
            RUN,
            arg::one_of("idempotency-key", &[arg::string("key"), arg::token("computed", "*")]),
            arg::string("type"),
            arg::string("data"),
            arg::integer("last-runseq").after("IFLAST").optional(),
            arg::string("event-id").after("EVENTID").optional(),
            arg::string("step-id").after("STEP").optional(),
            arg::string("engine-attempt-id").after("ENGINEATTEMPT").optional(),
            arg::string("logical-attempt-id").after("LOGICALATTEMPT").optional(),
            arg::string("emitted-at").after("EMITTEDAT").optional(),
            arg::string("adapter-version").after("ADAPTER").optional(),
            arg::string("engine-run-ref").after("REF").optional(),
            arg::string("signal-id").after("SIGNAL").optional(),
            arg::string("parent-event-id").after("PARENT").optional(),
            arg::string("plan-version").after("PLANVERSION").optional(),
            arg::block(
                "attributes",
                &[
                    arg::integer("count"),
                    arg::block("attribute", &[arg::string("name"), arg::string("value")]).multiple().optional(),
                ],
            )
            .after("ATTR")
            .optional(),
        ]),
    read("run.events", at_least(2), key(1).read(), events::events)
        .flag(Flags::BLOCKING)
        .own_doc("0.1.0", "Returns events of a run in order, up to LIMIT (1000); can wait for the next one.")
        .complexity("O(log(N)+M) for N events and M returned; in slices, while other commands go on")
        .arguments(&[
            RUN,
            arg::integer("runseq").after("AFTER").optional(),
            arg::integer("limit").after("LIMIT").optional(),
            arg::integer("milliseconds").after("BLOCK").optional(),
        ]),
    read("run.info", exactly(2), key(1).read(), events::info)
        .fast()
        .own_doc("0.1.0", "Returns the status of a run, how many events it has, and when the first and the last came.")
        .complexity("O(1)")
        .arguments(&[RUN]),
    read("run.list", at_least(1), Keys::WALK, list::list)
        .searches(reach::lists)
        .tips(&["nondeterministic_output"])
        .own_doc("0.1.0", "Lists runs under a prefix, of given statuses, up to LIMIT (1000) at a time.")
        .complexity("O(N) for N keys looked at; of statuses that are not final, for N such runs")
        .arguments(&[
            arg::string("prefix").after("PREFIX").optional(),
            arg::block("statuses", &[arg::integer("count"), arg::string("status").multiple()])
                .after("STATUS")
                .optional(),
            arg::integer("cursor").after("CURSOR").optional(),
            arg::integer("limit").after("LIMIT").optional(),
        ]),
    read("run.project", at_least(2), key(1).read(), snapshot::project)
        .own_doc("0.1.0", "Returns the snapshot of a run, replayed from its first event to the last or to UPTO.")
        .complexity("O(N) for N events; in slices, while other commands go on")
        .arguments(&[RUN, arg::integer("runseq").after("UPTO").optional()]),
    read("run.snapshot", exactly(2), key(1).read(), snapshot::snapshot)
        .own_doc("0.1.0", "Returns the snapshot of a run that is kept at every append: its status and its steps.")
        .complexity("O(N) for N steps; of many, in slices")
        .arguments(&[RUN]),
];

const RUN: Argument = arg::key("run", 0);
