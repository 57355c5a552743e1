//! What must hold for every row, and a few rows in full.

use super::*;

fn each_argument(arguments: &[Argument], visit: &mut dyn FnMut(&Argument)) {
    for argument in arguments {
        visit(argument);
        each_argument(argument.arguments, visit);
    }
}

/// How COMMAND DOCS readers such as redis-cli would write the command.
fn syntax(doc: &CommandDoc) -> String {
    let mut words = vec![doc.name.replace('|', " ").to_uppercase()];
    words.extend(doc.arguments.iter().map(argument_syntax));
    words.join(" ")
}

fn argument_syntax(argument: &Argument) -> String {
    let members = |separator: &str| {
        let members: Vec<String> = argument.arguments.iter().map(argument_syntax).collect();
        members.join(separator)
    };
    let own = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::OneOf => format!("<{}>", members(" | ")),
        ArgumentKind::Block => members(" "),
        _ => argument.display_text.to_owned(),
    };
    let mut text = match argument.token {
        Some(token) => format!("{token} {own}").trim_end().to_owned(),
        None => own,
    };
    if argument.multiple {
        text = format!("{text} [...]");
    }
    if argument.optional {
        text = format!("[{text}]");
    }
    text
}

#[test]
fn all_tables_are_merged_in_order() {
    assert_eq!(DOCS.len(), TABLES.iter().map(|table| table.len()).sum());
    for pair in DOCS.windows(2) {
        assert!(pair[0].name < pair[1].name, "{} {}", pair[0].name, pair[1].name);
    }
}

#[test]
fn every_row_is_found_by_its_name() {
    for doc in DOCS {
        assert_eq!(find(doc.name).map(|found| found.name), Some(doc.name));
    }
    for missing in ["", "HSET", "nosuch", "config|", "zzz"] {
        assert!(find(missing).is_none(), "{missing}");
    }
}

#[test]
fn summaries_are_one_sentence() {
    for CommandDoc { name, summary, .. } in DOCS {
        assert!(summary.ends_with('.') && !summary.contains(". "), "{name}: {summary}");
        assert!(summary.starts_with(|c: char| c.is_ascii_uppercase()), "{name}: {summary}");
        assert!(summary.len() <= 90, "{name}: {summary}");
    }
}

#[test]
fn containers_have_their_subcommands_and_no_others() {
    let names = |container| subcommands(container).map(|doc| doc.name).collect::<Vec<_>>();
    let config = ["config|get", "config|help", "config|resetstat", "config|rewrite", "config|set"];
    assert_eq!(names("config"), config);
    assert!(names("hset").is_empty());
    for doc in DOCS.iter().filter(|doc| doc.name.contains('|')) {
        let (container, _) = doc.name.split_once('|').unwrap();
        let container = find(container).expect("a subcommand's container is documented");
        assert_eq!(container.group, doc.group, "{}", doc.name);
    }
}

#[test]
fn deprecated_commands_say_what_replaces_them() {
    for doc in DOCS {
        let deprecated = doc.doc_flags.contains(&"deprecated");
        assert_eq!(deprecated, doc.deprecated_since.is_some(), "{}", doc.name);
        assert_eq!(deprecated, doc.replaced_by.is_some(), "{}", doc.name);
    }
}

#[test]
fn arguments_are_well_formed() {
    for doc in DOCS {
        each_argument(doc.arguments, &mut |argument| {
            let Argument { name, kind, .. } = *argument;
            let says = format!("{} {name}", doc.name);
            assert_eq!(kind.is_group(), !argument.arguments.is_empty(), "{says}");
            assert_eq!(kind == ArgumentKind::Key, argument.key_spec_index.is_some(), "{says}");
            assert!(kind != ArgumentKind::PureToken || argument.token.is_some(), "{says}");
            assert!(!argument.multiple_token || argument.multiple, "{says}");
        });
    }
}

#[test]
fn syntax_reads_as_in_the_manual() {
    let cases = [
        ("ping", "PING [message]"),
        ("hset", "HSET key field value [...]"),
        ("config|set", "CONFIG SET parameter value [...]"),
        (
            "set",
            "SET key value [<NX | XX>] [GET] [<EX seconds | PX milliseconds | EXAT unix-time-seconds | \
             PXAT unix-time-milliseconds | KEEPTTL>]",
        ),
        ("expire", "EXPIRE key seconds [<NX | XX | GT | LT>]"),
        ("bitcount", "BITCOUNT key [start end [<BYTE | BIT>]]"),
        ("hpersist", "HPERSIST key FIELDS numfields field [...]"),
        ("bitop", "BITOP <AND | OR | XOR | NOT> destkey key [...]"),
        ("zadd", "ZADD key [<NX | XX>] [<GT | LT>] [CH] [INCR] score member [...]"),
        (
            "zunionstore",
            "ZUNIONSTORE destination numkeys key [...] [WEIGHTS weight [...]] [AGGREGATE <SUM | MIN | MAX>]",
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(syntax(find(name).unwrap()), expected);
    }
}

#[test]
fn flags_and_kinds_are_spelled_as_on_the_wire() {
    let get = find("bitfield_ro").unwrap().arguments[1];
    assert_eq!(get.kind.name(), "block");
    assert_eq!(get.flags().collect::<Vec<_>>(), ["optional", "multiple", "multiple_token"]);
    let kill = find("client|kill").unwrap().arguments[0].arguments[0];
    assert_eq!((kill.name, kill.display_text), ("old-format", "ip:port"));
}
