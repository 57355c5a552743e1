//! Chooses list commands: few keys and few elements, so that they meet, and numbers at which something happens.

use wire::{Random, spoil};

pub(crate) const KEYS: &[&str] = &["a", "b", "c", "d"];

const ELEMENTS: &[&str] = &[
    "x",
    "y",
    "z",
    "\"\"",
    "0",
    "7",
    "-1",
    "007",
    "128",
    "-129",
    "70000",
    "9223372036854775807",
    "\"\\x00\\xff\"",
    "an-element-of-more-than-sixty-four-bytes-as-they-are-found-in-queues-of-all-kinds",
];

/// What is wrong in most places.
const ODD_WORDS: &[&str] = &[
    "q",
    "\"\"",
    "1.5",
    "-",
    "+1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775807",
    "-1",
    "0",
    "RANK",
    "COUNT",
    "MAXLEN",
    "LEFT",
    "RIGHT",
    "BEFORE",
    "nosuch",
    "text",
];

/// One command in so many has something wrong with it.
const ODD_ONE_IN: usize = 6;

pub(crate) struct Commands {
    random: Random,
}

impl Commands {
    pub(crate) fn new(random: Random) -> Commands {
        Commands { random }
    }

    /// Commands that travel together: sometimes one, sometimes many.
    pub(crate) fn pipeline(&mut self) -> Vec<String> {
        (0..1 + self.random.below(40)).map(|_| self.next()).collect()
    }

    /// Commands that show everything.
    pub(crate) fn readings() -> Vec<String> {
        KEYS.iter().flat_map(|key| [format!("LLEN {key}"), format!("LRANGE {key} 0 -1")]).collect()
    }

    fn next(&mut self) -> String {
        let command = self.command();
        // No word that says how long to wait is replaced, or the test would.
        match self.random.one_in(ODD_ONE_IN) && !command.starts_with('B') {
            true => spoil(&mut self.random, &command, ODD_WORDS),
            false => command,
        }
    }

    fn command(&mut self) -> String {
        let (key, other) = (self.key(), self.key());
        let (side, to) = (self.side(), self.side());
        match self.random.below(56) {
            0..5 => format!("LPUSH {key} {}", self.elements()),
            5..10 => format!("RPUSH {key} {}", self.elements()),
            10 => format!("LPUSHX {key} {}", self.elements()),
            11 => format!("RPUSHX {key} {}", self.elements()),
            // Enough for chunks of their own now and then.
            12 => {
                let many: Vec<String> = (0..400).map(|number| format!("many-{number}-{key}{other}")).collect();
                format!("{} {key} {}", self.one_of(&["LPUSH", "RPUSH"]), many.join(" "))
            }
            13..16 => format!("LPOP {key}"),
            16..19 => format!("RPOP {key}"),
            19 => format!("LPOP {key} {}", self.random.below(5)),
            20 => format!("RPOP {key} {}", self.random.below(5)),
            21..24 => format!("LLEN {key}"),
            24..27 => format!("LINDEX {key} {}", self.index()),
            27..30 => {
                let place = self.one_of(&["BEFORE", "AFTER"]);
                format!("LINSERT {key} {place} {} {}", self.element(), self.element())
            }
            30..33 => format!("LSET {key} {} {}", self.index(), self.element()),
            33..37 => format!("LRANGE {key} {} {}", self.index(), self.index()),
            37..40 => format!("LREM {key} {} {}", self.random.below(7) as i64 - 3, self.element()),
            40 => format!("LTRIM {key} {} {}", self.index(), self.index()),
            41..44 => format!("LPOS {key} {}{}", self.element(), self.search()),
            44..47 => format!("LMOVE {key} {other} {side} {to}"),
            47 => format!("RPOPLPUSH {key} {other}"),
            48 => format!("LMPOP 2 {key} {other} {side} COUNT {}", 1 + self.random.below(4)),
            // Seldom, as a Redis notices only now and then that the time is up.
            49 => match self.random.below(5) {
                0 => format!("BLPOP {key} {other} 0.001"),
                1 => format!("BRPOP {key} 0.001"),
                2 => format!("BLMOVE {key} {other} {side} {to} 0.001"),
                3 => format!("BRPOPLPUSH {key} {other} 0.001"),
                _ => format!("BLMPOP 0.001 2 {key} {other} {side} COUNT {}", 1 + self.random.below(4)),
            },
            50 => format!("DEL {key}"),
            51 => format!("EXISTS {key}"),
            52 => format!("TYPE {key}"),
            53 => format!("RENAME {key} {other}"),
            54 => format!("COPY {key} {other} REPLACE"),
            _ => format!("LTRIM {key} 0 {}", self.random.below(40)),
        }
    }

    fn search(&mut self) -> String {
        let mut options = String::new();
        if self.random.below(2) == 0 {
            options += &format!(" RANK {}", [1, 2, 3, -1, -2, -3][self.random.below(6)]);
        }
        if self.random.below(2) == 0 {
            options += &format!(" COUNT {}", self.random.below(4));
        }
        if self.random.below(3) == 0 {
            options += &format!(" MAXLEN {}", self.random.below(9));
        }
        options
    }

    fn key(&mut self) -> &'static str {
        KEYS[self.random.below(KEYS.len())]
    }

    fn element(&mut self) -> &'static str {
        ELEMENTS[self.random.below(ELEMENTS.len())]
    }

    fn elements(&mut self) -> String {
        let elements: Vec<&str> = (0..1 + self.random.below(4)).map(|_| self.element()).collect();
        elements.join(" ")
    }

    fn side(&mut self) -> &'static str {
        self.one_of(&["LEFT", "RIGHT"])
    }

    fn index(&mut self) -> i64 {
        match self.random.below(8) {
            0 => self.random.below(1000) as i64 - 500,
            _ => self.random.below(13) as i64 - 6,
        }
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.random.below(words.len())]
    }
}
