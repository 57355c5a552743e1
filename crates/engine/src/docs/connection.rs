//! Connections, documented.

use super::CommandDoc;
use super::argument::{block, integer, one_of, string, token};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("auth", "1.0.0", "Proves who the client is, with a password and optionally a user name.")
        .complexity("O(N) for a user with N passwords")
        .history(&[("6.0.0", "A user name may come before the password.")])
        .arguments(&[string("username").since("6.0.0").optional(), string("password")]),
    doc("client", "2.4.0", "Groups the subcommands about connections.").complexity("Depends on the subcommand"),
    doc("client|caching", "6.0.0", "Decides whether the next command's keys are tracked, in opt-in and opt-out modes.")
        .complexity("O(1)")
        .arguments(&[one_of("mode", &[token("yes", "YES"), token("no", "NO")])]),
    doc("client|durability", "7.4.0", "Decides how safe a write of this connection is before it is acknowledged.")
        .complexity("O(1)")
        .arguments(&[one_of(
            "policy",
            &[token("always", "ALWAYS"), token("everysec", "EVERYSEC"), token("no", "NO"), token("default", "DEFAULT")],
        )]),
    doc("client|getname", "2.6.9", "Tells the name that was given to this connection.").complexity("O(1)"),
    doc("client|getredir", "6.0.0", "Tells which client receives this connection's invalidation messages.")
        .complexity("O(1)"),
    doc("client|help", "5.0.0", "Lists the subcommands of CLIENT, with a line on each.").complexity("O(1)"),
    doc("client|id", "5.0.0", "Tells this connection's number, which no other connection ever has.").complexity("O(1)"),
    doc("client|info", "6.2.0", "Describes this connection in one line.").complexity("O(1)"),
    doc("client|kill", "2.4.0", "Closes the connections that match an address or all of several filters.")
        .complexity("O(N) for N connections")
        .history(&[
            ("2.8.12", "Filters by name and value."),
            ("2.8.12", "New filter `ID`."),
            ("3.2.0", "`TYPE` knows `master`."),
            ("5.0.0", "`TYPE` knows `replica`; `slave` goes on working."),
            ("6.2.0", "New filter `LADDR`."),
            ("7.4.0", "New filter `MAXAGE`."),
        ])
        .arguments(&[one_of(
            "filter",
            &[
                string("old-format").shown_as("ip:port").deprecated_since("2.8.12"),
                one_of(
                    "new-format",
                    &[
                        integer("client-id").after("ID").since("2.8.12").optional(),
                        one_of(
                            "client-type",
                            &[
                                token("normal", "NORMAL"),
                                token("master", "MASTER").since("3.2.0"),
                                token("slave", "SLAVE"),
                                token("replica", "REPLICA").since("5.0.0"),
                                token("pubsub", "PUBSUB"),
                            ],
                        )
                        .after("TYPE")
                        .since("2.8.12")
                        .optional(),
                        string("username").after("USER").optional(),
                        string("addr").shown_as("ip:port").after("ADDR").optional(),
                        string("laddr").shown_as("ip:port").after("LADDR").since("6.2.0").optional(),
                        one_of("skipme", &[token("yes", "YES"), token("no", "NO")]).after("SKIPME").optional(),
                        integer("maxage").after("MAXAGE").since("7.4.0").optional(),
                    ],
                )
                .multiple(),
            ],
        )]),
    doc("client|list", "2.4.0", "Describes the open connections, a line each.")
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
        ])
        .arguments(&[
            one_of(
                "client-type",
                &[
                    token("normal", "NORMAL"),
                    token("master", "MASTER"),
                    token("replica", "REPLICA"),
                    token("pubsub", "PUBSUB"),
                ],
            )
            .after("TYPE")
            .since("5.0.0")
            .optional(),
            integer("client-id").after("ID").since("6.2.0").optional().multiple(),
        ]),
    doc("client|no-evict", "7.0.0", "Exempts this connection from being closed to free memory, or ends the exemption.")
        .complexity("O(1)")
        .arguments(&[one_of("enabled", &[token("on", "ON"), token("off", "OFF")])]),
    doc("client|no-touch", "7.2.0", "Decides whether this connection's commands count as use of the keys they read.")
        .complexity("O(1)")
        .arguments(&[one_of("enabled", &[token("on", "ON"), token("off", "OFF")])]),
    doc("client|pause", "3.0.0", "Holds back the commands of all clients for a number of milliseconds.")
        .complexity("O(1)")
        .history(&[("6.2.0", "New option `WRITE` holds back writes only.")])
        .arguments(&[
            integer("timeout"),
            one_of("mode", &[token("write", "WRITE"), token("all", "ALL")]).since("6.2.0").optional(),
        ]),
    doc("client|reply", "3.2.0", "Turns replies to this connection on or off, or skips the next one.")
        .complexity("O(1)")
        .arguments(&[one_of("action", &[token("on", "ON"), token("off", "OFF"), token("skip", "SKIP")])]),
    doc("client|setinfo", "7.2.0", "Records the name or version of the library that a client uses.")
        .complexity("O(1)")
        .arguments(&[one_of("attr", &[string("libname").after("LIB-NAME"), string("libver").after("LIB-VER")])]),
    doc("client|setname", "2.6.9", "Gives this connection a name for others to recognize it by.")
        .complexity("O(1)")
        .arguments(&[string("connection-name")]),
    doc("client|tracking", "6.0.0", "Turns messages about changes to keys that this connection has read on or off.")
        .complexity("O(1), though some options cost more")
        .arguments(&[
            one_of("status", &[token("on", "ON"), token("off", "OFF")]),
            integer("client-id").after("REDIRECT").optional(),
            string("prefix").after("PREFIX").optional().multiple().multiple_token(),
            token("bcast", "BCAST").optional(),
            token("optin", "OPTIN").optional(),
            token("optout", "OPTOUT").optional(),
            token("noloop", "NOLOOP").optional(),
        ]),
    doc("client|trackinginfo", "6.2.0", "Describes how key tracking is set up for this connection.").complexity("O(1)"),
    doc("client|unblock", "5.0.0", "Wakes a client that waits in a blocking command.")
        .complexity("O(log N) for N connections")
        .arguments(&[
            integer("client-id"),
            one_of("unblock-type", &[token("timeout", "TIMEOUT"), token("error", "ERROR")]).optional(),
        ]),
    doc("client|unpause", "6.2.0", "Ends a pause and lets held-back commands run.")
        .complexity("O(N) for N paused clients"),
    doc("echo", "1.0.0", "Sends its argument back.").complexity("O(1)").arguments(&[string("message")]),
    doc("hello", "6.0.0", "Opens the conversation: picks the protocol, and may authenticate and name the client.")
        .complexity("O(1)")
        .history(&[("6.2.0", "The version may be left out to ask about the connection as it is.")])
        .arguments(&[block(
            "arguments",
            &[
                integer("protover"),
                block("auth", &[string("username"), string("password")]).after("AUTH").optional(),
                string("clientname").after("SETNAME").optional(),
            ],
        )
        .optional()]),
    doc("ping", "1.0.0", "Answers PONG, or the given message, to show that the server is alive.")
        .complexity("O(1)")
        .arguments(&[string("message").optional()]),
    doc("quit", "1.0.0", "Closes this connection after its pending replies.")
        .complexity("O(1)")
        .deprecated("7.2.0", "closing the connection"),
    doc("reset", "6.2.0", "Brings this connection back to the state of a new one.").complexity("O(1)"),
    doc("select", "1.0.0", "Chooses the database that this connection works with.")
        .complexity("O(1)")
        .arguments(&[integer("index")]),
];

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("connection", name, since, summary)
}
