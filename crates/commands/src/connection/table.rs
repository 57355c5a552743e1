//! Commands about the connection: the rows, each with its documentation: Redis's facts in our words.

use super::{basic, client, tracking};
use crate::shared::help::help;
use crate::shared::manual;
use crate::shared::reach;
use execution::command::{Command, DatabasesUsed, Flags, at_least, container, exactly, server};
use execution::docs::argument::{self as arg, Argument};
use smallvec::smallvec;

const NOT_TYPES: &[Argument] = &[
    arg::token("normal", "NORMAL"),
    arg::token("primary", "PRIMARY"),
    arg::token("replica", "REPLICA"),
    arg::token("pubsub", "PUBSUB"),
];

/// Filters of CLIENT KILL and CLIENT LIST that Valkey has and Redis has not.
const FILTERS_OF_VALKEY: &[Argument] = &[
    arg::string("name").after("NAME"),
    arg::integer("idle").after("IDLE"),
    arg::string("flags").after("FLAGS"),
    arg::string("lib-name").after("LIB-NAME"),
    arg::string("lib-ver").after("LIB-VER"),
    arg::integer("db").after("DB"),
    arg::string("ip").after("IP"),
    arg::integer("not-client-id").after("NOT-ID").multiple(),
    arg::one_of("not-client-type", NOT_TYPES).after("NOT-TYPE"),
    arg::string("not-username").after("NOT-USER"),
    arg::string("not-addr").shown_as("ip:port").after("NOT-ADDR"),
    arg::string("not-laddr").shown_as("ip:port").after("NOT-LADDR"),
    arg::string("not-name").after("NOT-NAME"),
    arg::string("not-flags").after("NOT-FLAGS"),
    arg::string("not-lib-name").after("NOT-LIB-NAME"),
    arg::string("not-lib-ver").after("NOT-LIB-VER"),
    arg::integer("not-db").after("NOT-DB"),
    arg::string("not-ip").after("NOT-IP"),
];

pub(super) const COMMANDS: &[Command] = &[
    server("auth", at_least(2), basic::auth)
        .flag(FIRST)
        .doc("1.0.0", "Proves who the client is, with a password and optionally a user name.")
        .complexity("O(N) for a user with N passwords")
        .history(&[("6.0.0", "A user name may come before the password.")])
        .arguments(&[arg::string("username").since("6.0.0").optional(), arg::string("password")]),
    server("echo", exactly(2), basic::echo)
        .flag(ANYTIME)
        .doc("1.0.0", "Sends its argument back.")
        .complexity("O(1)")
        .arguments(&[arg::string("message")]),
    server("hello", at_least(1), basic::hello)
        .flag(FIRST)
        .doc("6.0.0", "Opens the conversation: picks the protocol, and may authenticate and name the client.")
        .complexity("O(1)")
        .history(&[("6.2.0", "The version may be left out to ask about the connection as it is.")])
        .arguments(&[arg::block(
            "arguments",
            &[
                arg::integer("protover"),
                arg::block("auth", &[arg::string("username"), arg::string("password")]).after("AUTH").optional(),
                arg::string("clientname").after("SETNAME").optional(),
            ],
        )
        .optional()]),
    server("ping", at_least(1), basic::ping)
        .fast()
        .flag(Flags::WHILE_SUBSCRIBED)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("1.0.0", "Answers PONG, or the given message, to show that the server is alive.")
        .complexity("O(1)")
        .arguments(&[arg::string("message").optional()]),
    server("quit", at_least(1), basic::quit)
        .flag(FIRST)
        .flag(ALWAYS)
        .flag(Flags::ENDS_TXN)
        .doc("1.0.0", "Closes this connection after its pending replies.")
        .complexity("O(1)")
        .deprecated("7.2.0", "closing the connection"),
    server("reset", exactly(1), basic::reset)
        .flag(FIRST)
        .flag(ALWAYS)
        .flag(Flags::ENDS_TXN)
        .doc("6.2.0", "Brings this connection back to the state of a new one.")
        .complexity("O(1)"),
    server("select", exactly(2), basic::select)
        .uses_databases(DatabasesUsed::Named(|_| smallvec![1]))
        .flag(ANYTIME)
        .flag(Flags::NO_TXN)
        .doc("1.0.0", "Chooses the database that this connection works with.")
        .complexity("O(1)")
        .arguments(&[arg::integer("index")]),
    container("client")
        .doc("2.4.0", "Groups the subcommands about connections.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            server("caching", exactly(3), tracking::caching)
                .flag(OWN)
                .doc("6.0.0", "Decides whether the next command's keys are tracked, in opt-in and opt-out modes.")
                .complexity("O(1)")
                .arguments(&[arg::one_of("mode", &[arg::token("yes", "YES"), arg::token("no", "NO")])]),
            server("getname", exactly(2), client::getname)
                .flag(OWN)
                .doc("2.6.9", "Returns the name that was given to this connection.")
                .complexity("O(1)"),
            server("getredir", exactly(2), tracking::getredir)
                .flag(OWN)
                .doc("6.0.0", "Returns which client receives this connection's invalidation messages.")
                .complexity("O(1)"),
            help(manual::help)
                .flag(Flags::KEEPS_CACHING)
                .doc("5.0.0", "Lists the subcommands of CLIENT, with a line on each.")
                .complexity("O(1)"),
            server("id", exactly(2), client::id)
                .flag(OWN)
                .doc("5.0.0", "Returns this connection's number, which no other connection ever has.")
                .complexity("O(1)"),
            server("info", exactly(2), client::info)
                .flag(OWN)
                .tips(&["nondeterministic_output"])
                .doc("6.2.0", "Describes this connection in one line.")
                .complexity("O(1)"),
            server("kill", at_least(3), client::kill)
                .flag(OTHERS)
                .doc("2.4.0", "Closes the connections that match an address or all of several filters.")
                .complexity("O(N) for N connections")
                .history(&[
                    ("2.8.12", "Filters by name and value."),
                    ("2.8.12", "New filter `ID`."),
                    ("3.2.0", "`TYPE` knows `master`."),
                    ("5.0.0", "`TYPE` knows `replica`; `slave` goes on working."),
                    ("6.2.0", "New filter `LADDR`."),
                    ("7.4.0", "New filter `MAXAGE`."),
                    ("7.4.0", "`ID` takes several ids, and there are the filters of Valkey 9."),
                ])
                .arguments(&[arg::one_of(
                    "filter",
                    &[
                        arg::string("old-format").shown_as("ip:port").deprecated_since("2.8.12"),
                        arg::one_of(
                            "new-format",
                            &[
                                arg::integer("client-id").after("ID").since("2.8.12").optional().multiple(),
                                arg::one_of(
                                    "client-type",
                                    &[
                                        arg::token("normal", "NORMAL"),
                                        arg::token("master", "MASTER").since("3.2.0"),
                                        arg::token("slave", "SLAVE"),
                                        arg::token("replica", "REPLICA").since("5.0.0"),
                                        arg::token("pubsub", "PUBSUB"),
                                    ],
                                )
                                .after("TYPE")
                                .since("2.8.12")
                                .optional(),
                                arg::string("username").after("USER").optional(),
                                arg::string("addr").shown_as("ip:port").after("ADDR").optional(),
                                arg::string("laddr").shown_as("ip:port").after("LADDR").since("6.2.0").optional(),
                                arg::one_of("skipme", &[arg::token("yes", "YES"), arg::token("no", "NO")])
                                    .after("SKIPME")
                                    .optional(),
                                arg::integer("maxage").after("MAXAGE").since("7.4.0").optional(),
                                arg::one_of("filter-of-valkey", FILTERS_OF_VALKEY).optional(),
                            ],
                        )
                        .multiple(),
                    ],
                )]),
            server("list", at_least(2), client::list)
                .flag(OTHERS)
                .tips(&["nondeterministic_output"])
                .doc("2.4.0", "Describes the open connections, a line each.")
                .complexity("O(N) for N connections")
                .history(&[
                    ("2.8.12", "New field `id`."),
                    ("5.0.0", "New filter `TYPE`."),
                    ("6.0.0", "New field `user`."),
                    ("6.2.0", "New fields `argv-mem`, `tot-mem`, `laddr` and `redir`, and new filter `ID`."),
                    ("7.0.0", "New fields `resp`, `multi-mem`, `rbs` and `rbp`."),
                    ("7.0.3", "New field `ssub`."),
                    ("7.2.0", "New fields `lib-name` and `lib-ver`."),
                    ("7.4.0", "New field `watch`."),
                    ("8.0.0", "New field `io-thread`."),
                    ("8.0.0", "The filters of CLIENT KILL in Valkey 9."),
                ])
                .arguments(&[
                    arg::one_of(
                        "client-type",
                        &[
                            arg::token("normal", "NORMAL"),
                            arg::token("master", "MASTER"),
                            arg::token("replica", "REPLICA"),
                            arg::token("pubsub", "PUBSUB"),
                        ],
                    )
                    .after("TYPE")
                    .since("5.0.0")
                    .optional(),
                    arg::integer("client-id").after("ID").since("6.2.0").optional().multiple(),
                    arg::string("username").after("USER").optional(),
                    arg::string("addr").shown_as("ip:port").after("ADDR").optional(),
                    arg::string("laddr").shown_as("ip:port").after("LADDR").optional(),
                    arg::one_of("skipme", &[arg::token("yes", "YES"), arg::token("no", "NO")])
                        .after("SKIPME")
                        .optional(),
                    arg::integer("maxage").after("MAXAGE").optional(),
                    arg::one_of("filter-of-valkey", FILTERS_OF_VALKEY).optional().multiple(),
                ]),
            server("durability", exactly(3), client::durability)
                .flag(OWN)
                .own_doc("0.1.0", "Decides how safe a write of this connection is before it is acknowledged.")
                .complexity("O(1)")
                .arguments(&[arg::one_of(
                    "policy",
                    &[
                        arg::token("always", "ALWAYS"),
                        arg::token("everysec", "EVERYSEC"),
                        arg::token("no", "NO"),
                        arg::token("default", "DEFAULT"),
                    ],
                )]),
            server("import-source", exactly(3), client::import_source)
                .flag(OWN)
                .valkey_doc(
                    "8.1.0",
                    "0.1.0",
                    "Decides whether nothing has expired for this connection while `import-mode` is on.",
                )
                .complexity("O(1)")
                .arguments(&[arg::one_of("enabled", &[arg::token("on", "ON"), arg::token("off", "OFF")])]),
            server("no-evict", exactly(3), client::no_evict)
                .flag(OTHERS)
                .doc("7.0.0", "Exempts this connection from being closed to free memory, or ends the exemption.")
                .complexity("O(1)")
                .arguments(&[arg::one_of("enabled", &[arg::token("on", "ON"), arg::token("off", "OFF")])]),
            server("no-touch", exactly(3), client::no_touch)
                .flag(OWN)
                .doc("7.2.0", "Decides whether this connection's commands count as use of the keys they read.")
                .complexity("O(1)")
                .arguments(&[arg::one_of("enabled", &[arg::token("on", "ON"), arg::token("off", "OFF")])]),
            server("pause", at_least(3), client::pause)
                .flag(OTHERS)
                .doc("3.0.0", "Holds back the commands of all clients for a number of milliseconds.")
                .complexity("O(1)")
                .history(&[("6.2.0", "New option `WRITE` holds back writes only.")])
                .arguments(&[
                    arg::integer("timeout"),
                    arg::one_of("mode", &[arg::token("write", "WRITE"), arg::token("all", "ALL")])
                        .since("6.2.0")
                        .optional(),
                ]),
            server("reply", exactly(3), client::reply)
                .flag(OWN)
                .doc("3.2.0", "Turns replies to this connection on or off, or skips the next one.")
                .complexity("O(1)")
                .arguments(&[arg::one_of(
                    "action",
                    &[arg::token("on", "ON"), arg::token("off", "OFF"), arg::token("skip", "SKIP")],
                )]),
            server("setinfo", exactly(4), client::setinfo)
                .flag(OWN)
                .tips(ALL_NODES)
                .doc("7.2.0", "Records the name or version of the library that a client uses.")
                .complexity("O(1)")
                .arguments(&[arg::one_of(
                    "attr",
                    &[arg::string("libname").after("LIB-NAME"), arg::string("libver").after("LIB-VER")],
                )]),
            server("setname", exactly(3), client::setname)
                .flag(OWN)
                .tips(ALL_NODES)
                .doc("2.6.9", "Gives this connection a name for others to recognize it by.")
                .complexity("O(1)")
                .arguments(&[arg::string("connection-name")]),
            server("tracking", at_least(3), tracking::tracking)
                .searches(reach::tracks)
                .flag(OWN)
                .doc("6.0.0", "Turns messages about changes to keys that this connection has read on or off.")
                .complexity("O(1), though some options cost more")
                .arguments(&[
                    arg::one_of("status", &[arg::token("on", "ON"), arg::token("off", "OFF")]),
                    arg::integer("client-id").after("REDIRECT").optional(),
                    arg::string("prefix").after("PREFIX").optional().multiple().multiple_token(),
                    arg::token("bcast", "BCAST").optional(),
                    arg::token("optin", "OPTIN").optional(),
                    arg::token("optout", "OPTOUT").optional(),
                    arg::token("noloop", "NOLOOP").optional(),
                ]),
            server("trackinginfo", exactly(2), tracking::trackinginfo)
                .flag(OWN)
                .doc("6.2.0", "Describes how key tracking is set up for this connection.")
                .complexity("O(1)"),
            server("unblock", at_least(3), client::unblock)
                .flag(OTHERS)
                .doc("5.0.0", "Wakes a client that waits in a blocking command.")
                .complexity("O(log N) for N connections")
                .arguments(&[
                    arg::integer("client-id"),
                    arg::one_of("unblock-type", &[arg::token("timeout", "TIMEOUT"), arg::token("error", "ERROR")])
                        .optional(),
                ]),
            server("unpause", exactly(2), client::unpause)
                .flag(OTHERS)
                .doc("6.2.0", "Ends a pause and lets held-back commands run.")
                .complexity("O(N) for N paused clients"),
        ]),
];

/// Flags that every command here has: usable at any time.
const ANYTIME: Flags = Flags::LOADING.union(Flags::STALE).union(Flags::FAST);
/// Flags of commands that work in every state: before authentication, while loading or busy.
const FIRST: Flags = ANYTIME.union(Flags::NOSCRIPT).union(Flags::NO_AUTH).union(Flags::ALLOW_BUSY);
/// Usable whatever the connection is doing.
const ALWAYS: Flags = Flags::NOT_QUEUED.union(Flags::WHILE_SUBSCRIBED);
/// About the caller's own connection.
const OWN: Flags = Flags::KEEPS_CACHING.union(Flags::LOADING).union(Flags::STALE).union(Flags::NOSCRIPT);
/// About other connections.
const OTHERS: Flags = OWN.union(Flags::ADMIN);
const ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
