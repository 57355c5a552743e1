//! COMMAND: the table, told to clients.

use wire::{Reply, Session, check};

#[test]
fn info_of_a_command() {
    check(
        r#"
        > COMMAND INFO get
        [["get", :2, ~[+readonly, +fast], :1, :1, :1, ~[+"@read", +"@string", +"@fast"], [],
          [["flags", ~[+RO, +access], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :0, "keystep", :1, "limit", :0]]]], []]]
        > COMMAND INFO PING Nosuch HSET
        [["ping", :-1, ~[+fast], :0, :0, :0, ~[+"@fast", +"@connection"],
          ~["request_policy:all_shards", "response_policy:all_succeeded"], [], []],
         (nil),
         ["hset", :-4, ~[+write, +denyoom, +fast], :1, :1, :1, ~[+"@write", +"@hash", +"@fast"], [],
          [["flags", ~[+RW, +update], ...]], []]]
        > COMMAND INFO mset
        [["mset", :-3, ~[+write, +denyoom], :1, :-1, :2, ~[+"@write", +"@string", +"@slow"], *,
          [["flags", ~[+OW, +update], "begin_search", ["type", "index", "spec", ["index", :1]],
            "find_keys", ["type", "range", "spec", ["lastkey", :-1, "keystep", :2, "limit", :0]]]], []]]
        "#,
    );
}

#[test]
fn info_in_resp3_has_sets_and_maps() {
    check(
        r#"
        > HELLO 3
        *
        > COMMAND INFO get nosuch
        [["get", :2, set[+readonly, +fast], :1, :1, :1, set[+"@read", +"@string", +"@fast"], set[],
          set[{"flags" => set[+RO, +access],
               "begin_search" => {"type" => "index", "spec" => {"index" => :1}},
               "find_keys" => {"type" => "range", "spec" => {"lastkey" => :0, "keystep" => :1, "limit" => :0}}}],
          set[]], _]
        > COMMAND INFO client|list
        [["client|list", :-2, set[+admin, +noscript, +loading, +stale], :0, :0, :0,
          set[+"@admin", +"@slow", +"@dangerous", +"@connection"], set["nondeterministic_output"], set[], set[]]]
        "#,
    );
}

#[test]
fn a_container_has_its_subcommands() {
    let session = Session::start();
    let mut connection = session.connect();
    let reply = connection.run("COMMAND INFO client");
    let client = reply.items()[0].items();
    assert_eq!(client[0].text(), "client");
    assert_eq!(client[1].integer(), -2);
    let names: Vec<&str> = client[9].items().iter().map(|sub| sub.items()[0].text()).collect();
    for name in ["client|id", "client|kill", "client|list", "client|pause", "client|help"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // A subcommand is found by its full name, in any case, and nothing else is.
    let reply = connection.run("COMMAND INFO CLIENT|ID client|nosuch get|x client|id|x |");
    assert_eq!(reply.items()[0].items()[0].text(), "client|id");
    assert!(reply.items()[1..].iter().all(Reply::is_nil), "{reply}");
}

#[test]
fn all_commands_are_counted_and_told() {
    let session = Session::start();
    let mut connection = session.connect();
    let count = connection.run("COMMAND COUNT").integer() as usize;
    for command in ["COMMAND", "COMMAND INFO"] {
        let all = connection.run(command);
        assert_eq!(all.items().len(), count, "{command}");
        assert!(all.items().iter().all(|info| info.items().len() == 10), "{command}");
    }
    let docs = connection.run("COMMAND DOCS");
    assert_eq!(docs.items().len(), 2 * count);
    // The list has the subcommands too.
    let list = connection.run("COMMAND LIST");
    let top = list.items().iter().filter(|name| !name.text().contains('|')).count();
    assert_eq!(top, count);
    assert!(list.items().len() > count);
}

#[test]
fn the_list_can_be_filtered() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut names = |command: &str| {
        let reply = connection.run(command);
        let mut names: Vec<String> = reply.items().iter().map(|name| name.text().to_owned()).collect();
        names.sort();
        names
    };
    let bits = ["bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "getbit", "setbit"];
    assert_eq!(names("COMMAND LIST FILTERBY ACLCAT bitmap"), bits);
    assert_eq!(names("command list filterby aclcat BITMAP"), bits);
    assert_eq!(names("COMMAND LIST FILTERBY PATTERN hincr*"), ["hincrby", "hincrbyfloat"]);
    assert_eq!(names("COMMAND LIST FILTERBY PATTERN HINCRB?"), ["hincrby"]);
    assert_eq!(names("COMMAND LIST FILTERBY PATTERN object|e*"), ["object|encoding"]);
    assert_eq!(names("COMMAND LIST FILTERBY ACLCAT nosuch"), [""; 0]);
    assert_eq!(names("COMMAND LIST FILTERBY MODULE nosuch"), [""; 0]);
    session.check(
        "
        > COMMAND LIST nonsense
        -ERR syntax error
        > COMMAND LIST FILTERBY ACLCAT
        -ERR syntax error
        > COMMAND LIST FILTERBY nonsense x
        -ERR syntax error
        > COMMAND LIST FILTERBY PATTERN a more
        -ERR syntax error
        > COMMAND COUNT more
        -ERR wrong number of arguments for 'command|count' command
        ",
    );
}

#[test]
fn docs_of_a_command() {
    check(
        r#"
        > COMMAND DOCS nosuch
        []
        > COMMAND DOCS echo nosuch
        ["echo", ["summary", *, "since", "1.0.0", "group", "connection", "complexity", "O(1)", "arguments", [[...]]]]
        > HELLO 3
        *
        > COMMAND DOCS nosuch
        {}
        # needs redis >= 7.2
        > COMMAND DOCS GET
        {"get" => {"summary" => *, "since" => "1.0.0", "group" => "string", "complexity" => "O(1)",
           "arguments" => [{"name" => "key", "type" => "key", "display_text" => "key", "key_spec_index" => :0}]}}
        > COMMAND DOCS client|pause
        {"client|pause" => {"summary" => *, "since" => "3.0.0", "group" => "connection", "complexity" => "O(1)",
           "history" => set[["6.2.0", *]],
           "arguments" => [
             {"name" => "timeout", "type" => "integer", "display_text" => "timeout"},
             {"name" => "mode", "type" => "oneof", "since" => "6.2.0", "flags" => set[+optional],
              "arguments" => [
                {"name" => "write", "type" => "pure-token", "display_text" => "write", "token" => "WRITE"},
                {"name" => "all", "type" => "pure-token", "display_text" => "all", "token" => "ALL"}]}]}}
        > COMMAND DOCS quit
        {"quit" => {"summary" => *, "since" => "1.0.0", "group" => "connection", "complexity" => "O(1)",
           "doc_flags" => set[+deprecated], "deprecated_since" => "7.2.0", "replaced_by" => *}}
        "#,
    );
}

/// A command that Redis does not have is as old as a version of Holdfast, not of Redis.
#[test]
fn docs_of_a_command_of_our_own() {
    check(
        r#"
        # holdfast only
        > COMMAND DOCS cell.get
        ["cell.get", ["summary", *, "since", "0.1.0", "group", "cell", "complexity", "O(1)", "arguments", [[...]]]]
        > COMMAND DOCS hexpire
        ["hexpire", ["summary", *, "since", "7.4.0", "group", "hash", ...]]
        "#,
    );
}

#[test]
fn docs_of_a_container_have_its_subcommands() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("HELLO 3");
    let docs = connection.run("COMMAND DOCS client");
    let Reply::Map(entries) = docs else { panic!("{docs}") };
    let Reply::Map(fields) = &entries[0].1 else { panic!("no map of fields") };
    let (_, subcommands) = fields.iter().find(|(name, _)| name.text() == "subcommands").unwrap();
    let Reply::Map(subcommands) = subcommands else { panic!("no map of subcommands") };
    assert!(subcommands.iter().any(|(name, _)| name.text() == "client|kill"));
    assert!(subcommands.iter().all(|(_, docs)| matches!(docs, Reply::Map(_))));
}

#[test]
fn keys_are_found() {
    check(
        r#"
        COMMAND GETKEYS get a => ["a"]
        COMMAND GETKEYS MGET a b c => ["a", "b", "c"]
        COMMAND GETKEYS mset a 1 b 2 => ["a", "b"]
        COMMAND GETKEYS object encoding k => ["k"]
        COMMAND GETKEYS bitop and d a b => ["d", "a", "b"]
        COMMAND GETKEYS hset "k\x00" f v => ["k\x00"]
        COMMAND GETKEYSANDFLAGS mget a b => [["a", ~[+RO, +access]], ["b", ~[+RO, +access]]]
        COMMAND GETKEYSANDFLAGS bitop and d a => [["d", ~[+OW, +update]], ["a", ~[+RO, +access]]]
        COMMAND GETKEYSANDFLAGS incr a => [["a", ~[+RW, +access, +update]]]
        COMMAND GETKEYSANDFLAGS rename a b => [["a", ~[+RW, +access, +delete]], ["b", ~[+OW, +update]]]
        HELLO 3 => *
        COMMAND GETKEYSANDFLAGS hset a f v => [["a", set[+RW, +update]]]
        "#,
    );
}

#[test]
fn what_happens_to_a_key_may_depend_on_the_arguments() {
    check(
        "
        > COMMAND GETKEYSANDFLAGS set a v
        [[\"a\", ~[+OW, +update]]]
        > COMMAND GETKEYSANDFLAGS set a v EX 10 get
        [[\"a\", ~[+RW, +access, +update]]]
        > COMMAND GETKEYSANDFLAGS bitfield a GET u8 0
        [[\"a\", ~[+RO, +access]]]
        > COMMAND GETKEYSANDFLAGS bitfield a GET u8 0 INCRBY u8 0 1
        [[\"a\", ~[+RW, +access, +update]]]
        ",
    );
}

#[test]
fn requests_without_keys_are_refused() {
    check(
        "
        COMMAND GETKEYS nosuch a => -ERR Invalid command specified
        COMMAND GETKEYS object nosuch a => -ERR Invalid command specified
        COMMAND GETKEYS ping a => -ERR The command has no key arguments
        COMMAND GETKEYS client list => -ERR The command has no key arguments
        COMMAND GETKEYS get a b => -ERR Invalid number of arguments specified for command
        COMMAND GETKEYSANDFLAGS mset a => -ERR Invalid number of arguments specified for command
        COMMAND GETKEYS => -ERR wrong number of arguments for 'command|getkeys' command
        # needs redis >= 7.2
        COMMAND GETKEYS get => -ERR Invalid number of arguments specified for command
        COMMAND GETKEYS object => -ERR The command has no key arguments
        ",
    );
}
