//! Streams: the rows, each with its documentation: Redis's facts in our words.

use super::{append, claim, groups, idempotency, info, pending, ranges, read, references, release, trim};
use crate::shared::help::help;
use crate::shared::manual;
use execution::command::{
    Command, Flags, KeyFlags, at_least, container, exactly, key, keys_after, read as reads, write,
};
use execution::docs::argument::{self as arg, Argument};

const UNPREDICTABLE: &[&str] = &["nondeterministic_output"];

pub(super) const COMMANDS: &[Command] = &[
    write("xadd", at_least(5), key(1).noted(TRIMS), append::xadd)
        .fast()
        .grows_memory()
        .tips(UNPREDICTABLE)
        .doc("5.0.0", "Appends an entry to a stream and returns its id; can trim the stream.")
        .complexity("O(1), and O(N) for N entries that are trimmed")
        .history(&[
            ("6.2.0", "Takes the options `NOMKSTREAM`, `MINID` and `LIMIT`."),
            ("7.0.0", "Takes an id of the form `<ms>-*`."),
            ("8.2.0", "Takes the options `KEEPREF`, `DELREF` and `ACKED`."),
            ("8.6.0", "Takes the options `IDMP` and `IDMPAUTO`."),
        ])
        .arguments(&[
            arg::key("key", 0),
            arg::token("nomkstream", "NOMKSTREAM").since("6.2.0").optional(),
            CONDITION.since("8.2.0").optional(),
            arg::one_of(
                "idmp",
                &[
                    arg::string("auto-producer-id").after("IDMPAUTO"),
                    arg::block("idmp-args", &[arg::string("producer-id"), arg::string("idempotent-id")]).after("IDMP"),
                ],
            )
            .since("8.6.0")
            .optional(),
            TRIM.optional(),
            arg::one_of("id_or_auto", &[arg::token("auto_id", "*"), arg::string("id")]),
            arg::block("field_value", &[arg::string("field"), arg::string("value")]).multiple(),
        ]),
    write("xcfgset", at_least(2), key(1), idempotency::xcfgset)
        .fast()
        .doc("8.6.0", "Sets how long and how many ids of producers a stream remembers.")
        .complexity("O(1), and O(N) for N ids that are forgotten")
        .arguments(&[
            arg::key("key", 0),
            arg::integer("duration").after("IDMP-DURATION").optional(),
            arg::integer("maxsize").after("IDMP-MAXSIZE").optional(),
        ]),
    reads("xlen", exactly(2), key(1).examined(), append::xlen)
        .fast()
        .doc("5.0.0", "Returns how many entries a stream has.")
        .complexity("O(1)")
        .arguments(&[arg::key("key", 0)]),
    reads("xrange", at_least(4), key(1), ranges::xrange)
        .doc("5.0.0", "Lists the entries of a stream from one id to another.")
        .complexity("O(N) for N entries that are returned")
        .history(&[("6.2.0", "Takes ids that are excluded.")])
        .arguments(&[arg::key("key", 0), arg::string("start"), arg::string("end"), COUNT]),
    reads("xrevrange", at_least(4), key(1), ranges::xrevrange)
        .doc("5.0.0", "Lists the entries of a stream from one id down to another.")
        .complexity("O(N) for N entries that are returned")
        .history(&[("6.2.0", "Takes ids that are excluded.")])
        .arguments(&[arg::key("key", 0), arg::string("end"), arg::string("start"), COUNT]),
    reads("xread", at_least(4), keys_after("STREAMS", 1).half().read().found_by(|request| read::keys(request, KeyFlags::READ)), read::xread)
        .flag(Flags::BLOCKING)
        .doc("5.0.0", "Returns the entries of streams behind given ids; can wait for some.")
        .complexity("O(N) for N entries that are returned")
        .arguments(&[COUNT, BLOCK, STREAMS]),
    write("xdel", at_least(3), key(1).removed_from(), trim::xdel)
        .fast()
        .doc("5.0.0", "Deletes entries of a stream by their ids and replies with how many there were.")
        .complexity("O(1) for each id")
        .arguments(&[arg::key("key", 0), arg::string("id").multiple()]),
    write("xdelex", at_least(5), key(1).removed_from(), references::xdelex)
        .fast()
        .doc("8.2.0", "Deletes entries by their ids, as far as groups allow, and says what became of each.")
        .complexity("O(1) for each id")
        .arguments(&[arg::key("key", 0), CONDITION.optional(), IDS]),
    write("xackdel", at_least(6), key(1).access(UPDATE_AND_DELETE), references::xackdel)
        .fast()
        .doc("8.2.0", "Acknowledges entries of a group and deletes them, as far as other groups allow.")
        .complexity("O(1) for each id")
        .arguments(&[arg::key("key", 0), arg::string("group"), CONDITION.optional(), IDS]),
    write("xtrim", at_least(4), key(1).removed_from(), trim::xtrim)
        .tips(UNPREDICTABLE)
        .doc("5.0.0", "Deletes the oldest entries of a stream, down to a length or up to an id.")
        .complexity("O(N) for N entries that are deleted")
        .history(&[
            ("6.2.0", "Takes the options `MINID` and `LIMIT`."),
            ("8.2.0", "Takes the options `KEEPREF`, `DELREF` and `ACKED`."),
        ])
        .arguments(&[arg::key("key", 0), TRIM, CONDITION.since("8.2.0").optional()]),
    write("xsetid", at_least(3), key(1), append::xsetid)
        .fast()
        .grows_memory()
        .doc("5.0.0", "Sets the last id of a stream, and what it counts.")
        .complexity("O(1)")
        .history(&[("7.0.0", "Takes the options `ENTRIESADDED` and `MAXDELETEDID`.")])
        .arguments(&[
            arg::key("key", 0),
            arg::string("last-id"),
            arg::integer("entries_added").after("ENTRIESADDED").since("7.0.0").optional(),
            arg::string("max_deleted_entry_id").after("MAXDELETEDID").since("7.0.0").optional(),
        ]),
    write("xreadgroup", at_least(7), keys_after("STREAMS", 4).half().read().found_by(|request| read::keys(request, KeyFlags::READ)), read::xreadgroup)
        .flag(Flags::BLOCKING)
        .doc("5.0.0", "Delivers new entries to a consumer of a group, or its pending ones; can wait for some.")
        .complexity("O(N) for N entries that are returned; with CLAIM once for each group also O(N) for N pending entries")
        .history(&[("8.4.0", "Takes the option `CLAIM`.")])
        .arguments(&[
            arg::block("group_consumer", &[arg::string("group"), arg::string("consumer")]).after("GROUP"),
            COUNT,
            BLOCK,
            arg::integer("min-idle-time").after("CLAIM").since("8.4.0").optional(),
            arg::token("noack", "NOACK").optional(),
            STREAMS,
        ]),
    write("xack", at_least(4), key(1), groups::xack)
        .fast()
        .doc("5.0.0", "Acknowledges entries of a group and replies with how many were pending.")
        .complexity("O(1) for each id")
        .arguments(&[arg::key("key", 0), arg::string("group"), arg::string("id").multiple()]),
    write("xnack", at_least(7), key(1), release::xnack)
        .fast()
        .doc("8.8.0", "Releases pending entries of a group, which other consumers can claim at once.")
        .complexity("O(log N) for each id, where N entries are pending")
        .arguments(&[
            arg::key("key", 0),
            arg::string("group"),
            arg::one_of(
                "mode",
                &[arg::token("silent", "SILENT"), arg::token("fail", "FAIL"), arg::token("fatal", "FATAL")],
            ),
            IDS,
            arg::integer("count").after("RETRYCOUNT").optional(),
            arg::token("force", "FORCE").optional(),
        ]),
    reads("xpending", at_least(3), key(1), pending::xpending)
        .tips(UNPREDICTABLE)
        .doc("5.0.0", "Tells which entries of a group are delivered and not acknowledged.")
        .complexity("O(N) for N entries that are returned, or looked at with IDLE; for the summary N consumers")
        .history(&[("6.2.0", "Takes the option `IDLE`, and ids that are excluded.")])
        .arguments(&[
            arg::key("key", 0),
            arg::string("group"),
            arg::block(
                "filters",
                &[
                    arg::integer("min-idle-time").after("IDLE").since("6.2.0").optional(),
                    arg::string("start"),
                    arg::string("end"),
                    arg::integer("count"),
                    arg::string("consumer").optional(),
                ],
            )
            .optional(),
        ]),
    write("xclaim", at_least(6), key(1), claim::xclaim)
        .fast()
        .tips(UNPREDICTABLE)
        .doc("5.0.0", "Makes a consumer the owner of pending entries that have been idle for long enough.")
        .complexity("O(log N) for each id, where N entries are pending")
        .arguments(&[
            arg::key("key", 0),
            arg::string("group"),
            arg::string("consumer"),
            arg::string("min-idle-time"),
            arg::string("id").multiple(),
            arg::integer("ms").after("IDLE").optional(),
            arg::unix_time("unix-time-milliseconds").after("TIME").optional(),
            arg::integer("count").after("RETRYCOUNT").optional(),
            arg::token("force", "FORCE").optional(),
            arg::token("justid", "JUSTID").optional(),
            arg::string("id").after("LASTID").optional(),
        ]),
    write("xautoclaim", at_least(6), key(1).removed_from(), claim::xautoclaim)
        .fast()
        .tips(UNPREDICTABLE)
        .doc("6.2.0", "Looks for idle pending entries from an id on and makes a consumer their owner.")
        .complexity("O(1) if COUNT is small")
        .history(&[("7.0.0", "Its reply also has the pending ids that are deleted, which it clears.")])
        .arguments(&[
            arg::key("key", 0),
            arg::string("group"),
            arg::string("consumer"),
            arg::string("min-idle-time"),
            arg::string("start"),
            COUNT,
            arg::token("justid", "JUSTID").optional(),
        ]),
    container("xgroup")
        .doc("5.0.0", "Groups the subcommands that make and change consumer groups.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            write("create", at_least(5), key(2).added_to(), groups::create)
                .grows_memory()
                .doc("5.0.0", "Makes a consumer group, which has read up to an id.")
                .complexity("O(1)")
                .history(&[("7.0.0", "Takes the option `ENTRIESREAD`.")])
                .arguments(&[
                    arg::key("key", 0),
                    arg::string("groupname"),
                    LAST,
                    arg::token("mkstream", "MKSTREAM").optional(),
                    ENTRIES_READ,
                ]),
            write("createconsumer", exactly(5), key(2).added_to(), groups::create_consumer)
                .grows_memory()
                .doc("6.2.0", "Makes a consumer in a group.")
                .complexity("O(1)")
                .arguments(&[arg::key("key", 0), arg::string("groupname"), arg::string("consumername")]),
            write("delconsumer", exactly(5), key(2).removed_from(), groups::delete_consumer)
                .doc("5.0.0", "Removes a consumer and replies with how many entries were pending for it.")
                .complexity("O(1)")
                .arguments(&[arg::key("key", 0), arg::string("groupname"), arg::string("consumername")]),
            write("destroy", exactly(4), key(2).removed_from(), groups::destroy)
                .doc("5.0.0", "Removes a consumer group.")
                .complexity("O(N) for N pending entries")
                .arguments(&[arg::key("key", 0), arg::string("groupname")]),
            help(manual::help).doc("5.0.0", "Lists the subcommands of XGROUP, with a line on each.").complexity("O(1)"),
            write("setid", at_least(5), key(2), groups::setid)
                .doc("5.0.0", "Sets up to which id a group has read.")
                .complexity("O(1)")
                .history(&[("7.0.0", "Takes the option `ENTRIESREAD`.")])
                .arguments(&[arg::key("key", 0), arg::string("groupname"), LAST, ENTRIES_READ]),
        ]),
    container("xinfo")
        .doc("5.0.0", "Groups the subcommands that look at streams and their groups.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            reads("consumers", exactly(4), key(2), info::consumers)
                .tips(UNPREDICTABLE)
                .doc("5.0.0", "Lists the consumers of a group.")
                .complexity("O(1)")
                .history(&[("7.2.0", "Its reply also has `inactive`.")])
                .arguments(&[arg::key("key", 0), arg::string("groupname")]),
            reads("groups", exactly(3), key(2), info::groups)
                .doc("5.0.0", "Lists the groups of a stream, with how far each has read.")
                .complexity("O(1)")
                .history(&[("7.0.0", "Its reply also has `entries-read` and `lag`.")])
                .arguments(&[arg::key("key", 0)]),
            help(manual::help).doc("5.0.0", "Lists the subcommands of XINFO, with a line on each.").complexity("O(1)"),
            reads("stream", at_least(3), key(2), info::stream)
                .doc("5.0.0", "Describes a stream; with FULL also its entries and groups.")
                .complexity("O(1)")
                .history(&[
                    ("6.0.0", "Takes the option `FULL`."),
                    (
                        "7.0.0",
                        "Its reply also has `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag`.",
                    ),
                    ("7.2.0", "Its reply also has `active-time`, and `seen-time` is when a consumer last asked for entries."),
                ])
                .arguments(&[
                    arg::key("key", 0),
                    arg::block("full", &[arg::integer("count").after("COUNT").optional()]).after("FULL").optional(),
                ]),
        ]),
];

const TRIMS: &str = "It may trim the stream, so it updates the key where it would only insert";

const COUNT: Argument = arg::integer("count").after("COUNT").optional();

const BLOCK: Argument = arg::integer("milliseconds").after("BLOCK").optional();

const STREAMS: Argument =
    arg::block("streams", &[arg::key("key", 0).multiple(), arg::string("id").multiple()]).after("STREAMS");

const LAST: Argument = arg::one_of("id", &[arg::string("id"), arg::token("new_id", "$")]);

const ENTRIES_READ: Argument = arg::integer("entries_read").after("ENTRIESREAD").optional();

const UPDATE_AND_DELETE: KeyFlags = KeyFlags::RW.union(KeyFlags::UPDATE).union(KeyFlags::DELETE);

const CONDITION: Argument = arg::one_of(
    "condition",
    &[arg::token("keepref", "KEEPREF"), arg::token("delref", "DELREF"), arg::token("acked", "ACKED")],
);

const IDS: Argument = arg::block("ids", &[arg::integer("numids"), arg::string("id").multiple()]).after("IDS");

const TRIM: Argument = arg::block(
    "trim",
    &[
        arg::one_of("strategy", &[arg::token("maxlen", "MAXLEN"), arg::token("minid", "MINID").since("6.2.0")]),
        arg::one_of("operator", &[arg::token("equal", "="), arg::token("approximately", "~")]).optional(),
        arg::string("threshold"),
        arg::integer("count").after("LIMIT").since("6.2.0").optional(),
    ],
);
