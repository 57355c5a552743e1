//! Chooses commands: few keys and few fields, so that they meet, and values at which something happens.

use wire::{Random, Session};

use crate::model::PAST_MS;

const KEYS: &[&str] = &["a", "b", "c", "d", "e", "{a}f"];
const FIELDS: &[&str] = &["f", "g", "h", "i"];
const VALUES: &[&str] = &[
    "\"\"",
    "x",
    "hello",
    "\"two words\"",
    "0",
    "7",
    "-12",
    "9223372036854775807",
    "3.5",
    "\"\\x00\\xff\"",
    "a-value-of-more-than-sixty-four-bytes-so-that-a-hash-with-it-is-no-longer-small",
];
const NUMBERS: &[&str] = &["0", "1", "-1", "5", "100", "9223372036854775807", "-9223372036854775808"];
const CONDITIONS: &[&str] = &["", "", "NX", "XX", "GT", "LT"];

/// Deadlines are in the far future or in the past, so that no reply depends on the clock.
const FUTURE_MS: i64 = 33_177_117_420_000;

pub(crate) struct Commands {
    random: Random,
    field_deadlines: bool,
    hgetex: bool,
}

impl Commands {
    pub(crate) fn new(random: Random, session: &Session) -> Commands {
        Commands { random, field_deadlines: session.has_redis("7.4"), hgetex: session.has_redis("8.0") }
    }

    pub(crate) fn pipeline(&mut self, len_max: usize) -> Vec<String> {
        let len = 1 + self.random.below(len_max);
        (0..len).map(|_| self.next_command()).collect()
    }

    /// Everything that can be asked about the keys.
    pub(crate) fn readings(&self) -> Vec<String> {
        let mut readings = vec!["KEYS *".to_owned(), "DBSIZE".to_owned()];
        for key in KEYS {
            for command in ["TYPE", "GET", "STRLEN", "HGETALL", "HKEYS", "HVALS", "HLEN", "PEXPIRETIME", "EXISTS"] {
                readings.push(format!("{command} {key}"));
            }
            if self.field_deadlines {
                readings.push(format!("HPEXPIRETIME {key} FIELDS {} {}", FIELDS.len(), FIELDS.join(" ")));
            }
        }
        readings
    }

    fn next_command(&mut self) -> String {
        let kinds = if self.hgetex {
            45
        } else if self.field_deadlines {
            42
        } else {
            39
        };
        let key = self.key();
        match self.random.below(kinds) {
            0 | 1 => format!("SET {key} {}{}", self.value(), self.set_options()),
            2 => format!("GET {key}"),
            3 => format!("GETSET {key} {}", self.value()),
            4 => format!("GETDEL {key}"),
            5 => {
                let at = format!(" PXAT {}", self.deadline());
                format!("GETEX {key}{}", self.random.pick(&["", " PERSIST", &at]))
            }
            6 => format!("SETNX {key} {}", self.value()),
            7 => format!("MSET {}", self.pairs(Commands::key)),
            8 => format!("MSETNX {}", self.pairs(Commands::key)),
            9 => format!("MGET {}", self.several(Commands::key)),
            10 => format!("INCRBY {key} {}", self.random.pick(NUMBERS)),
            11 => format!("{} {key}", self.random.pick(&["INCR", "DECR"])),
            12 => format!("APPEND {key} {}", self.value()),
            13 => format!("STRLEN {key}"),
            14 => format!("GETRANGE {key} {} {}", self.near_zero(), self.near_zero()),
            15 => format!("SETRANGE {key} {} {}", self.random.below(20), self.value()),
            16 => format!("SETBIT {key} {} {}", self.random.below(100), self.random.below(2)),
            17 => format!("GETBIT {key} {}", self.random.below(100)),
            18 => format!("BITCOUNT {key}"),
            19 | 20 => format!("HSET {key} {}", self.pairs(Commands::field)),
            21 => format!("HSETNX {key} {} {}", self.field(), self.value()),
            22 => format!("HGET {key} {}", self.field()),
            23 => format!("HMGET {key} {}", self.several(Commands::field)),
            24 => format!("HDEL {key} {}", self.several(Commands::field)),
            25 => format!("{} {key}", self.random.pick(&["HGETALL", "HKEYS", "HVALS", "HLEN"])),
            26 => format!("HEXISTS {key} {}", self.field()),
            27 => format!("HSTRLEN {key} {}", self.field()),
            28 | 29 => format!("HINCRBY {key} {} {}", self.field(), self.random.pick(NUMBERS)),
            30 => format!("{} {}", self.random.pick(&["DEL", "UNLINK"]), self.several(Commands::key)),
            31 => format!("{} {}", self.random.pick(&["EXISTS", "TOUCH"]), self.several(Commands::key)),
            32 => format!("TYPE {key}"),
            33 => format!("{} {key} {}", self.random.pick(&["RENAME", "RENAMENX"]), self.key()),
            34 => format!("COPY {key} {}{}", self.key(), self.random.pick(&["", " REPLACE"])),
            35 | 36 => format!("PEXPIREAT {key} {} {}", self.deadline(), self.random.pick(CONDITIONS)),
            37 => format!("PERSIST {key}"),
            38 => format!("PEXPIRETIME {key}"),
            39 => {
                let (deadline, condition) = (self.deadline(), self.random.pick(CONDITIONS));
                format!("HPEXPIREAT {key} {deadline} {condition} {}", self.counted_fields())
            }
            40 => format!("HPEXPIRETIME {key} {}", self.counted_fields()),
            41 => format!("HPERSIST {key} {}", self.counted_fields()),
            42 => {
                let at = format!("PXAT {}", self.deadline());
                let option = self.random.pick(&["", "PERSIST", &at]);
                // A field twice, deleted by the first: what the second then answers is nobody's contract.
                format!("HGETEX {key} {option} FIELDS 1 {}", self.field())
            }
            43 => {
                let at = format!("PXAT {}", self.deadline());
                let option = self.random.pick(&["", "KEEPTTL", &at]);
                let condition = self.random.pick(&["", "FNX", "FXX"]);
                format!("HSETEX {key} {condition} {option} FIELDS 1 {} {}", self.field(), self.value())
            }
            _ => format!("HGETDEL {key} {}", self.counted_fields()),
        }
    }

    fn set_options(&mut self) -> String {
        let mut options = String::new();
        options.push_str(self.random.pick(&["", "", " NX", " XX"]));
        options.push_str(self.random.pick(&["", "", " GET"]));
        match self.random.below(4) {
            0 => options.push_str(" KEEPTTL"),
            1 => options.push_str(&format!(" PXAT {}", self.deadline())),
            _ => {}
        }
        options
    }

    fn key(&mut self) -> &'static str {
        self.random.pick(KEYS)
    }

    fn field(&mut self) -> &'static str {
        self.random.pick(FIELDS)
    }

    fn value(&mut self) -> &'static str {
        self.random.pick(VALUES)
    }

    fn near_zero(&mut self) -> i64 {
        self.random.below(21) as i64 - 10
    }

    fn deadline(&mut self) -> i64 {
        if self.random.one_in(8) { PAST_MS } else { FUTURE_MS + self.random.below(10) as i64 }
    }

    fn several(&mut self, name: impl Fn(&mut Commands) -> &'static str) -> String {
        let names: Vec<&str> = (0..1 + self.random.below(3)).map(|_| name(self)).collect();
        names.join(" ")
    }

    fn pairs(&mut self, name: impl Fn(&mut Commands) -> &'static str) -> String {
        let pairs: Vec<String> =
            (0..1 + self.random.below(3)).map(|_| format!("{} {}", name(self), self.value())).collect();
        pairs.join(" ")
    }

    fn counted_fields(&mut self) -> String {
        let len = 1 + self.random.below(3);
        let fields: Vec<&str> = (0..len).map(|_| self.field()).collect();
        format!("FIELDS {len} {}", fields.join(" "))
    }
}
