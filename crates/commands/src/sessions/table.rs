//! Sessions: the rows, each with its documentation.

use super::{attach, call, hooks, info, open, requests, retry};
use crate::shared::reach;
use execution::command::{
    Command, Flags, Keys, at_least, definition, definition_on, exactly, key, keys_after, read, script, write,
};
use execution::docs::argument::{self as arg, Argument};

/// Commands that change the connection, or that run other commands: not allowed in scripts and MULTI.
const ALONE: Flags = Flags::NOSCRIPT.union(Flags::NO_MULTI).union(Flags::NO_TXN);

pub(super) const COMMANDS: &[Command] = &[
    write("session.ack", exactly(3), key(1).removed_from(), requests::ack)
        .fast()
        .own_doc("0.1.0", "Acknowledges the requests to a client up to one; returns how many were removed.")
        .complexity("O(N) for N requests removed")
        .arguments(&[SESSION, arg::integer("request-id")]),
    read("session.alive", exactly(2), key(1).examined(), open::alive)
        .fast()
        .flag(Flags::NO_TXN)
        .own_doc("0.1.0", "Renews a session; returns whether there is one.")
        .complexity("O(1)")
        .arguments(&[SESSION]),
    definition_on("session.attach", exactly(2), key(1).changed(), attach::attach)
        .flag(ALONE)
        .own_doc("0.1.0", "Sends the requests of a session to this connection, those that are pending first.")
        .complexity("O(N) for N pending requests")
        .arguments(&[SESSION]),
    script("session.call", at_least(6), key(1).changed().found_by(call::keys), call::call)
        .calls_behind(call::BEFORE_REQUEST)
        .categories(&["write"])
        .flag(ALONE)
        .flag(Flags::MAY_REPLICATE)
        .own_doc("0.1.0", "Runs a command once for its session and request id; a retry gets the same reply.")
        .complexity("That of the command")
        .arguments(&[
            SESSION,
            arg::integer("request-id"),
            arg::integer("lowest-id").after("LOW"),
            arg::string("command"),
            arg::string("arg").optional().multiple(),
        ]),
    definition_on("session.close", exactly(2), key(1).removed(), open::close)
        .flag(Flags::CALLS_HOOKS)
        .own_doc("0.1.0", "Removes a session with all it has, after the hook; returns whether there was one.")
        .complexity("O(1), and that of the hook")
        .arguments(&[SESSION]),
    read("session.detach", exactly(2), key(1).examined(), attach::detach)
        .fast()
        .flag(ALONE)
        .own_doc("0.1.0", "Sends the requests of a session no longer to this connection; returns whether it did.")
        .complexity("O(1)")
        .arguments(&[SESSION]),
    read("session.hasretry", exactly(2), Keys::WALK, retry::has_retry)
        .searches(reach::reads_sessions)
        .tips(&["nondeterministic_output"])
        .own_doc("0.1.0", "Returns whether SESSION.RETRY with this time would find a request; marks nothing.")
        .complexity("O(1)")
        .arguments(&[arg::integer("milliseconds")]),
    definition("session.hook", at_least(1), hooks::hook)
        .categories(&["admin", "dangerous"])
        .reads_if(hooks::only_reads)
        .own_doc("0.1.0", "Sets the function that is called when a session is opened or ends, or shows both.")
        .complexity("O(1)")
        .arguments(&[arg::block(
            "hook",
            &[
                arg::one_of("event", &[arg::token("created", "CREATED"), arg::token("expired", "EXPIRED")]),
                arg::one_of("action", &[arg::string("function"), arg::token("none", "NONE")]),
            ],
        )
        .optional()]),
    read("session.info", exactly(2), key(1).read(), info::info)
        .fast()
        .own_doc("0.1.0", "Returns what there is of a session.")
        .complexity("O(1)")
        .arguments(&[SESSION]),
    read("session.list", at_least(1), Keys::WALK, info::list)
        .searches(reach::reads_sessions)
        .tips(&["nondeterministic_output"])
        .own_doc("0.1.0", "Lists sessions, up to LIMIT (1000) at a time.")
        .complexity("O(N) for N keys looked at")
        .arguments(&[
            arg::string("prefix").after("PREFIX").optional(),
            arg::integer("cursor").after("CURSOR").optional(),
            arg::integer("limit").after("LIMIT").optional(),
        ]),
    definition_on("session.open", at_least(1), keys_after("ID", 1).created(), open::open)
        .searches(reach::opens)
        .flag(Flags::CALLS_HOOKS)
        .grows_memory()
        .tips(&["nondeterministic_output"])
        .own_doc("0.1.0", "Opens a session, or renews the one of that id; returns its id.")
        .complexity("O(1), and that of the hook")
        .arguments(&[
            arg::key("session", 0).after("ID").optional(),
            arg::integer("milliseconds").after("TTL").optional(),
            arg::block(
                "capabilities",
                &[
                    arg::integer("count"),
                    arg::block("capability", &[arg::string("name"), arg::string("value")]).multiple(),
                ],
            )
            .after("CAP")
            .optional(),
        ]),
    read("session.pending", at_least(2), key(1).read(), requests::pending)
        .flag(Flags::BLOCKING)
        .own_doc("0.1.0", "Returns pending requests to a client, up to LIMIT (1000); can wait for the next.")
        .complexity("O(N) for N requests returned")
        .arguments(&[
            SESSION,
            arg::integer("request-id").after("AFTER").optional(),
            arg::integer("limit").after("LIMIT").optional(),
            arg::integer("milliseconds").after("BLOCK").optional(),
        ]),
    write("session.push", exactly(3), key(1).added_to(), requests::push)
        .fast()
        .grows_memory()
        .own_doc("0.1.0", "Adds a request to the client of a session; returns its id.")
        .complexity("O(1)")
        .arguments(&[SESSION, arg::string("payload")]),
    definition("session.retry", at_least(2), retry::retry)
        .searches(reach::retries)
        .tips(&["nondeterministic_output"])
        .own_doc("0.1.0", "Returns and marks requests last sent before a time, oldest first, up to LIMIT (1000).")
        .complexity("O(log(N)+M) for N sessions and M requests returned; in slices, while other commands go on")
        .arguments(&[arg::integer("milliseconds"), arg::integer("limit").after("LIMIT").optional()]),
];

const SESSION: Argument = arg::key("session", 0);
