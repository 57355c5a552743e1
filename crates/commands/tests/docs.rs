//! What must hold for every row, and a few rows in full.

use commands::registry;
use execution::command::CommandRow;
use execution::docs::*;

fn rows() -> impl Iterator<Item = &'static CommandRow> {
    registry().rows().iter().copied()
}

fn row(name: &str) -> &'static CommandRow {
    registry().find_full(name.as_bytes()).unwrap()
}

fn each_argument(arguments: &[Argument], visit: &mut dyn FnMut(&Argument)) {
    for argument in arguments {
        visit(argument);
        each_argument(argument.arguments, visit);
    }
}

/// How COMMAND DOCS readers such as redis-cli would write the command.
fn syntax(row: &CommandRow) -> String {
    let mut words = vec![row.full_name.replace('|', " ").to_uppercase()];
    words.extend(row.command.docs.arguments.iter().map(argument_syntax));
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
fn summaries_are_one_sentence() {
    for row in rows() {
        let (name, summary) = (&row.full_name, row.command.docs.summary);
        assert!(summary.ends_with('.') && !summary.contains(". "), "{name}: {summary}");
        assert!(summary.starts_with(|c: char| c.is_ascii_uppercase()), "{name}: {summary}");
        assert!(summary.len() <= 90, "{name}: {summary}");
    }
}

#[test]
fn subcommands_are_in_the_group_of_their_container() {
    for container in rows() {
        for sub in &container.subcommands {
            assert_eq!(container.group(), sub.group(), "{}", sub.full_name);
        }
    }
}

#[test]
fn deprecated_commands_say_what_replaces_them() {
    for row in rows() {
        let (name, doc) = (&row.full_name, row.command.docs);
        let deprecated = doc.doc_flags.contains(&"deprecated");
        assert_eq!(deprecated, doc.deprecated_since.is_some(), "{name}");
        assert_eq!(deprecated, doc.replaced_by.is_some(), "{name}");
    }
}

#[test]
fn arguments_are_well_formed() {
    for row in rows() {
        let specs = row.command.keys.specs().len();
        each_argument(row.command.docs.arguments, &mut |argument| {
            let Argument { name, kind, .. } = *argument;
            let says = format!("{} {name}", row.full_name);
            assert_eq!(kind.is_group(), !argument.arguments.is_empty(), "{says}");
            // A pattern may lead to keys (SORT).
            let may_have_keys = [ArgumentKind::Key, ArgumentKind::Pattern].contains(&kind);
            assert!(kind != ArgumentKind::Key || argument.key_spec_index.is_some(), "{says}");
            assert!(may_have_keys || argument.key_spec_index.is_none(), "{says}");
            assert!(argument.key_spec_index.is_none_or(|index| index < specs), "{says}: there is no such key spec");
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
            "SET key value [<NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | \
             IFDNE ifdne-digest>] [GET] [<EX seconds | PX milliseconds | EXAT unix-time-seconds | \
             PXAT unix-time-milliseconds | KEEPTTL>]",
        ),
        ("expire", "EXPIRE key seconds [<NX | XX | GT | LT>]"),
        ("bitcount", "BITCOUNT key [start end [<BYTE | BIT>]]"),
        ("hpersist", "HPERSIST key FIELDS numfields field [...]"),
        ("bitop", "BITOP <AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [...]"),
        ("zadd", "ZADD key [<NX | XX>] [<GT | LT>] [CH] [INCR] score member [...]"),
        (
            "zunionstore",
            "ZUNIONSTORE destination numkeys key [...] [WEIGHTS weight [...]] [AGGREGATE <SUM | MIN | MAX>]",
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(syntax(row(name)), expected);
    }
}

#[test]
fn flags_and_kinds_are_spelled_as_on_the_wire() {
    let get = row("bitfield_ro").command.docs.arguments[1];
    assert_eq!(get.kind.name(), "block");
    assert_eq!(get.flags().collect::<Vec<_>>(), ["optional", "multiple", "multiple_token"]);
    let kill = row("client|kill").command.docs.arguments[0].arguments[0];
    assert_eq!((kill.name, kill.display_text), ("old-format", "ip:port"));
}
