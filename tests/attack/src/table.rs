//! The server's own command table, read over the wire: COMMAND for names, arity and flags, COMMAND DOCS for arguments.
//! Knows no command by name, except DEBUG, whose subcommands are found in its HELP alone.

use wire::Reply;

use crate::talk::Talk;

/// All that can be sent, a row for each command and subcommand.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Row {
    /// The command, and the subcommand if it is one.
    pub(crate) words: Vec<Vec<u8>>,
    /// As COMMAND tells it: negative means "at least".
    pub(crate) arity: i64,
    pub(crate) flags: Vec<String>,
    /// As COMMAND DOCS tells it: `hash`, `transactions`.
    pub(crate) group: String,
    pub(crate) arguments: Vec<Argument>,
}

#[derive(Clone, Default)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) optional: bool,
    pub(crate) multiple: bool,
    pub(crate) multiple_token: bool,
    /// The members of a group.
    pub(crate) members: Vec<Argument>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    Key,
    /// Also any kind that this file does not know yet.
    #[default]
    String,
    Integer,
    Double,
    Pattern,
    UnixTime,
    PureToken,
    OneOf,
    Block,
}

impl Table {
    pub(crate) fn read(talk: &mut Talk) -> Result<Table, String> {
        talk.must(&["HELLO", "3"])?;
        let commands = talk.must(&["COMMAND"])?;
        let docs = talk.must(&["COMMAND", "DOCS"])?;
        let mut rows = Vec::new();
        for command in items(&commands) {
            add_rows(command, &docs, &mut rows);
        }
        rows.extend(debug_rows(&talk.must(&["DEBUG", "HELP"])?));
        if rows.len() < 100 {
            return Err(format!("COMMAND describes only {} commands", rows.len()));
        }
        Ok(Table { rows })
    }
}

impl Row {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// `client|kill` as one reads it: `CLIENT KILL`.
    pub(crate) fn title(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| String::from_utf8_lossy(word).to_uppercase()).collect();
        words.join(" ")
    }
}

/// One command as COMMAND shows it: name, arity, flags, three positions, categories, tips, key specs, subcommands.
fn add_rows(command: &Reply, docs: &Reply, rows: &mut Vec<Row>) {
    let parts = items(command);
    let (Some(name), Some(Reply::Integer(arity)), Some(flags)) = (parts.first(), parts.get(1), parts.get(2)) else {
        return;
    };
    let name = text(name);
    // A subcommand's documentation is inside its command's.
    let doc = match name.split_once('|') {
        None => get(docs, &name),
        Some((container, _)) => get(docs, container).and_then(|doc| get(get(doc, "subcommands")?, &name)),
    };
    rows.push(Row {
        words: name.split('|').map(|word| word.as_bytes().to_vec()).collect(),
        arity: *arity,
        flags: items(flags).iter().map(text).collect(),
        group: doc.and_then(|doc| get(doc, "group")).map(text).unwrap_or_default(),
        arguments: doc.and_then(|doc| get(doc, "arguments")).map(arguments).unwrap_or_default(),
    });
    for subcommand in parts.get(9).map(items).unwrap_or_default() {
        add_rows(subcommand, docs, rows);
    }
}

fn arguments(documented: &Reply) -> Vec<Argument> {
    items(documented).iter().map(argument).collect()
}

fn argument(documented: &Reply) -> Argument {
    let string = |name: &str| get(documented, name).map(text);
    let flags: Vec<String> =
        get(documented, "flags").map(|flags| items(flags).iter().map(text).collect()).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|known| known == flag);
    Argument {
        name: string("name").unwrap_or_default(),
        kind: match string("type").as_deref() {
            Some("key") => Kind::Key,
            Some("integer") => Kind::Integer,
            Some("double") => Kind::Double,
            Some("pattern") => Kind::Pattern,
            Some("unix-time") => Kind::UnixTime,
            Some("pure-token") => Kind::PureToken,
            Some("oneof") => Kind::OneOf,
            Some("block") => Kind::Block,
            _ => Kind::String,
        },
        token: string("token").map(String::into_bytes),
        optional: has("optional"),
        multiple: has("multiple"),
        multiple_token: has("multiple_token"),
        members: get(documented, "arguments").map(arguments).unwrap_or_default(),
    }
}

/// DEBUG HELP has a line `NAME <argument> [<argument>]` for each subcommand, and sentences that begin with spaces.
fn debug_rows(help: &Reply) -> Vec<Row> {
    let lines = items(help).iter().map(text);
    let subcommands =
        lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()) && !line.contains("ubcommands"));
    let row = |line: String| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default().to_string();
        let argument = |word: &str| Argument {
            name: word.trim_matches(['<', '>', '[', ']']).to_string(),
            kind: if word.contains("key>") { Kind::Key } else { Kind::String },
            optional: word.starts_with('['),
            ..Argument::default()
        };
        Row {
            words: vec![b"debug".to_vec(), name.into_bytes()],
            arity: -2,
            flags: Vec::new(),
            group: "debug".into(),
            arguments: words.map(argument).collect(),
        }
    };
    subcommands.map(row).collect()
}

pub(crate) fn items(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) | Reply::Set(items) => items,
        _ => &[],
    }
}

pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) | Reply::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

fn get<'a>(map: &'a Reply, name: &str) -> Option<&'a Reply> {
    let Reply::Map(entries) = map else { return None };
    entries.iter().find(|(key, _)| text(key) == name).map(|(_, value)| value)
}
