//! Random stream commands, of few streams, groups and ids, so that they meet.

use wire::Random;

pub(crate) const KEYS: &[&str] = &["s1", "s2", "s3"];
const GROUPS: &[&str] = &["g1", "g1", "g1", "g2", "nosuch"];
const CONSUMERS: &[&str] = &["alice", "bob", "carol"];
const FIELDS: &[&str] = &[
    "f1 v f2 7",
    "f1 v f2 7",
    "f1 other f2 -12345",
    "f1 v",
    "a 1 b 2 c 3 d 4",
    "f1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa f2 70000",
    "12 9223372036854775807 f 00012",
    "f1 v f1 w",
];

pub(crate) struct Commands {
    random: Random,
    /// Ids rise with it.
    clock: usize,
    /// With what is refused for its form, and what depends on how entries are packed: the model knows neither.
    has_odd_ones: bool,
    /// Only what Redis 7.0 does as Redis 7.4, given that each consumer is made before it asks for entries.
    for_redis_7_0: bool,
}

impl Commands {
    pub(crate) fn new(random: Random) -> Commands {
        Commands { random, clock: 1, has_odd_ones: true, for_redis_7_0: false }
    }

    /// Only what a model without nodes can answer.
    pub(crate) fn sound(random: Random) -> Commands {
        Commands { random, clock: 1, has_odd_ones: false, for_redis_7_0: false }
    }

    /// What a Redis before 7.2 can judge.
    pub(crate) fn for_redis_7_0(random: Random) -> Commands {
        Commands { for_redis_7_0: true, ..Commands::new(random) }
    }

    /// Some commands that travel together.
    pub(crate) fn pipeline(&mut self, max: usize) -> Vec<String> {
        (0..1 + self.random.below(max)).flat_map(|_| self.commands()).collect()
    }

    /// A command, behind those that make its consumers if the judge does not.
    fn commands(&mut self) -> Vec<String> {
        let command = self.command();
        let mut commands = Vec::new();
        if self.for_redis_7_0 {
            let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
            let make =
                |key: &str, group: &str, consumer: &str| format!("XGROUP CREATECONSUMER {key} {group} {consumer}");
            match words[..] {
                ["XCLAIM" | "XAUTOCLAIM", key, group, consumer, ..] => commands.push(make(key, group, consumer)),
                ["XREADGROUP", "GROUP", group, consumer, ..] => {
                    // Keys, then as many ids.
                    let streams: Vec<&&str> = words.iter().skip_while(|word| **word != "STREAMS").skip(1).collect();
                    commands.extend(streams[..streams.len() / 2].iter().map(|key| make(key, group, consumer)));
                }
                _ => {}
            }
        }
        commands.push(command);
        commands
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.random.below(words.len())]
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    /// An id that an entry may have, mostly of the newest.
    fn id(&mut self) -> String {
        let back = if self.one_in(3) { self.random.below(400) } else { self.random.below(30) };
        let ms = self.clock.saturating_sub(back);
        match self.random.below(12) {
            0 => ms.to_string(),
            1 if self.has_odd_ones => {
                self.pick(&["x", "-1", "1-", "1-x", "", "18446744073709551616", "007", "+5"]).into()
            }
            _ => format!("{ms}-{}", self.random.below(3)),
        }
    }

    fn ids(&mut self) -> String {
        (0..1 + self.random.below(4)).map(|_| self.id()).collect::<Vec<_>>().join(" ")
    }

    fn bound(&mut self) -> String {
        match self.random.below(5) {
            0 => "-".into(),
            1 => "+".into(),
            2 => format!("({}", self.id()),
            _ => self.id(),
        }
    }

    fn trim(&mut self) -> String {
        let operator = if self.has_odd_ones { self.pick(&["", "= ", "~ ", "~ "]) } else { self.pick(&["", "= "]) };
        let threshold = match self.one_in(2) {
            true => format!("MAXLEN {operator}{}", self.random.below(60)),
            false => format!("MINID {operator}{}", self.id()),
        };
        let limit = match self.random.below(6) {
            0 if self.has_odd_ones => format!(" LIMIT {}", self.random.below(40)),
            _ => String::new(),
        };
        threshold + &limit
    }

    fn count(&mut self) -> String {
        if self.one_in(2) { String::new() } else { format!("COUNT {} ", self.number(8)) }
    }

    /// A number below `end`, or one that means something else.
    fn number(&mut self, end: usize) -> i64 {
        let number = self.random.below(end) as i64 - 1;
        if self.has_odd_ones { number } else { number.max(1) }
    }

    fn command(&mut self) -> String {
        let key = if self.one_in(40) { self.pick(&["text", "missing"]) } else { self.pick(KEYS) };
        let (group, consumer) = (self.pick(GROUPS), self.pick(CONSUMERS));
        match self.random.below(40) {
            0..=11 => {
                self.clock += self.random.below(3);
                let id = match self.random.below(8) {
                    0 => self.id(),
                    1 | 2 => format!("{}-{}", self.clock, self.random.below(5)),
                    _ => format!("{}-*", self.clock),
                };
                let trim = if self.one_in(6) { self.trim() + " " } else { String::new() };
                let make = if self.one_in(10) { "NOMKSTREAM " } else { "" };
                format!("XADD {key} {make}{trim}{id} {}", self.pick(FIELDS))
            }
            12 => format!("XTRIM {key} {}", self.trim()),
            13 | 14 => format!("XDEL {key} {}", self.ids()),
            15 => format!("XLEN {key}"),
            16 | 17 => format!("XRANGE {key} {} {} {}", self.bound(), self.bound(), self.count()),
            18 => format!("XREVRANGE {key} {} {} {}", self.bound(), self.bound(), self.count()),
            19 => {
                let other = self.pick(KEYS);
                format!("XREAD {}STREAMS {key} {other} {} {}", self.count(), self.id(), self.id())
            }
            20 => {
                // Redis 7.0 lets the last id fall below the highest deleted one.
                let id = if self.one_in(3) && !self.for_redis_7_0 { self.id() } else { (self.clock + 5).to_string() };
                let added =
                    if self.one_in(3) { format!(" ENTRIESADDED {}", self.random.below(1000)) } else { String::new() };
                let deleted = if self.one_in(3) { format!(" MAXDELETEDID {}", self.id()) } else { String::new() };
                self.clock += 5;
                format!("XSETID {key} {id}{added}{deleted}")
            }
            21 => {
                let (id, read) = (
                    self.pick(&["0", "$", "$", "0-0", "5-1"]),
                    self.pick(&["", "", " ENTRIESREAD 3", " ENTRIESREAD -1"]),
                );
                let make = self.pick(&["", " MKSTREAM"]);
                format!("XGROUP CREATE {key} {group} {id}{make}{read}")
            }
            22 => {
                let id = if self.has_odd_ones { self.bound() } else { self.id() };
                format!("XGROUP SETID {key} {group} {id}{}", self.pick(&["", "", " ENTRIESREAD 3"]))
            }
            23 if self.one_in(8) => format!("XGROUP DESTROY {key} {group}"),
            23 | 24 => match self.one_in(2) {
                true => format!("XGROUP CREATECONSUMER {key} {group} {consumer}"),
                false => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
            },
            25..=29 => {
                let from = match self.one_in(4) {
                    true => self.id(),
                    false => ">".into(),
                };
                let no_ack = if self.one_in(6) { "NOACK " } else { "" };
                if self.one_in(8) {
                    let other = self.pick(KEYS);
                    return format!(
                        "XREADGROUP GROUP {group} {consumer} {}{no_ack}STREAMS {key} {other} {from} >",
                        self.count()
                    );
                }
                format!("XREADGROUP GROUP {group} {consumer} {}{no_ack}STREAMS {key} {from}", self.count())
            }
            30 | 31 => format!("XACK {key} {group} {}", self.ids()),
            32 => format!("XPENDING {key} {group}"),
            33 => {
                let idle = self.pick(&["", "IDLE 100000 ", "IDLE 0 "]);
                let consumer = if self.one_in(2) { consumer } else { "" };
                format!("XPENDING {key} {group} {idle}{} {} {} {consumer}", self.bound(), self.bound(), self.number(12))
            }
            34 | 35 => {
                let idle = self.pick(&["0", "0", "100000"]);
                let options = self.pick(&[
                    "",
                    "",
                    "FORCE",
                    "JUSTID",
                    "IDLE 200000",
                    "TIME 5 RETRYCOUNT 7",
                    "FORCE JUSTID RETRYCOUNT 0",
                ]);
                let last = if self.one_in(8) { format!("LASTID {}", self.id()) } else { String::new() };
                format!("XCLAIM {key} {group} {consumer} {idle} {} {options} {last}", self.ids())
            }
            36 => {
                let (idle, just_ids) = (self.pick(&["0", "100000"]), self.pick(&["", "JUSTID"]));
                format!("XAUTOCLAIM {key} {group} {consumer} {idle} {} {}{just_ids}", self.bound(), self.count())
            }
            37 => match self.random.below(4) {
                0 => format!("XINFO GROUPS {key}"),
                1 => format!("XINFO CONSUMERS {key} {group}"),
                2 => format!("XINFO STREAM {key}"),
                _ => format!("XINFO STREAM {key} FULL COUNT {}", self.number(6)),
            },
            38 if self.one_in(10) => format!("DEL {key}"),
            38 if self.one_in(4) => format!("COPY {key} {} REPLACE", self.pick(KEYS)),
            38 if self.one_in(10) => format!("RENAME {key} {}", self.pick(KEYS)),
            39 if self.has_odd_ones && self.one_in(20) => {
                format!("CONFIG SET stream-node-max-entries {}", self.pick(&["0", "1", "3", "10", "100"]))
            }
            39 if self.has_odd_ones && self.one_in(20) => {
                format!("CONFIG SET stream-node-max-bytes {}", self.pick(&["0", "60", "200", "4096"]))
            }
            39 if self.has_odd_ones && self.one_in(20) => "SET text value".into(),
            _ => format!("XINFO STREAM {key}"),
        }
    }

    /// Commands that show all there is.
    pub(crate) fn readings() -> Vec<String> {
        KEYS.iter().flat_map(|key| Commands::readings_of(key)).collect()
    }

    pub(crate) fn readings_of(key: &str) -> Vec<String> {
        [
            "TYPE k",
            "OBJECT ENCODING k",
            "XLEN k",
            "XRANGE k - +",
            "XREVRANGE k + -",
            "XINFO STREAM k FULL COUNT 0",
            "XINFO GROUPS k",
        ]
        .map(|line| line.replace(" k", &format!(" {key}")))
        .to_vec()
    }
}
