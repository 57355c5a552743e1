//! Chooses set commands: few keys and few members, so that they meet, and members at which something happens.

use wire::{Random, spoil_behind_key};

pub(crate) const KEYS: &[&str] = &["a", "b", "c", "d"];

const MEMBERS: &[&str] = &[
    "x",
    "y",
    "z",
    "xyz",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "70000",
    "5000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "01",
    "-0",
    "\"\"",
    "\"\\x00\"",
    "\"\\xff\"",
    "a-member-of-more-than-sixty-four-bytes-so-that-it-is-kept-as-a-long-one-is",
];
const INTEGERS: &[&str] = &["0", "1", "2", "3", "-1", "70000", "5000000000"];

/// What is wrong in most places.
const ODD_WORDS: &[&str] = &[
    "q",
    "\"\"",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "0.5",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "LIMIT",
    "COUNT",
    "MATCH",
    "WITHSCORES",
    "nosuch",
];

/// Whose replies differ between two servers if they are spoiled, or the encoding of what they store.
const LEFT_ALONE: &[&str] = &["RENAME", "COPY", "SMOVE", "OBJECT", "SPOP", "SRANDMEMBER", "SSCAN", "SDIFFSTORE"];

pub(crate) struct Commands {
    random: Random,
    /// For another server to judge: no random replies, encodings compared, and one command in so many is wrong.
    odd_one_in: Option<usize>,
}

impl Commands {
    /// Sound commands, also those with random replies.
    pub(crate) fn for_a_model(random: Random) -> Commands {
        Commands { random, odd_one_in: None }
    }

    pub(crate) fn for_a_judge(random: Random, odd_one_in: usize) -> Commands {
        Commands { random, odd_one_in: Some(odd_one_in) }
    }

    /// Commands that travel together: sometimes one, sometimes many.
    pub(crate) fn pipeline(&mut self) -> Vec<String> {
        (0..1 + self.random.below(40)).map(|_| self.next_command()).collect()
    }

    /// All that can be asked about the keys.
    pub(crate) fn readings() -> Vec<String> {
        let questions = ["SMEMBERS #", "SCARD #", "TYPE #", "SSCAN # 0 COUNT 1000", "SRANDMEMBER # 100"];
        KEYS.iter().flat_map(|key| questions.map(|question| question.replace('#', key))).collect()
    }

    fn next_command(&mut self) -> String {
        let command = self.command();
        let name = command.split(' ').next().unwrap_or_default();
        match self.odd_one_in {
            Some(times) if self.random.one_in(times) && !LEFT_ALONE.contains(&name) => {
                spoil_behind_key(&mut self.random, &command, ODD_WORDS)
            }
            _ => command,
        }
    }

    fn command(&mut self) -> String {
        let (key, other, member) = (self.key(), self.key(), self.random.pick(MEMBERS));
        match self.random.below(36) {
            0..=4 => format!("SADD {key} {}", self.several(MEMBERS, 4)),
            5..=7 => format!("SADD {key} {}", self.several(INTEGERS, 4)),
            8..=9 => format!("SREM {key} {}", self.several(MEMBERS, 4)),
            10 => format!("SREM {key} {}", self.several(INTEGERS, 3)),
            11 => format!("SCARD {key}"),
            12 => format!("SISMEMBER {key} {member}"),
            13 => format!("SMISMEMBER {key} {}", self.several(MEMBERS, 4)),
            14 => format!("SMEMBERS {key}"),
            15 | 16 => format!("SMOVE {key} {other} {member}"),
            17 => format!("SSCAN {key} 0 COUNT 1000"),
            18 => format!("SINTER {}", self.several(KEYS, 3)),
            19 => format!("SUNION {}", self.several(KEYS, 3)),
            20 => format!("SDIFF {}", self.several(KEYS, 3)),
            21 => format!("SINTERSTORE {key} {}", self.several(KEYS, 3)),
            22 => format!("SUNIONSTORE {key} {}", self.several(KEYS, 2)),
            // Of three or more keys it depends on their sizes which encoding Redis gives to the result.
            23 => format!("SDIFFSTORE {key} {}", self.several(KEYS, 2)),
            24 => {
                let keys = self.several(KEYS, 3);
                format!("SINTERCARD {} {keys} LIMIT {}", keys.split(' ').count(), self.random.below(4))
            }
            25 => {
                let keys = self.several(KEYS, 3);
                let name = self.random.pick(&["ZUNION", "ZINTER", "ZDIFF"]);
                format!("{name} {} {keys} WITHSCORES", keys.split(' ').count())
            }
            26 => format!("{} {key} 100", self.random.pick(&["SPOP", "SRANDMEMBER", "SRANDMEMBER"])),
            27 => format!("{} {key} 0", self.random.pick(&["SPOP", "SRANDMEMBER"])),
            28 => format!("{} {key}", self.random.pick(&["DEL", "DEL", "EXISTS", "TYPE"])),
            29 => format!("RENAME {key} {other}"),
            30 => format!("COPY {key} {other} REPLACE"),
            31 if self.random.one_in(3) => format!("SET {key} text"),
            31 => format!("DEL {key}"),
            _ if self.odd_one_in.is_some() => self.for_judges_only(key),
            32 => format!("SPOP {key}"),
            33 => format!("SPOP {key} {}", 1 + self.random.below(4)),
            34 => format!("SRANDMEMBER {key}"),
            _ => format!("SRANDMEMBER {key} {}", self.random.below(13) as i64 - 6),
        }
    }

    /// What a plain model does not know.
    fn for_judges_only(&mut self, key: &str) -> String {
        match self.random.below(6) {
            0 => format!("HSET {key} f v"),
            1 => format!("PEXPIREAT {key} 33177117420123"),
            2 => format!("PEXPIRETIME {key}"),
            3 => format!("ZUNIONSTORE {key} 1 {}", self.key()),
            _ => format!("OBJECT ENCODING {key}"),
        }
    }

    fn key(&mut self) -> &'static str {
        self.random.pick(KEYS)
    }

    fn several(&mut self, words: &[&'static str], count_max: usize) -> String {
        let count = 1 + self.random.below(count_max);
        let words: Vec<&str> = (0..count).map(|_| self.random.pick(words)).collect();
        words.join(" ")
    }
}
