//! Reads a redis.conf by Redis's rules, and writes what Holdfast has of it as a holdfast.toml.

use engine::Settings;
use engine::settings::{Kind, Row};
use std::borrow::Cow;
use std::fmt::Write;

/// Directives that Redis collects over several lines.
const COLLECTED: [&str; 2] = ["save", "client-output-buffer-limit"];

/// Directives that are no settings here, and what to do instead.
const ADVICE: &[(&str, &str)] = &[
    (
        "dir",
        "Redis's own files are there: give Holdfast a directory of its own, and bring the data in with holdfast import",
    ),
    ("include", "the file is not read: convert it too"),
    ("logfile", "the server log goes to stderr"),
    ("rename-command", "take the command away from users instead, with a rule such as -config"),
    ("replicaof", "holdfast import --follow brings the data in; docs/cluster.md has servers that share a log"),
    ("slaveof", "holdfast import --follow brings the data in; docs/cluster.md has servers that share a log"),
    ("loadmodule", "there are no modules"),
];

/// A holdfast.toml made of a redis.conf.
pub(crate) struct Converted {
    pub(crate) text: String,
    /// Directives that have a counterpart.
    pub(crate) converted: usize,
    /// Directives that have none. The text names them in comments.
    pub(crate) left_out: usize,
}

/// A line of a redis.conf.
struct Directive {
    line: usize,
    /// In lower case.
    name: String,
    values: Vec<Vec<u8>>,
}

/// A setting that directives have given a value.
struct Given {
    row: &'static Row,
    /// The directives that it comes from.
    directives: Vec<Directive>,
    value: String,
}

/// What a file has, in its order.
struct Contents {
    /// Settings that take each value, to see whether it is good.
    tried: Settings,
    settings: Vec<Given>,
    /// Users with their rules.
    users: Vec<(String, String)>,
    /// Lines that have no counterpart, with the reason.
    left_out: Vec<(String, Cow<'static, str>)>,
}

/// Converts a redis.conf. What cannot be converted is named in comments.
pub(crate) fn convert(file: &[u8], name: &str) -> Converted {
    let mut contents =
        Contents { tried: Settings::new(), settings: Vec::new(), users: Vec::new(), left_out: Vec::new() };
    for (number, line) in lines(file) {
        match resp::split_line(line) {
            Err(resp::UnbalancedQuotes) => {
                contents.left_out.push((format!("line {number}: {}", line.escape_ascii()), "unbalanced quotes".into()));
            }
            Ok(words) => contents.take(number, words),
        }
    }
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
            let is_plain = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
            let _ = match is_plain {
                true => write!(text, " {}", value.escape_ascii()),
                false => write!(text, " \"{}\"", value.escape_ascii()),
            };
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
        if let Some((_, advice)) = ADVICE.iter().find(|(name, _)| *name == directive.name) {
            return self.leave_out(&directive, *advice);
        }
        if directive.values.is_empty() {
            return self.leave_out(&directive, "it has no value");
        }
        match (&*directive.name, Settings::find(directive.name.as_bytes())) {
            ("user", _) => self.take_user(&directive),
            (_, None) => self.leave_out(&directive, "Holdfast has nothing like it"),
            (_, Some(row)) => match directive.value() {
                None => self.leave_out(&directive, "its value is not UTF-8"),
                Some(_) if row.is_without_effect => self.leave_out(&directive, "it would have no effect"),
                Some(value) => self.take_setting(row, directive, value),
            },
        }
    }

    fn leave_out(&mut self, directive: &Directive, why: impl Into<Cow<'static, str>>) {
        self.left_out.push((directive.shown(), why.into()));
    }

    /// As in Redis, the last of several lines wins, or they are collected.
    fn take_setting(&mut self, row: &'static Row, directive: Directive, value: String) {
        let known = self.settings.iter().position(|given| given.row.name == row.name);
        let collects = COLLECTED.contains(&&*directive.name) && !value.is_empty();
        let whole = match known {
            Some(at) if collects => format!("{} {value}", self.settings[at].value).trim_start().to_owned(),
            _ => value,
        };
        if let Err(why) = self.tried.load(directive.name.as_bytes(), whole.as_bytes()) {
            return self.leave_out(&directive, why);
        }
        match known {
            Some(at) => {
                self.settings[at].value = whole;
                self.settings[at].directives.push(directive);
            }
            None => self.settings.push(Given { row, directives: vec![directive], value: whole }),
        }
    }

    fn take_user(&mut self, directive: &Directive) {
        let has_space = |value: &Vec<u8>| value.iter().any(u8::is_ascii_whitespace);
        let words: Option<Vec<&str>> = directive.values.iter().map(|value| std::str::from_utf8(value).ok()).collect();
        let Some([name, rules @ ..]) = words.as_deref() else {
            return self.leave_out(directive, "its name and rules are not UTF-8");
        };
        if directive.values.iter().any(|value| has_space(value) && !value.starts_with(b"(")) {
            return self.leave_out(directive, "a name or rule has white space: give the password by its hash (#…)");
        }
        let rules = rules.join(" ");
        let declared = [(directive.shown(), *name, &*rules)].into_iter();
        match engine::parse_declared_users(declared, false) {
            Ok(_) => self.users.push(((*name).to_owned(), rules)),
            Err(_) => self.leave_out(directive, "its rules name something that Holdfast does not have"),
        }
    }

    fn write(self, name: &str) -> Converted {
        let converted = self.settings.iter().map(|given| given.directives.len()).sum::<usize>() + self.users.len();
        let left_out = self.left_out.len();
        let name = name.escape_debug();
        let mut text = format!("# Made of {name} by holdfast config convert. docs/SETTINGS.md has all settings.\n\n");
        for given in &self.settings {
            let _ = writeln!(text, "{} = {}", given.row.name, toml_value(&given.row.kind, &given.value));
        }
        for (name, rules) in &self.users {
            let (name, rules) = (toml_text(name), toml_text(rules));
            let _ = write!(text, "\n[[user]]\nname = {name}\nrules = {rules}\n");
        }
        if left_out > 0 {
            text.push_str("\n# What has no counterpart:\n");
        }
        for (line, why) in &self.left_out {
            let _ = writeln!(text, "# {line}  -- {why}");
        }
        Converted { text, converted, left_out }
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
            ("line 12: user bob on \">two words\"", "white space"),
            ("line 13: user carol +@nosuch", "does not have"),
            ("line 14: rename-command CONFIG \"\"", "-config"),
            ("line 15: include /etc/redis/local.conf", "convert it too"),
            ("line 16: timeout", "no value"),
            ("line 17: hash-max-listpack-entries many", "integer"),
            ("line 18: dbfilename \\\"torn", "unbalanced quotes"),
            ("line 19: nosuch 1", "nothing like it"),
            ("line 20: proto-max-bulk-len \"\\xff\"", "not UTF-8"),
        ] {
            let found = converted.text.lines().find(|text| text.starts_with(&format!("# {line}")));
            assert!(found.is_some_and(|found| found.contains(why)), "{line}: {found:?} in {}", converted.text);
        }
        assert_eq!(converted.left_out, 10, "{}", converted.text);
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
            let _ = is_redis_conf(&file);
            let words = |line: &[u8]| resp::split_line(line).map_or(1, |words| words.len());
            let directives = lines(&file).filter(|(_, line)| words(line) > 0).count();
            assert_eq!(converted.converted + converted.left_out, directives, "{}", file.escape_ascii());
        }
    }
}
