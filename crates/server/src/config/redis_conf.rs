//! Reads a redis.conf by Redis's rules, and writes what Holdfast has of it as a holdfast.toml.

use super::redis_users::{User, password_rule, shown_word, user_of};
use engine::Settings;
use engine::acl::user::DEFAULT_USER;
use engine::settings::{Kind, Row};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;

/// Directives that Redis collects over several lines.
const COLLECTED: [&str; 2] = ["save", "client-output-buffer-limit"];

/// What Redis has without lines `save`.
const REDIS_SAVE: &str = "3600 1 300 100 60 10000";

const ALSO_STDERR: &str = "the server log goes to stderr, for systemd or a container to store";
const STARTED: &str = "the server stays in the foreground: systemd or a container starts it";
const FOLLOW: &str = "holdfast import --follow brings the data in; docs/cluster.md has servers that share a log";
const FOLLOW_AS: &str =
    "for a replica: holdfast import --follow takes user and password in its URL, or the password from REDISCLI_AUTH";
const NO_SOCKETS: &str = "Holdfast has no unix sockets: clients connect by TCP";
const OWN_FILES: &str = "the files in Holdfast's data directory have names of their own";

/// Directives that are no settings here, and what to do instead.
const ADVICE: &[(&str, &str)] = &[
    (
        "dir",
        "Redis's own files are there: give Holdfast a directory of its own, and bring the data in with holdfast import",
    ),
    ("include", "the file is not read: put its lines in the place of this one, and convert again"),
    ("logfile", ALSO_STDERR),
    ("syslog-enabled", ALSO_STDERR),
    ("syslog-ident", ALSO_STDERR),
    ("syslog-facility", ALSO_STDERR),
    ("rename-command", "take the command away from users instead, with a rule such as -config"),
    ("replicaof", FOLLOW),
    ("slaveof", FOLLOW),
    ("masteruser", FOLLOW_AS),
    ("masterauth", FOLLOW_AS),
    ("loadmodule", "there are no modules"),
    ("unixsocket", NO_SOCKETS),
    ("unixsocketperm", NO_SOCKETS),
    ("databases", "Holdfast has 16 databases, 0 to 15"),
    ("cluster-enabled", "Holdfast is no Redis Cluster: docs/cluster.md has servers that share a log"),
    ("daemonize", STARTED),
    ("supervised", STARTED),
    ("pidfile", STARTED),
    ("dbfilename", OWN_FILES),
    ("appendfilename", OWN_FILES),
    ("appenddirname", OWN_FILES),
    ("io-threads", "`threads` is the number of workers, which read and write too; without it, one a core"),
];

/// A holdfast.toml made of a redis.conf.
pub(crate) struct Converted {
    pub(crate) text: String,
    /// Directives that have a counterpart.
    pub(crate) converted: usize,
    /// Directives that have none, or only for a part. The text names them in comments.
    pub(crate) left_out: usize,
}

/// A line of a redis.conf.
struct Directive {
    line: usize,
    /// In lower case.
    name: String,
    values: Vec<Vec<u8>>,
}

/// A setting with the value that directives have given it.
struct Given {
    row: &'static Row,
    /// The directives that it comes from.
    directives: Vec<Directive>,
    value: String,
}

/// What a file has, in its order.
#[derive(Default)]
struct Contents {
    /// Settings that take each value, to see whether it is good.
    tried: Settings,
    settings: Vec<Given>,
    users: Vec<User>,
    /// The rule for a password of `requirepass` that no setting can hold.
    password: Option<String>,
    /// The names of all directives, converted or not. Aliases have the names of their rows.
    names: HashSet<String>,
    converted: usize,
    /// Lines that have no counterpart, with the reason.
    left_out: Vec<(String, Cow<'static, str>)>,
    /// The first line that may have given the default user a password or other rules, and is not converted.
    hides_default_user: Option<String>,
}

/// Converts a redis.conf. What cannot be converted is named in comments.
pub(crate) fn convert(file: &[u8], name: &str) -> Converted {
    let mut contents = Contents::default();
    for (number, line) in lines(file) {
        match resp::split_line(line) {
            Err(resp::UnbalancedQuotes) => contents.leave_out_torn(number, line),
            Ok(words) => contents.take(number, words),
        }
    }
    contents.close_default_user();
    contents.close_ports();
    contents.write(name)
}

/// Returns true if a file that is no TOML looks like a redis.conf: its first directive is one of Redis's, with values and
/// without an equals sign.
pub(super) fn is_redis_conf(file: &[u8]) -> bool {
    let first = lines(file).next().and_then(|(_, line)| resp::split_line(line).ok());
    let Some([name, value, ..]) = first.as_deref() else { return false };
    let name = String::from_utf8_lossy(name).to_lowercase();
    let is_known =
        Settings::find(name.as_bytes()).is_some() || name == "user" || ADVICE.iter().any(|(known, _)| *known == name);
    is_known && !value.starts_with(b"=")
}

/// The lines that are neither empty nor comments, with their numbers.
fn lines(file: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let trimmed = file.split(|byte| *byte == b'\n').map(|line| line.trim_ascii());
    trimmed.enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.is_empty() && line[0] != b'#')
}

impl Directive {
    /// As it stood, on one line.
    fn shown(&self) -> String {
        let mut text = format!("line {}: {}", self.line, self.name);
        for value in &self.values {
            let _ = write!(text, " {}", shown_word(value));
        }
        text
    }

    /// The values, separated by spaces; `None` if they are not UTF-8.
    fn value(&self) -> Option<String> {
        String::from_utf8(self.values.join(&b' ')).ok()
    }
}

impl Contents {
    fn take(&mut self, line: usize, words: Vec<Vec<u8>>) {
        let mut words = words.into_iter();
        let Some(name) = words.next() else { return };
        let name = name.to_ascii_lowercase().escape_ascii().to_string();
        let directive = Directive { line, name, values: words.collect() };
        let row = Settings::find(directive.name.as_bytes());
        self.names.insert(row.map_or(&*directive.name, |row| row.name).to_owned());
        if let Some((_, advice)) = ADVICE.iter().find(|(name, _)| *name == directive.name) {
            return self.leave_out(&directive, *advice);
        }
        match (&*directive.name, row) {
            ("user", _) => self.take_user(&directive),
            ("requirepass", Some(row)) => self.take_password(row, directive),
            _ if directive.values.is_empty() => self.leave_out(&directive, "it has no value"),
            (_, None) => self.leave_out(&directive, "Holdfast has nothing of the kind"),
            (_, Some(row)) => match directive.value() {
                None => self.leave_out(&directive, "its value is not UTF-8"),
                Some(_) if row.is_without_effect => self.leave_out(&directive, "Holdfast has nothing of the kind"),
                Some(value) => self.take_setting(row, directive, value),
            },
        }
    }

    fn leave_out(&mut self, directive: &Directive, why: impl Into<Cow<'static, str>>) {
        // A user of another name can be left out: nobody can log in as that user.
        let is_nameless = directive.name == "user" && directive.values.is_empty();
        if is_nameless || ["requirepass", "include"].contains(&&*directive.name) {
            self.hides_default_user.get_or_insert_with(|| directive.shown());
        }
        self.left_out.push((directive.shown(), why.into()));
    }

    /// Leaves out a line that could not be split into words.
    fn leave_out_torn(&mut self, number: usize, line: &[u8]) {
        let shown = format!("line {number}: {}", line.escape_ascii());
        let name = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let name: Vec<u8> = name.iter().filter(|byte| !b"\"'".contains(byte)).map(u8::to_ascii_lowercase).collect();
        if [&b"user"[..], b"requirepass", b"include"].contains(&&*name) {
            self.hides_default_user.get_or_insert_with(|| shown.clone());
        }
        self.left_out.push((shown, "unbalanced quotes".into()));
    }

    /// As in Redis, the last of several lines wins, or they are collected.
    fn take_setting(&mut self, row: &'static Row, directive: Directive, value: String) {
        // Lines that are good one by one are good together.
        if let Err(why) = self.tried.load(directive.name.as_bytes(), value.as_bytes()) {
            return self.leave_out(&directive, why);
        }
        self.converted += 1;
        let Some(known) = self.settings.iter_mut().find(|given| given.row.name == row.name) else {
            return self.settings.push(Given { row, directives: vec![directive], value });
        };
        if COLLECTED.contains(&row.name) && !value.is_empty() && !known.value.is_empty() {
            known.value.push(' ');
            known.value.push_str(&value);
        } else {
            known.value = value;
        }
        known.directives.push(directive);
    }

    /// Takes `requirepass`. A password that is not UTF-8 becomes a rule of the default user.
    fn take_password(&mut self, row: &'static Row, directive: Directive) {
        match (directive.value(), &*directive.values) {
            (Some(value), [_, ..]) => {
                self.password = None;
                self.take_setting(row, directive, value);
            }
            (None, [secret]) => {
                self.password = Some(password_rule(secret));
                self.settings.retain(|given| given.row.name != row.name);
                self.converted += 1;
            }
            _ => self.leave_out(&directive, "it is not one password"),
        }
    }

    fn take_user(&mut self, directive: &Directive) {
        match user_of(&directive.values) {
            Err(why) => self.leave_out(directive, why),
            Ok(user) => {
                match &user.incomplete {
                    Some(why) => self.leave_out(directive, why.clone()),
                    None => self.converted += 1,
                }
                self.users.push(user);
            }
        }
    }

    /// Declares the default user if its password is no setting. Turns the default user off if a line that is left out may
    /// say more about it.
    fn close_default_user(&mut self) {
        if self.users.iter().any(|user| user.name == DEFAULT_USER) {
            // The file declares it, and no other can: that wins over requirepass.
            return;
        }
        let name = DEFAULT_USER.to_owned();
        if let Some(line) = self.hides_default_user.take() {
            let why = format!("{line}  -- it may give the default user a password. Say here what this user may do.");
            self.users.push(User { name, rules: "off".to_owned(), off_because: Some(why), incomplete: None });
        } else if let Some(password) = &self.password {
            let rules = format!("on {password} ~* &* +@all");
            self.users.push(User { name, rules, off_because: None, incomplete: None });
        }
    }

    /// Redis opens no port with `port 0`, and Holdfast a random one: `bind` is left empty, so that the server does not start.
    fn close_ports(&mut self) {
        let is_zero = |name: &str| {
            let given = self.settings.iter().find(|given| given.row.name == name);
            given.map(|given| given.value.parse() == Ok(0))
        };
        if is_zero("port") != Some(true) || is_zero("tls-port") == Some(false) {
            return;
        }
        let (closed, kept) = std::mem::take(&mut self.settings)
            .into_iter()
            .partition::<Vec<_>, _>(|given| ["port", "bind"].contains(&given.row.name));
        self.settings = kept;
        let why = "Redis opens no TCP port, and Holdfast listens on nothing else: it does not start with this file until you \
                   write port and bind into it";
        for directive in closed.into_iter().flat_map(|given| given.directives) {
            self.converted -= 1;
            self.leave_out(&directive, why);
        }
        let row = Settings::find(b"bind").expect("it is a setting");
        self.settings.push(Given { row, directives: Vec::new(), value: String::new() });
        self.names.insert(row.name.to_owned());
    }

    /// Settings whose default in Redis is another than here and means more to those who connect, or to their data.
    fn differing_defaults(&self) -> Vec<(&'static str, String)> {
        let lacks = |name: &str| !self.names.contains(name);
        let mut differing = Vec::new();
        let mut add = |comment, name: &str, value: &str| differing.push((comment, format!("{name} = {value}")));
        if lacks("bind") && lacks("include") {
            add("Redis's default, which the file does not change. Holdfast's is 127.0.0.1.", "bind", "\"* -::*\"");
        }
        if lacks("appendonly") {
            add(
                "Holdfast's default: every write is in a journal. Redis's is no: writes since the last snapshot are lost.",
                "appendonly",
                "true",
            );
        }
        let has_no_journal =
            self.settings.iter().any(|given| given.row.name == "appendonly" && given.value.eq_ignore_ascii_case("no"));
        if lacks("save") && has_no_journal {
            add("Redis's default, which the file does not change.", "save", &toml_text(REDIS_SAVE));
        }
        differing
    }

    fn write(self, name: &str) -> Converted {
        let left_out = self.left_out.len();
        let name = name.escape_debug();
        let mut text = format!("# Made of {name} by holdfast config convert. docs/SETTINGS.md has all settings.\n\n");
        for given in &self.settings {
            let _ = writeln!(text, "{} = {}", given.row.name, toml_value(&given.row.kind, &given.value));
        }
        for (comment, line) in self.differing_defaults() {
            let _ = write!(text, "\n# {comment}\n{line}\n");
        }
        for User { name, rules, off_because, .. } in &self.users {
            let (name, rules) = (toml_text(name), toml_text(rules));
            text.push('\n');
            if let Some(why) = off_because {
                let _ = writeln!(text, "# Off: {why}");
            }
            let _ = write!(text, "[[user]]\nname = {name}\nrules = {rules}\n");
        }
        if left_out > 0 {
            text.push_str("\n# What has no counterpart, or not wholly:\n");
        }
        for (line, why) in &self.left_out {
            let _ = writeln!(text, "# {line}  -- {why}");
        }
        Converted { text, converted: self.converted, left_out }
    }
}

fn toml_value(kind: &Kind, value: &str) -> String {
    match (kind, value) {
        (Kind::Bool, "yes") => "true".to_owned(),
        (Kind::Bool, "no") => "false".to_owned(),
        (Kind::Integer { .. }, number) if number.parse::<i64>().is_ok_and(|parsed| parsed.to_string() == number) => {
            number.to_owned()
        }
        _ => toml_text(value),
    }
}

fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::NamedUsers;
    use engine::acl::rules;
    use engine::acl::user::hash;

    /// The directives of Debian's /etc/redis/redis.conf, in groups of the same fate.
    const DEBIAN: &str = "\
bind 127.0.0.1 -::1
protected-mode yes
port 6379
timeout 0
tcp-keepalive 300
loglevel notice
stop-writes-on-bgsave-error yes
acllog-max-len 128
disable-thp yes
appendonly no
appendfsync everysec
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
slowlog-log-slower-than 10000
notify-keyspace-events \"\"
hash-max-listpack-value 64
list-max-listpack-size -2
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
tcp-backlog 511
daemonize yes
logfile /var/log/redis/redis-server.log
proc-title-template \"{title} {listen-addr} {server-mode}\"
dir /var/lib/redis
jemalloc-bg-thread yes
";

    /// The settings that a converted file gives, as CONFIG GET prints them.
    fn loaded(converted: &Converted) -> Settings {
        let table: toml::Table = converted.text.parse().unwrap_or_else(|error| panic!("{error}\n{}", converted.text));
        let settings = Settings::new();
        for (name, value) in table.iter().filter(|(_, value)| !value.is_array()) {
            let text = super::super::sources::as_text(value).expect("a plain value");
            settings.load(name.as_bytes(), text.as_bytes()).unwrap_or_else(|why| panic!("{name} = {text}: {why}"));
        }
        settings
    }

    fn value(settings: &Settings, name: &str) -> String {
        let mut found = Vec::new();
        settings.get(&[name.as_bytes()], &mut found);
        found.pop().expect("the setting exists").1
    }

    #[test]
    fn debians_file_is_converted() {
        let converted = convert(DEBIAN.as_bytes(), "/etc/redis/redis.conf");
        assert_eq!((converted.converted, converted.left_out), (20, 6), "{}", converted.text);
        let settings = loaded(&converted);
        for (name, expected) in [
            ("bind", "127.0.0.1 -::1"),
            ("port", "6379"),
            ("appendonly", "no"),
            ("auto-aof-rewrite-min-size", "67108864"),
            ("notify-keyspace-events", ""),
            ("list-max-listpack-size", "-2"),
            ("client-output-buffer-limit", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
        ] {
            assert_eq!(value(&settings, name), expected, "{name}");
        }
        for left_out in ["tcp-backlog 511", "\"{title} {listen-addr} {server-mode}\"", "dir /var/lib/redis"] {
            assert!(converted.text.contains(left_out), "{left_out} is not in {}", converted.text);
        }
    }

    #[test]
    fn lines_are_read_as_redis_reads_them() {
        let file = concat!(
            "  # a comment\r\n\tPORT\t 7777 \r\n",
            "requirepass \"a b\\x41\\n\\\"#\"\n",
            "masterauth 'it''s'\n",
            "save 900 1 300 10\nsave \"\"\nsave 60 10000\nsave 30 5\n",
            "maxmemory 1gb\nmaxmemory 2gb\n",
            "user alice on >secret ~jobs:* +@read (+get ~other:*)\n",
            "user bob on \">two words\"\n",
            "user carol +@nosuch\n",
            "rename-command CONFIG \"\"\n",
            "include /etc/redis/local.conf\n",
            "timeout\n",
            "hash-max-listpack-entries many\n",
            "dbfilename \"torn\n",
            "nosuch 1\n",
            "proto-max-bulk-len \"\\xff\"\n",
        );
        let converted = convert(file.as_bytes(), "r.conf");
        let settings = loaded(&converted);
        assert_eq!(value(&settings, "port"), "7777");
        assert_eq!(value(&settings, "requirepass"), "a bA\n\"#");
        assert_eq!(value(&settings, "save"), "60 10000 30 5");
        assert_eq!(value(&settings, "maxmemory"), "2147483648");
        let users = "[[user]]\nname = \"alice\"\nrules = \"on >secret ~jobs:* +@read (+get ~other:*)\"\n";
        assert!(converted.text.contains(users), "{}", converted.text);
        for (line, why) in [
            ("line 4: masterauth", "unbalanced quotes"),
            ("line 13: user carol +@nosuch", "without the rules +@nosuch"),
            ("line 14: rename-command CONFIG \"\"", "-config"),
            ("line 15: include /etc/redis/local.conf", "convert again"),
            ("line 16: timeout", "no value"),
            ("line 17: hash-max-listpack-entries many", "integer"),
            ("line 18: dbfilename \\\"torn", "unbalanced quotes"),
            ("line 19: nosuch 1", "nothing of the kind"),
            ("line 20: proto-max-bulk-len \"\\xff\"", "not UTF-8"),
        ] {
            let found = converted.text.lines().find(|text| text.starts_with(&format!("# {line}")));
            assert!(found.is_some_and(|found| found.contains(why)), "{line}: {found:?} in {}", converted.text);
        }
        assert_eq!(converted.left_out, 9, "{}", converted.text);
    }

    /// The names and rules of users in a converted file.
    fn declared(converted: &Converted) -> Vec<(String, String)> {
        let table: toml::Table = converted.text.parse().unwrap_or_else(|error| panic!("{error}\n{}", converted.text));
        let users = table.get("user").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |user: &toml::Value, key: &str| user[key].as_str().expect("a string").to_owned();
        users.iter().map(|user| (text(user, "name"), text(user, "rules"))).collect()
    }

    /// The users of a server.
    fn named(declared: &[(String, String)]) -> NamedUsers {
        let users = declared.iter().map(|(name, rules)| (name.clone(), &**name, &**rules));
        engine::parse_declared_users(users, false).unwrap_or_else(|why| panic!("{why}: {declared:?}"))
    }

    /// The users that a server has that starts with a converted file, and whether anybody may come in without a password.
    fn users(converted: &Converted) -> (NamedUsers, bool) {
        let named = named(&declared(converted));
        let is_open = match named.get(&b"default"[..]) {
            Some(default) => default.is_on && default.no_password,
            None => value(&loaded(converted), "requirepass").is_empty(),
        };
        (named, is_open)
    }

    /// Converts a file that a server of Redis would be closed with.
    fn closed(file: &[u8]) -> (Converted, NamedUsers) {
        let converted = convert(&[b"bind 0.0.0.0\nprotected-mode no\n", file].concat(), "r.conf");
        let (named, is_open) = users(&converted);
        assert!(!is_open, "{}: {}", file.escape_ascii(), converted.text);
        (converted, named)
    }

    #[test]
    fn rules_for_commands_that_are_unknown_are_dropped_alone() {
        for (rules, kept, dropped) in [
            ("on >secret ~* &* +@all -migrate -restore-asking", "on >secret ~* &* +@all", "-migrate, -restore-asking"),
            ("on >secret ~* +@read +nosuch +@nosuch", "on >secret ~* +@read", "+nosuch, +@nosuch"),
            ("on >secret +config|nosuch -config|nosuch", "on >secret", "+config|nosuch, -config|nosuch"),
            ("on >secret ~a (+get -migrate ~x) (-nosuch)", "on >secret ~a (+get ~x) ()", "-migrate, -nosuch"),
            ("on >secret +get \"~a b\" \"%R~\\xff\" ~c", "on >secret +get ~c", "\"~a b\", \"%R~\\xff\""),
        ] {
            for name in ["default", "alice"] {
                let file = format!("requirepass x\nuser {name} {rules}\n");
                let (converted, named) = closed(file.as_bytes());
                let expected = format!("\n[[user]]\nname = \"{name}\"\nrules = {}\n", toml_text(kept));
                assert!(converted.text.contains(&expected), "{file}: {}", converted.text);
                let comment = converted.text.lines().find(|line| line.starts_with(&format!("# line 4: user {name} ")));
                assert!(comment.is_some_and(|comment| comment.contains(dropped)), "{file}: {}", converted.text);
                assert_eq!((converted.left_out, named.len()), (1, 1), "{file}: {}", converted.text);
            }
        }
    }

    /// If a category of Redis's were unknown, a rule that takes it away would be dropped.
    #[test]
    fn all_categories_of_redis_are_known() {
        engine::command::registry();
        let categories = "keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub admin \
                          fast slow blocking dangerous connection transaction scripting";
        for category in categories.split_whitespace() {
            assert!(engine::acl::command_set::find_category(category.as_bytes()).is_some(), "{category}");
        }
    }

    #[test]
    fn a_password_that_is_no_word_is_given_by_its_hash() {
        let hash = |secret: &[u8]| rules::shown_hash(&hash(secret));
        for (line, rules) in [
            ("user default on \">p w\" ~* &* +@all", format!("on #{} ~* &* +@all", hash(b"p w"))),
            ("user default on \">\\xff\" \">a b\" \"<a b\"", format!("on #{} #{1} !{1}", hash(b"\xff"), hash(b"a b"))),
            ("requirepass \"\\xff\"", format!("on #{} ~* &* +@all", hash(b"\xff"))),
            ("requirepass first\nrequirepass \"\\xff\"", format!("on #{} ~* &* +@all", hash(b"\xff"))),
        ] {
            let (converted, named) = closed(line.as_bytes());
            let expected = format!("[[user]]\nname = \"default\"\nrules = \"{rules}\"\n");
            assert!(converted.text.contains(&expected), "{line}: {}", converted.text);
            assert_eq!((converted.left_out, named.len()), (0, 1), "{line}: {}", converted.text);
        }
        let last_wins = convert(b"requirepass \"\\xff\"\nrequirepass last\n", "r.conf");
        assert_eq!(value(&loaded(&last_wins), "requirepass"), "last");
        assert!(!last_wins.text.contains("[[user]]"), "{}", last_wins.text);
        // A user of the file wins over requirepass, as in Redis.
        let (converted, _) = closed(b"requirepass \"\\xff\"\nuser default on >x +get ~*\n");
        assert!(converted.text.contains("rules = \"on >x +get ~*\""), "{}", converted.text);
    }

    #[test]
    fn what_cannot_be_converted_leaves_the_default_user_off() {
        for file in [
            &b"user default on >x ~* +@all nosuchrule"[..],
            b"user default on >x ~* +@all <unknown",
            b"user default on >x ~* +@all #abc",
            b"user default on >x ~* +@all -get|x",
            b"user default on \">x",
            b"user default on >x (+get",
            b"user",
            b"requirepass",
            b"requirepass \"x",
            b"\"requirepass\" 'x",
            b"requirepass x\ninclude secret.conf",
            b"include secret.conf\nrequirepass \"\xff\"",
            b"include secret.conf",
        ] {
            let (converted, named) = closed(file);
            let default = named.get(&b"default"[..]).unwrap_or_else(|| panic!("{}", converted.text));
            assert!(!default.is_on, "{}", converted.text);
            assert!(converted.left_out > 0 && converted.text.contains("# Off: "), "{}", converted.text);
        }
        for (file, is_on) in [
            ("user alice on nopass ~* +@all nosuchrule\nrequirepass x", Some(false)),
            ("user \"a b\" on nopass ~* +@all\nrequirepass x", None),
            ("user \"\" default on nopass ~* +@all\nrequirepass x", None),
            ("user alice on nopass +get\ninclude a.conf", Some(true)),
        ] {
            let (converted, named) = closed(file.as_bytes());
            assert_eq!(named.get(&b"alice"[..]).map(|user| user.is_on), is_on, "{}", converted.text);
            assert!(converted.left_out > 0, "{}", converted.text);
        }
        // A user of the file itself cannot be in another one too.
        let named = users(&convert(b"include a.conf\nuser default on >x ~* +@all\n", "r.conf")).0;
        assert!(named[&b"default"[..]].is_on);
    }

    #[test]
    fn defaults_of_redis_are_written_where_ours_would_mean_something_else() {
        let settings = |file: &str| loaded(&convert(file.as_bytes(), "r.conf"));
        for (file, save, appendonly, bind) in [
            ("appendonly no\n", "3600 1 300 100 60 10000", "no", "* -::*"),
            ("appendonly no\nsave \"\"\nbind ::1\n", "", "no", "::1"),
            ("appendonly no\nsave 900 1\ninclude a.conf\n", "900 1", "no", "127.0.0.1"),
            // Every write is in the journal: snapshots only keep it short.
            ("port 1\n", "3600 1", "yes", "* -::*"),
            ("appendonly yes\nbind x y\n", "3600 1", "yes", "x y"),
        ] {
            let settings = settings(file);
            let found = ["save", "appendonly", "bind"].map(|name| value(&settings, name));
            assert_eq!(found, [save, appendonly, bind], "{file}");
        }
    }

    #[test]
    fn a_file_that_opens_no_port_becomes_one_that_opens_none() {
        for file in
            ["port 0\nunixsocket /run/redis.sock\nbind 0.0.0.0\n", "tls-port 0\nport 0\n", "port 6379\nport 0\n"]
        {
            let converted = convert(file.as_bytes(), "r.conf");
            let settings = loaded(&converted);
            assert_eq!(
                (value(&settings, "bind"), value(&settings, "port")),
                (String::new(), "6379".to_owned()),
                "{file}"
            );
            assert!(crate::network::bind(&settings).is_err(), "{file}");
            let comment = converted.text.lines().find(|line| line.starts_with("# line") && line.contains("port 0  --"));
            assert!(comment.is_some_and(|comment| comment.contains("does not start")), "{file}: {}", converted.text);
        }
        let only_tls = convert(b"port 0\ntls-port 6380\n", "r.conf");
        assert_eq!((value(&loaded(&only_tls), "port"), only_tls.left_out), ("0".to_owned(), 0), "{}", only_tls.text);
    }

    #[test]
    fn what_has_an_effect_in_redis_is_not_said_to_have_none() {
        for row in engine::settings::TABLE.iter().filter(|row| row.is_without_effect) {
            let converted = convert(format!("{} 64\n", row.name).as_bytes(), "r.conf");
            assert!(!converted.text.contains("no effect"), "{}", converted.text);
        }
        for (line, why) in [
            ("unixsocket /run/redis.sock", "no unix sockets"),
            ("databases 64", "16 databases"),
            ("cluster-enabled yes", "docs/cluster.md"),
            ("masterauth x", "holdfast import --follow"),
            ("syslog-enabled yes", "stderr"),
            ("hz 100", "nothing of the kind"),
        ] {
            let converted = convert(line.as_bytes(), "r.conf");
            let comment = converted.text.lines().find(|text| text.starts_with(&format!("# line 1: {line}  -- ")));
            assert!(comment.is_some_and(|comment| comment.contains(why)), "{line}: {}", converted.text);
        }
    }

    /// A time that grows with the square of the number of lines would be minutes.
    #[test]
    fn a_directive_of_very_many_lines_is_converted() {
        let lines = ["save 900 1\n", "client-output-buffer-limit normal 0 0 0\n"].map(|line| line.repeat(20_000));
        let converted = convert(lines.concat().as_bytes(), "r.conf");
        assert_eq!((converted.converted, converted.left_out), (40_000, 0));
    }

    #[test]
    fn a_redis_conf_is_told_from_a_toml_file_that_is_torn() {
        for redis in [DEBIAN, "# x\n\nmaxmemory 1gb\n", "SAVE 900 1", "include a.conf", "user a on"] {
            assert!(is_redis_conf(redis.as_bytes()), "{redis}");
        }
        for other in ["", "# x\n", "port = \n", "port =7\nx y", "port=", "[[user]]\nname", "nosuch 1", "\"torn 1"] {
            assert!(!is_redis_conf(other.as_bytes()), "{other}");
        }
    }

    /// Whatever the file has, what comes out is a file that can be loaded, and every line of it is accounted for.
    #[test]
    fn any_file_becomes_one_that_can_be_loaded() {
        let mut random = test_random::Random::new();
        let words: Vec<&[u8]> = vec![
            b"save",
            b"900",
            b"1",
            b"\"\"",
            b"user",
            b"a",
            b"on",
            b"~*",
            b"\"",
            b"'",
            b"\\",
            b"\\xff",
            b"\xff",
            b"\r",
            b"#",
            b"=",
            b"[[",
            b"bind",
            b"::1",
            b"port",
            b"client-output-buffer-limit",
            b"normal",
            b"0",
            b"maxmemory",
            b"1gb",
            b"yes",
            b"include",
            b"\x00",
            b"\t",
            b"requirepass",
            b"\"\"\"",
            b"-5",
            b"\xc3\xa9",
            b"appendonly",
            b"default",
            b"-migrate",
            b"(+get",
            b"~x)",
            b"\">p \\xff\"",
            b"\"~\\xff\"",
            b"nopass",
        ];
        for _ in 0..100 {
            let mut file = Vec::new();
            for _ in 0..random.below(30) {
                match random.below(6) {
                    0 => file.push(b'\n'),
                    1 => file.push(random.below(256) as u8),
                    _ => {
                        file.extend_from_slice(words[random.below(words.len())]);
                        file.push(*random.pick(b" \n\t"));
                    }
                }
            }
            let converted = convert(&file, "random");
            loaded(&converted);
            declared(&converted).chunks(1).for_each(|user| drop(named(user)));
            let _ = is_redis_conf(&file);
            let words = |line: &[u8]| resp::split_line(line).map_or(1, |words| words.len());
            let directives = lines(&file).filter(|(_, line)| words(line) > 0).count();
            assert_eq!(converted.converted + converted.left_out, directives, "{}", file.escape_ascii());
        }
    }
}
