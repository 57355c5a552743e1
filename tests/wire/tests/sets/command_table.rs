//! COMMAND INFO, DOCS, LIST and GETKEYS of the set commands.

use std::collections::BTreeMap;

use wire::{Reply, Session, check};

#[test]
fn info_of_each_command() {
    check(
        r#"
        > COMMAND INFO sadd
        [["sadd", :-3, ~[+write, +denyoom, +fast], :1, :1, :1, ~[+"@write", +"@set", +"@fast"], [],
          [["flags", ~[+RW, +insert], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO srem
        [["srem", :-3, ~[+write, +fast], :1, :1, :1, ~[+"@write", +"@set", +"@fast"], [],
          [["flags", ~[+RW, +delete], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO spop
        [["spop", :-2, ~[+write, +fast], :1, :1, :1, ~[+"@write", +"@set", +"@fast"], ["nondeterministic_output"],
          [["flags", ~[+RW, +access, +delete], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO smove
        [["smove", :4, ~[+write, +fast], :1, :2, :1, ~[+"@write", +"@set", +"@fast"], [],
          [["flags", ~[+RW, +access, +delete], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]],
           ["flags", ~[+RW, +insert], "begin_search", ["type", "index", "spec", ["index", :2]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sismember
        [["sismember", :3, ~[+readonly, +fast], :1, :1, :1, ~[+"@read", +"@set", +"@fast"], [],
          [["flags", ~[+RO], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO smismember
        [["smismember", :-3, ~[+readonly, +fast], :1, :1, :1, ~[+"@read", +"@set", +"@fast"], [],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO scard
        [["scard", :2, ~[+readonly, +fast], :1, :1, :1, ~[+"@read", +"@set", +"@fast"], [],
          [["flags", ~[+RO], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO smembers
        [["smembers", :2, ~[+readonly], :1, :1, :1, ~[+"@read", +"@set", +"@slow"], ["nondeterministic_output_order"],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO srandmember
        [["srandmember", :-2, ~[+readonly], :1, :1, :1, ~[+"@read", +"@set", +"@slow"], ["nondeterministic_output"],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sinter
        [["sinter", :-2, ~[+readonly], :1, :-1, :1, ~[+"@read", +"@set", +"@slow"], ["nondeterministic_output_order"],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :-1, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sintercard
        [["sintercard", :-3, ~[+readonly, +movablekeys], :0, :0, :0, ~[+"@read", +"@set", +"@slow"], [],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "keynum", "spec", ["keynumidx", :0, "firstkey", :1, "keystep", :1]]]], []]]
        > COMMAND INFO sinterstore
        [["sinterstore", :-3, ~[+write, +denyoom], :1, :-1, :1, ~[+"@write", +"@set", +"@slow"], [],
          [["flags", ~[+RW | +OW, +update], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]],
           ["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :2]],
            "find_keys", ["type", "range", "spec", ["lastkey", :-1, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sunion
        [["sunion", :-2, ~[+readonly], :1, :-1, :1, ~[+"@read", +"@set", +"@slow"], ["nondeterministic_output_order"],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :-1, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sunionstore
        [["sunionstore", :-3, ~[+write, +denyoom], :1, :-1, :1, ~[+"@write", +"@set", +"@slow"], [],
          [["flags", ~[+OW, +update], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]],
           ["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :2]],
            "find_keys", ["type", "range", "spec", ["lastkey", :-1, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sdiff
        [["sdiff", :-2, ~[+readonly], :1, :-1, :1, ~[+"@read", +"@set", +"@slow"], ["nondeterministic_output_order"],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :-1, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sdiffstore
        [["sdiffstore", :-3, ~[+write, +denyoom], :1, :-1, :1, ~[+"@write", +"@set", +"@slow"], [],
          [["flags", ~[+OW, +update], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]],
           ["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :2]],
            "find_keys", ["type", "range", "spec", ["lastkey", :-1, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO sscan
        [["sscan", :-3, ~[+readonly], :1, :1, :1, ~[+"@read", +"@set", +"@slow"], ["nondeterministic_output"],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        "#,
    );
}

#[test]
fn the_category_has_these_commands() {
    let session = Session::start();
    let mut connection = session.connect();
    let reply = connection.run("COMMAND LIST FILTERBY ACLCAT set");
    let listed: Vec<&str> = reply.items().iter().map(Reply::text).collect();
    for docs in DOCS {
        assert!(listed.contains(&docs.name), "{} is not in the category: {listed:?}", docs.name);
    }
    // SORT is in it too; ZUNION and others that read sets are not.
    let others: Vec<&&str> = listed.iter().filter(|name| DOCS.iter().all(|docs| docs.name != **name)).collect();
    assert!(others.iter().all(|name| ["sort", "sort_ro"].contains(name)), "{others:?}");
}

#[test]
fn keys_are_found() {
    check(
        r#"
        > COMMAND GETKEYS SADD k a b
        ["k"]
        > COMMAND GETKEYS SREM k a
        ["k"]
        > COMMAND GETKEYS SPOP k 2
        ["k"]
        > COMMAND GETKEYS SMOVE from to a
        ["from", "to"]
        > COMMAND GETKEYS SISMEMBER k a
        ["k"]
        > COMMAND GETKEYS SMISMEMBER k a b
        ["k"]
        > COMMAND GETKEYS SCARD k
        ["k"]
        > COMMAND GETKEYS SMEMBERS k
        ["k"]
        > COMMAND GETKEYS SRANDMEMBER k -5
        ["k"]
        > COMMAND GETKEYS SINTER a b c
        ["a", "b", "c"]
        > COMMAND GETKEYS SUNION a
        ["a"]
        > COMMAND GETKEYS SDIFF a b a
        ["a", "b", "a"]
        > COMMAND GETKEYS SINTERSTORE to a b
        ["to", "a", "b"]
        > COMMAND GETKEYS SUNIONSTORE to a
        ["to", "a"]
        > COMMAND GETKEYS SDIFFSTORE to a b c
        ["to", "a", "b", "c"]
        > COMMAND GETKEYS SSCAN k 0 MATCH x
        ["k"]
        > COMMAND GETKEYS SINTERCARD 2 a b
        ["a", "b"]
        > COMMAND GETKEYS SINTERCARD 2 a b LIMIT 5
        ["a", "b"]
        > COMMAND GETKEYS SINTERCARD 1 a b
        ["a"]
        > COMMAND GETKEYS SINTERCARD 0 a
        -ERR Invalid arguments specified for command
        > COMMAND GETKEYS SINTERCARD 3 a b
        -ERR Invalid arguments specified for command
        > COMMAND GETKEYS SINTERCARD x a
        -ERR Invalid arguments specified for command
        > COMMAND GETKEYS SADD k
        -ERR Invalid number of arguments specified for command
        > COMMAND GETKEYS SINTERCARD 1
        -ERR Invalid number of arguments specified for command
        > COMMAND GETKEYSANDFLAGS SADD k a
        [["k", ~[+RW, +insert]]]
        > COMMAND GETKEYSANDFLAGS SREM k a
        [["k", ~[+RW, +delete]]]
        > COMMAND GETKEYSANDFLAGS SPOP k
        [["k", ~[+RW, +access, +delete]]]
        > COMMAND GETKEYSANDFLAGS SMOVE from to a
        [["from", ~[+RW, +access, +delete]], ["to", ~[+RW, +insert]]]
        > COMMAND GETKEYSANDFLAGS SISMEMBER k a
        [["k", ~[+RO]]]
        > COMMAND GETKEYSANDFLAGS SCARD k
        [["k", ~[+RO]]]
        > COMMAND GETKEYSANDFLAGS SMEMBERS k
        [["k", ~[+RO, +access]]]
        > COMMAND GETKEYSANDFLAGS SUNIONSTORE to a
        [["to", ~[+OW, +update]], ["a", ~[+RO, +access]]]
        > COMMAND GETKEYSANDFLAGS SINTERCARD 2 a b LIMIT 1
        [["a", ~[+RO, +access]], ["b", ~[+RO, +access]]]
        "#,
    );
}

/// What COMMAND DOCS replies for a command, without its sentences.
struct Docs {
    name: &'static str,
    since: &'static str,
    history: &'static [&'static str],
    /// `name:type:key spec TOKEN [flags] since version`, for each.
    arguments: &'static str,
}

const DOCS: &[Docs] = &[
    Docs { name: "sadd", since: "1.0.0", history: &["2.4.0"], arguments: "key:key:0; member:string [multiple]" },
    Docs { name: "srem", since: "1.0.0", history: &["2.4.0"], arguments: "key:key:0; member:string [multiple]" },
    Docs {
        name: "spop",
        since: "1.0.0",
        history: &["3.2.0"],
        arguments: "key:key:0; count:integer [optional] since 3.2.0",
    },
    Docs { name: "smove", since: "1.0.0", history: &[], arguments: "source:key:0; destination:key:1; member:string" },
    Docs { name: "sismember", since: "1.0.0", history: &[], arguments: "key:key:0; member:string" },
    Docs { name: "smismember", since: "6.2.0", history: &[], arguments: "key:key:0; member:string [multiple]" },
    Docs { name: "scard", since: "1.0.0", history: &[], arguments: "key:key:0" },
    Docs { name: "smembers", since: "1.0.0", history: &[], arguments: "key:key:0" },
    Docs {
        name: "srandmember",
        since: "1.0.0",
        history: &["2.6.0"],
        arguments: "key:key:0; count:integer [optional] since 2.6.0",
    },
    Docs { name: "sinter", since: "1.0.0", history: &[], arguments: "key:key:0 [multiple]" },
    Docs {
        name: "sintercard",
        since: "7.0.0",
        history: &[],
        arguments: "numkeys:integer; key:key:0 [multiple]; limit:integer LIMIT [optional]",
    },
    Docs { name: "sinterstore", since: "1.0.0", history: &[], arguments: "destination:key:0; key:key:1 [multiple]" },
    Docs { name: "sunion", since: "1.0.0", history: &[], arguments: "key:key:0 [multiple]" },
    Docs { name: "sunionstore", since: "1.0.0", history: &[], arguments: "destination:key:0; key:key:1 [multiple]" },
    Docs { name: "sdiff", since: "1.0.0", history: &[], arguments: "key:key:0 [multiple]" },
    Docs { name: "sdiffstore", since: "1.0.0", history: &[], arguments: "destination:key:0; key:key:1 [multiple]" },
    Docs {
        name: "sscan",
        since: "2.8.0",
        history: &[],
        arguments: "key:key:0; cursor:integer; pattern:pattern MATCH [optional]; count:integer COUNT [optional]",
    },
];

#[test]
fn docs_of_each_command() {
    let session = Session::start();
    let mut connection = session.connect();
    for docs in DOCS {
        let reply = connection.run(&format!("COMMAND DOCS {}", docs.name));
        assert_eq!(reply.items()[0].text(), docs.name);
        let facts = fields(&reply.items()[1]);
        assert_eq!(facts["since"].text(), docs.since, "{}", docs.name);
        assert_eq!(facts["group"].text(), "set", "{}", docs.name);
        assert!(!facts["summary"].bytes().is_empty() && !facts["complexity"].bytes().is_empty(), "{}", docs.name);
        let history: Vec<&str> = match facts.get("history") {
            Some(history) => history.items().iter().map(|change| change.items()[0].text()).collect(),
            None => Vec::new(),
        };
        assert_eq!(history, docs.history, "{}", docs.name);
        let arguments: Vec<String> = facts["arguments"].items().iter().map(describe).collect();
        assert_eq!(arguments.join("; "), docs.arguments, "{}", docs.name);
    }
}

/// An argument in the form of [`Docs::arguments`].
fn describe(argument: &Reply) -> String {
    let facts = fields(argument);
    let mut text = format!("{}:{}", facts["name"].text(), facts["type"].text());
    if let Some(spec) = facts.get("key_spec_index") {
        text.push_str(&format!(":{}", spec.integer()));
    }
    if let Some(token) = facts.get("token") {
        text.push_str(&format!(" {}", token.text()));
    }
    if let Some(flags) = facts.get("flags") {
        let flags: Vec<String> = flags.items().iter().map(|flag| flag.to_string().replace('+', "")).collect();
        text.push_str(&format!(" [{}]", flags.join(",")));
    }
    if let Some(since) = facts.get("since") {
        text.push_str(&format!(" since {}", since.text()));
    }
    text
}

/// A map as RESP2 sends it: an array of names and values.
fn fields(reply: &Reply) -> BTreeMap<&str, &Reply> {
    reply.items().chunks(2).map(|pair| (pair[0].text(), &pair[1])).collect()
}
