//! Chooses sorted set commands: few keys and few members, so that they meet, and numbers at which something happens.

use wire::{Random, spoil_behind_key};

pub(crate) const KEYS: &[&str] = &["a", "b", "c", "d"];
/// All its scores are 0: a range by bytes has a meaning only where they are equal. Nothing is stored into it.
pub(crate) const LEX_KEY: &str = "lex";

const MEMBERS: &[&str] = &[
    "x",
    "y",
    "z",
    "xx",
    "xyz",
    "M",
    "m1",
    "m2",
    "m3",
    "m4",
    "\"\"",
    "\"\\x00\"",
    "\"\\xff\"",
    "a-member-of-more-than-sixty-four-bytes-so-that-a-set-with-it-is-no-longer-small",
];
const SCORES: &[&str] =
    &["0", "1", "1", "2", "-1", "2.5", "-0.5", "10", "0.1", "1e3", "+5", "1e-7", "123456789.25", "inf", "-inf", "-0"];
/// Never 0 or infinite: what becomes of 0 times infinity depends on the order in which Redis takes the sets.
const WEIGHTS: &[&str] = &["1", "2", "-1", "0.5"];
const ZADD_OPTIONS: &[&str] = &["", "", "", "NX", "XX", "GT", "LT", "XX GT", "LT XX", "CH", "NX CH", "CH GT"];
const LEX_BOUNDS: &[&str] = &["-", "+", "[x", "(x", "[m2", "(m3", "[xyz", "(", "[", "\"(\\xff\"", "[A", "[z"];

/// What is wrong in most places.
const ODD_WORDS: &[&str] = &[
    "nan",
    "NaN",
    "q",
    "\"\"",
    "1e400",
    "(1",
    "((1",
    "-",
    "+",
    "1e",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "0.5",
    "-1",
    "0",
    "NX",
    "XX",
    "CH",
    "INCR",
    "GT",
    "WITHSCORES",
    "LIMIT",
    "BYSCORE",
    "REV",
    "WEIGHTS",
    "AGGREGATE",
    "COUNT",
    "MIN",
    "nosuch",
];

/// One command in so many has something wrong with it.
const ODD_ONE_IN: usize = 4;
/// Left alone is ZRANK, as Redis 7.2 gave it an option, and BZPOPMIN, which would wait for ever if its time became 0.
const LEFT_ALONE: &[&str] = &["RENAME", "COPY", "ZRANK", "ZREVRANK", "BZPOPMIN", "BZMPOP"];

pub(crate) struct Commands {
    random: Random,
}

impl Commands {
    pub(crate) fn new(random: Random) -> Commands {
        Commands { random }
    }

    /// Commands that travel together: sometimes one, sometimes many.
    pub(crate) fn pipeline(&mut self) -> Vec<String> {
        (0..1 + self.random.below(40)).map(|_| self.next_command()).collect()
    }

    /// Everything that can be asked about the keys.
    pub(crate) fn readings() -> Vec<String> {
        let keys = KEYS.iter().chain([&LEX_KEY]);
        keys.flat_map(|key| ["ZRANGE # 0 -1 WITHSCORES", "ZCARD #", "TYPE #"].map(|read| read.replace('#', key)))
            .collect()
    }

    fn next_command(&mut self) -> String {
        let command = match self.random.below(10) {
            // Its scores must stay 0, so that nothing odd happens to it.
            0 => return self.lex_write(),
            1 => self.lex_read(),
            _ => self.command(),
        };
        let name = command.split(' ').next().unwrap_or_default();
        match self.random.one_in(ODD_ONE_IN) && !LEFT_ALONE.contains(&name) {
            true => spoil_behind_key(&mut self.random, &command, ODD_WORDS),
            false => command,
        }
    }

    fn lex_write(&mut self) -> String {
        match self.random.below(8) {
            0 => format!("ZREM {LEX_KEY} {}", self.several(MEMBERS)),
            1 => format!("ZREMRANGEBYLEX {LEX_KEY} {}", self.lex_range()),
            2 => format!("{} {LEX_KEY} {}", self.random.pick(&["ZPOPMIN", "ZPOPMAX"]), self.random.below(3)),
            _ => {
                let pairs: Vec<String> =
                    (0..1 + self.random.below(4)).map(|_| format!("0 {}", self.random.pick(MEMBERS))).collect();
                format!("ZADD {LEX_KEY} {}", pairs.join(" "))
            }
        }
    }

    fn lex_read(&mut self) -> String {
        let (range, limit) = (self.lex_range(), self.limit());
        match self.random.below(6) {
            0 => format!("ZLEXCOUNT {LEX_KEY} {range}"),
            1 => format!("ZRANGEBYLEX {LEX_KEY} {range} {limit}"),
            2 => format!("ZREVRANGEBYLEX {LEX_KEY} {range} {limit}"),
            3 => format!("ZRANGESTORE {} {LEX_KEY} {range} BYLEX {limit}", self.key()),
            _ => format!("ZRANGE {LEX_KEY} {range} BYLEX {} {limit}", self.random.pick(&["", "REV"])),
        }
    }

    fn command(&mut self) -> String {
        let (key, member) = (self.key(), self.random.pick(MEMBERS));
        match self.random.below(37) {
            0..=5 => {
                let pairs: Vec<String> = (0..1 + self.random.below(5)).map(|_| self.pair()).collect();
                format!("ZADD {key} {} {}", self.random.pick(ZADD_OPTIONS), pairs.join(" "))
            }
            6 => format!("ZADD {key} {} INCR {}", self.random.pick(ZADD_OPTIONS), self.pair()),
            7 => format!("ZINCRBY {key} {}", self.pair()),
            8 => format!("ZREM {key} {}", self.several(MEMBERS)),
            9 => format!("ZCARD {key}"),
            10 => format!("ZSCORE {key} {member}"),
            11 => format!("ZMSCORE {key} {}", self.several(MEMBERS)),
            12 => format!("ZCOUNT {key} {}", self.score_range()),
            13 => format!("{} {key} {member}", self.random.pick(&["ZRANK", "ZREVRANK"])),
            14 => format!("ZRANGE {key} {} {}", self.rank_range(), self.range_options()),
            15 => {
                let (range, limit) = (self.score_range(), self.limit());
                format!("ZRANGE {key} {range} BYSCORE {limit} {}", self.range_options())
            }
            16 => {
                format!("ZREVRANGE {key} {} {}", self.rank_range(), self.random.pick(&["", "WITHSCORES"]))
            }
            17 => {
                let name = self.random.pick(&["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]);
                let (range, limit) = (self.score_range(), self.limit());
                format!("{name} {key} {range} {} {limit}", self.random.pick(&["", "WITHSCORES"]))
            }
            18 => {
                let (range, limit) = (self.score_range(), self.limit());
                format!("ZRANGESTORE {key} {} {range} BYSCORE {limit}", self.key())
            }
            19 => {
                let from = self.key();
                format!("ZRANGESTORE {key} {from} {} {}", self.rank_range(), self.random.pick(&["", "REV"]))
            }
            20 => format!("{} {key}", self.random.pick(&["ZPOPMIN", "ZPOPMAX"])),
            21 => format!("{} {key} {}", self.random.pick(&["ZPOPMIN", "ZPOPMAX"]), self.random.below(4)),
            22 => {
                let count = 1 + self.random.below(4);
                format!("ZMPOP 2 {key} {} {} COUNT {count}", self.key(), self.random.pick(&["MIN", "MAX"]))
            }
            23 => format!("ZREMRANGEBYRANK {key} {}", self.rank_range()),
            24 => format!("ZREMRANGEBYSCORE {key} {}", self.score_range()),
            25 => {
                let name = self.random.pick(&["ZUNION", "ZINTER"]);
                format!("{name} {} {}", self.combination(), self.random.pick(&["", "WITHSCORES"]))
            }
            26 => {
                let name = self.random.pick(&["ZUNIONSTORE", "ZINTERSTORE"]);
                format!("{name} {key} {}", self.combination())
            }
            27 => format!("ZDIFF {} {}", self.counted_keys(3), self.random.pick(&["", "WITHSCORES"])),
            28 => format!("ZDIFFSTORE {key} {}", self.counted_keys(3)),
            29 => format!("ZINTERCARD {} LIMIT {}", self.counted_keys(3), self.random.below(4)),
            30 => format!("DEL {key}"),
            31 => format!("EXISTS {key}"),
            32 => format!("TYPE {key}"),
            33 => format!("RENAME {key} {}", self.key()),
            34 => format!("COPY {key} {} REPLACE", self.random.pick(&["a", "b"])),
            35 => format!("ZRANGE {key} 0 -1 WITHSCORES"),
            _ => match self.random.below(8) {
                0 => format!("SET {key} text"),
                1 => format!("HSET {key} f v"),
                2 => format!("PEXPIREAT {key} 33177117420123"),
                3 => format!("PEXPIRETIME {key}"),
                4 => format!("BZPOPMIN {key} {} 0.001", self.key()),
                5 => format!("BZMPOP 0.001 2 {key} {} MAX", self.key()),
                _ => format!("OBJECT ENCODING {key}"),
            },
        }
    }

    fn key(&mut self) -> &'static str {
        self.random.pick(KEYS)
    }

    fn pair(&mut self) -> String {
        format!("{} {}", self.random.pick(SCORES), self.random.pick(MEMBERS))
    }

    fn several(&mut self, words: &[&'static str]) -> String {
        let words: Vec<&str> = (0..1 + self.random.below(3)).map(|_| self.random.pick(words)).collect();
        words.join(" ")
    }

    fn rank_range(&mut self) -> String {
        format!("{} {}", self.random.below(19) as i64 - 9, self.random.below(19) as i64 - 9)
    }

    fn score_range(&mut self) -> String {
        let mut bound = || format!("{}{}", self.random.pick(&["", "", "("]), self.random.pick(SCORES));
        format!("{} {}", bound(), bound())
    }

    fn lex_range(&mut self) -> String {
        format!("{} {}", self.random.pick(LEX_BOUNDS), self.random.pick(LEX_BOUNDS))
    }

    fn limit(&mut self) -> String {
        if self.random.one_in(2) {
            return String::new();
        }
        // No offset below 0: since Redis 8 it depends on the encoding what that means.
        format!("LIMIT {} {}", self.random.below(6), self.random.below(6) as i64 - 1)
    }

    fn range_options(&mut self) -> &'static str {
        self.random.pick(&["", "REV", "WITHSCORES", "REV WITHSCORES", "WITHSCORES REV"])
    }

    fn counted_keys(&mut self, count_max: usize) -> String {
        let count = 1 + self.random.below(count_max);
        let keys: Vec<&str> = (0..count).map(|_| self.key()).collect();
        format!("{count} {}", keys.join(" "))
    }

    /// Keys, weights and aggregation of a union or an intersection. A sum of two is the same in either order; that of
    /// three is not where infinities meet, so three are never added.
    fn combination(&mut self) -> String {
        if self.random.one_in(3) {
            return format!("{} AGGREGATE {}", self.counted_keys(3), self.random.pick(&["MIN", "MAX"]));
        }
        let keys = self.counted_keys(2);
        let mut combination = keys.clone();
        if self.random.one_in(2) {
            let weights: Vec<&str> = keys.split(' ').skip(1).map(|_| self.random.pick(WEIGHTS)).collect();
            combination.push_str(&format!(" WEIGHTS {}", weights.join(" ")));
        }
        combination.push_str(self.random.pick(&["", " AGGREGATE SUM", " AGGREGATE MAX"]));
        combination
    }
}
