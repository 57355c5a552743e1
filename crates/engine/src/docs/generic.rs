//! Keys of any type, documented.

use super::CommandDoc;
use super::argument::{Argument, integer, key, one_of, pattern, string, token, unix_time};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("copy", "6.2.0", "Duplicates a value under another key, in the same or another database.")
        .complexity("O(N) for a value of N elements, O(1) for a string")
        .arguments(&[
            key("source", 0),
            key("destination", 1),
            integer("destination-db").after("DB").optional(),
            token("replace", "REPLACE").optional(),
        ]),
    doc("del", "1.0.0", "Removes keys and replies with how many there were.")
        .complexity("O(N) for N keys, plus O(M) for each collection of M elements")
        .arguments(&[key("key", 0).multiple()]),
    doc("dump", "2.6.0", "Serializes a value into bytes that RESTORE understands.")
        .complexity("O(N*M) for N elements of M bytes on average")
        .arguments(&[key("key", 0)]),
    doc("exists", "1.0.0", "Counts how many of the given keys exist.")
        .complexity("O(N) for N keys")
        .history(&[("3.0.3", "Takes several keys in one call.")])
        .arguments(&[key("key", 0).multiple()]),
    doc("expire", "1.0.0", "Lets a key expire after a number of seconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[key("key", 0), integer("seconds"), EXPIRY_CONDITION]),
    doc("expireat", "1.2.0", "Lets a key expire at a moment given in Unix seconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[key("key", 0), unix_time("unix-time-seconds"), EXPIRY_CONDITION]),
    doc("expiretime", "7.0.0", "Tells, in Unix seconds, at which moment a key expires.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("keys", "1.0.0", "Lists every key whose name matches a glob pattern.")
        .complexity("O(N) for a database of N keys")
        .arguments(&[pattern("pattern")]),
    doc("move", "1.0.0", "Transfers a key from the selected database to another one.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), integer("db")]),
    doc("object", "2.2.3", "Groups the subcommands that look at how a value is kept.")
        .complexity("Depends on the subcommand"),
    doc("object|encoding", "2.2.3", "Names the internal form in which a value is kept.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("object|freq", "4.0.0", "Tells how often a key is used, as a logarithmic counter.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("object|help", "6.2.0", "Lists the subcommands of OBJECT, with a line on each.").complexity("O(1)"),
    doc("object|idletime", "2.2.3", "Tells how many seconds ago a key was last used.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("object|refcount", "2.2.3", "Tells how many references there are to a value.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("persist", "2.2.0", "Removes a key's deadline.").complexity("O(1)").arguments(&[key("key", 0)]),
    doc("pexpire", "2.6.0", "Lets a key expire after a number of milliseconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[key("key", 0), integer("milliseconds"), EXPIRY_CONDITION]),
    doc("pexpireat", "2.6.0", "Lets a key expire at a moment given in Unix milliseconds.")
        .complexity("O(1)")
        .history(&[("7.0.0", "New options `NX`, `XX`, `GT` and `LT`.")])
        .arguments(&[key("key", 0), unix_time("unix-time-milliseconds"), EXPIRY_CONDITION]),
    doc("pexpiretime", "7.0.0", "Tells, in Unix milliseconds, at which moment a key expires.")
        .complexity("O(1)")
        .arguments(&[key("key", 0)]),
    doc("pttl", "2.6.0", "Tells how many milliseconds a key has left.")
        .complexity("O(1)")
        .history(&[("2.8.0", "Replies -2 if there is no such key.")])
        .arguments(&[key("key", 0)]),
    doc("randomkey", "1.0.0", "Picks a key of the selected database at random.").complexity("O(1)"),
    doc("rename", "1.0.0", "Gives a key another name, replacing any key that has it.")
        .complexity("O(1)")
        .arguments(&[key("key", 0), key("newkey", 1)]),
    doc("renamenx", "1.0.0", "Gives a key another name unless that name is taken.")
        .complexity("O(1)")
        .history(&[("3.2.0", "Equal source and destination names are no error any more.")])
        .arguments(&[key("key", 0), key("newkey", 1)]),
    doc("restore", "2.6.0", "Creates a key from bytes that DUMP produced.")
        .complexity("O(N*M) for N elements of M bytes, times log(N) for sorted sets")
        .history(&[
            ("3.0.0", "New option `REPLACE`."),
            ("5.0.0", "New option `ABSTTL`."),
            ("5.0.0", "New options `IDLETIME` and `FREQ`."),
        ])
        .arguments(&[
            key("key", 0),
            integer("ttl"),
            string("serialized-value"),
            token("replace", "REPLACE").since("3.0.0").optional(),
            token("absttl", "ABSTTL").since("5.0.0").optional(),
            integer("seconds").after("IDLETIME").since("5.0.0").optional(),
            integer("frequency").after("FREQ").since("5.0.0").optional(),
        ]),
    doc("scan", "2.8.0", "Walks through the keys of the selected database a few at a time, by means of a cursor.")
        .complexity("O(1) per call, O(N) for a full walk over N keys")
        .history(&[("6.0.0", "New option `TYPE`.")])
        .arguments(&[
            integer("cursor"),
            pattern("pattern").after("MATCH").optional(),
            integer("count").after("COUNT").optional(),
            string("type").after("TYPE").since("6.0.0").optional(),
        ]),
    doc("touch", "3.2.1", "Marks keys as just used and replies with how many of them exist.")
        .complexity("O(N) for N keys")
        .arguments(&[key("key", 0).multiple()]),
    doc("ttl", "1.0.0", "Tells how many seconds a key has left.")
        .complexity("O(1)")
        .history(&[("2.8.0", "Replies -2 if there is no such key.")])
        .arguments(&[key("key", 0)]),
    doc("type", "1.0.0", "Names the type of value a key holds.").complexity("O(1)").arguments(&[key("key", 0)]),
    doc("unlink", "4.0.0", "Removes keys at once and frees their memory later.")
        .complexity("O(1) per key, plus O(N) in the background for values of N allocations")
        .arguments(&[key("key", 0).multiple()]),
    doc("wait", "3.0.0", "Waits until replicas have received this connection's writes, or until a time limit.")
        .complexity("O(1)")
        .arguments(&[integer("numreplicas"), integer("timeout")]),
    doc("waitaof", "7.2.0", "Waits until this connection's writes are on disk, or until a time limit.")
        .complexity("O(1)")
        .arguments(&[integer("numlocal"), integer("numreplicas"), integer("timeout")]),
];

const EXPIRY_CONDITION: Argument =
    one_of("condition", &[token("nx", "NX"), token("xx", "XX"), token("gt", "GT"), token("lt", "LT")])
        .since("7.0.0")
        .optional();

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("generic", name, since, summary)
}
