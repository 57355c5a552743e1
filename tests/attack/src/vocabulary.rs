//! The words that random requests are made of: names of keys of every kind, numbers at the edges, scripts, payloads.
//! Also how a server is filled so that those names mean something.

use std::time::{SystemTime, UNIX_EPOCH};

use wire::{Random, Reply, split_args};

use crate::talk::Talk;

/// What the server gave us before the attack began.
pub(crate) struct Vocabulary {
    /// What DUMP and FUNCTION DUMP gave.
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Digests of scripts that were loaded.
    pub(crate) digests: Vec<String>,
}

/// Elements that make a hash, set or sorted set a large one: the server is started with a threshold below this.
pub(crate) const LARGE: usize = 40;
pub(crate) const LISTPACK_ENTRIES_MAX: usize = 16;

const KEYS: &[&str] = &[
    "missing:1",
    "missing:2",
    "str:short",
    "str:long",
    "num:1",
    "num:max",
    "num:min",
    "float:1",
    "hash:small",
    "hash:large",
    "hash:ttl",
    "hash:large:ttl",
    "rec:1",
    "rec:2",
    "rec:3",
    "job:1",
    "job:2",
    "{tag}a",
    "{tag}b",
    "{tag}z",
    "hll:sparse",
    "hll:dense",
    "hll:damaged",
    "list:small",
    "list:large",
    "list:one",
    "zset:small",
    "zset:large",
    "zset:one",
    "zset:inf",
    "set:small",
    "set:numbers",
    "set:large",
    "cell:1",
    "cell:2",
    "run:1",
    "run:2",
    "reg:1",
    "reg:2",
    "sess:1",
    "sess:2",
    "sess:3",
    "stream:1",
    "stream:2",
    "bits",
    "soon:1",
    "soon:2",
    "gone:1",
    "",
    "{",
    "{}",
    "a b",
    "*",
    "key:1",
    "idx:updated_at",
    "idx:empty",
    "idx:filled",
    "idx:made",
    "idx:stamp",
    "idx:none",
];

const FIELDS: &[&str] = &[
    "updated_at",
    "state",
    "retries",
    "f1",
    "f2",
    "f3",
    "f7",
    "f30",
    "m1",
    "m5",
    "m30",
    "n",
    "",
    "f 1",
    "1",
    "-1",
    "inf",
];

const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "running",
    "queued",
    "failed",
    "value",
    "",
    "9223372036854775807",
    "-9223372036854775808",
    "1.5",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "NOW",
    "a b",
    "18446744073709551615",
    " 1",
    "01",
    "+1",
    "0x10",
    "1700000000000",
];

const INTEGERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "10",
    "64",
    "100",
    "1000",
    "-1",
    "-2",
    "-3",
    "-100",
    "127",
    "255",
    "256",
    "65535",
    "4294967295",
    "4294967296",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
    "18446744073709551615",
    "4611686018427387904",
    "-4611686018427387904",
    "1e3",
    "1.0",
    "",
    " 1",
    "abc",
    "-0",
    "00",
];

const DOUBLES: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.5",
    "1e308",
    "-1e308",
    "1e-320",
    "inf",
    "+inf",
    "-inf",
    "nan",
    "-nan",
    "1.7976931348623157e308",
    "(1",
    "3",
    "9223372036854775807",
    "1e400",
    "",
    "abc",
    "0x1p3",
    "5e-324",
    "-0",
];

const BOUNDS: &[&str] = &[
    "-inf",
    "+inf",
    "inf",
    "(1",
    "1",
    "0",
    "-1",
    "5",
    "(inf",
    "-",
    "+",
    "[a",
    "(a",
    "[m1",
    "(m5",
    "[",
    "(",
    "nan",
    "1e308",
    "100",
    "-100",
    "9223372036854775807",
    "-9223372036854775808",
    "",
    "1700000000000",
];

const PATTERNS: &[&str] = &[
    "*",
    "?*",
    "k*",
    "rec:*",
    "[a-z]*",
    "[^a]*",
    "[",
    "[a-",
    "\\",
    "\\*",
    "",
    "**********a",
    "*a*a*a*a*a*b",
    "str:?ong",
    "nothing:*",
];

const CHANNELS: &[&str] =
    &["ch:1", "ch:2", "ch:3", "", "__keyspace@0__:num:1", "__keyevent@0__:set", "__redis__:invalidate"];

const ENCODINGS: &[&str] = &["u8", "i8", "i64", "u63", "u64", "i1", "u1", "i65", "u0", "x8", "i16", ""];

const SCRIPTS: &[&str] = &[
    "return 1",
    "return KEYS[1]",
    "return redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], ARGV[1])",
    "return redis.pcall('HGETALL', KEYS[1])",
    "return redis.call('PING')",
    "redis.call('SET', 'num:1', '1') return redis.call('INCR', 'num:1')",
    "for i = 1, 50 do redis.call('HINCRBY', 'hash:large', 'f' .. i, i) end return redis.status_reply('DONE')",
    "return redis.error_reply('MY error')",
    "return {1, 2.5, 'three', {4, {5, nil, 6}}, false, true}",
    "redis.setresp(3) return redis.call('HGETALL', 'hash:small')",
    "redis.setresp(3) return {double = 1.5}",
    "return {map = {a = 1, b = {c = 2}}}",
    "return {set = {a = true, b = true}}",
    "return {big_number = '12345678901234567890'}",
    "return {verbatim_string = {string = 'text', format = 'txt'}}",
    "return cjson.encode({1, {a = 2}})",
    "return cjson.decode(ARGV[1])",
    "return cmsgpack.unpack(cmsgpack.pack({1, 2, {a = 3}}))",
    "return cmsgpack.unpack(ARGV[1])",
    "return struct.unpack('>I4', ARGV[1])",
    "return bit.bnot(tonumber(ARGV[1]))",
    "return string.rep('x', 100000)",
    "return tostring(redis.call)",
    "return loadstring('return 1')()",
    "local t = {} t[1] = t return t",
    "error('thrown')",
    "error({err = 'ERR thrown table'})",
    "return redis.sha1hex(ARGV[1])",
    "redis.log(redis.LOG_WARNING, 'from a script')",
    "return redis.breakpoint()",
    "return redis.call('EVAL', 'return 1', 0)",
    "return redis.call()",
    "return redis.call('GET', {})",
    "return redis.call('NOSUCH', 1)",
    "return ((((((((((1))))))))))",
    "return",
    "syntax error here",
    "#!lua flags=no-writes\nreturn redis.call('SET', KEYS[1], 1)",
    "#!lua flags=allow-oom,no-cluster\nreturn 1",
    "#!lua flags=nonsense\nreturn 1",
    "#!python\nreturn 1",
    "x = 1 return x",
    "return rawget(_G, 'redis')",
    "return setmetatable(_G, {})",
    "return string.format('%d %s %q', 1, 'a', 'b')",
    "return string.find(string.rep('a', 2000), '.-b')",
    "return tonumber(ARGV[1], 36)",
    "local s = 0 for i = 1, 20000 do s = s + i end return s",
    "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "local ok = pcall(redis.call, 'INCR', 'str:short') return ok",
    "return unpack({}, 1, 7000)",
    "return table.concat({1, 2, 3}, ',')",
    "return redis.call('CONFIG', 'GET', '*')",
    "return redis.acl_check_cmd('SET', 'a', 'b')",
    "return redis.replicate_commands()",
    "return math.random() >= 0",
    "return os.clock() >= 0",
];

const LIBRARIES: &[&str] = &[
    "#!lua name=lib1\nredis.register_function('f1', function(keys, args) return redis.call('GET', keys[1]) end)",
    "#!lua name=lib1\nredis.register_function('f2', function(keys, args) return #keys + #args end)",
    "#!lua name=lib2\nredis.register_function{function_name='f3', callback=function(keys, args) return redis.call('SET', keys[1], 'x') end, flags={'no-writes'}}",
    "#!lua name=lib2\nlocal t = {} redis.register_function('f4', function() t[#t + 1] = 1 return #t end)",
    "#!lua name=lib3\nreturn 1",
    "#!lua name=lib4\nredis.register_function('f1', function() return 1 end)",
    "#!lua name=\nreturn 1",
    "#!lua\nreturn 1",
    "no header",
    "#!lua name=lib5\nredis.call('SET', 'a', 'b')",
    "#!lua name=lib6\nerror('at load')",
    "#!lua name=lib7\nredis.register_function('holdfast', function() return 1 end)",
];

/// Ids of entries, and what stands for some.
const STREAM_IDS: &[&str] = &[
    "0",
    "0-0",
    "5-0",
    "5-1",
    "5-*",
    "(5-1",
    "-",
    "+",
    "$",
    ">",
    "99999999999999",
    "18446744073709551615-18446744073709551615",
    "5-x",
];

/// Functions that pass their arguments on to a command; the forms of requests use them.
pub(crate) const PASSING_LIBRARY: &str = "#!lua name=attack
redis.register_function('attack_call', function(keys, args) return redis.call(unpack(args)) end)
redis.register_function('attack_hook', function(keys, args) redis.call('SESSION.PUSH', keys[1], 'x') redis.pcall('SESSION.PUSH', 'sess:1', keys[1]) redis.pcall('SESSION.ACK', 'sess:2', 5) return redis.call('INCR', 'num:1') end)
redis.register_function('attack_pcall', function(keys, args) return redis.pcall(unpack(args)) end)
redis.register_function{function_name='attack_ro', callback=function(keys, args) return redis.call(unpack(args)) end, flags={'no-writes'}}";

/// What makes the names above mean something. A session runs some of these before it goes on.
const FILLING: &[&str] = &[
    "SET str:short abc",
    "SET num:1 10",
    "SET num:max 9223372036854775807",
    "SET num:min -9223372036854775808",
    "SET float:1 1.5",
    "SETRANGE str:long 5000 x",
    "SETBIT bits 100 1",
    "DEL hash:small",
    "HSET hash:small f1 1 f2 two f3 3.5 n -7",
    "HSET hash:ttl f1 1 f2 2 f3 3",
    "HPEXPIRE hash:ttl 200000 FIELDS 1 f1",
    "HPEXPIRE hash:ttl 3 FIELDS 1 f2",
    "HSET rec:1 updated_at 1700000000000 state running retries 0",
    "HSET rec:2 updated_at 1700000000001 state queued retries 1",
    "HSET rec:3 updated_at x state failed",
    "HSET job:1 updated_at 5 state running",
    "HSET job:2 n 12 state running",
    "SET {tag}a a",
    "HSET {tag}b updated_at 9 f1 1",
    "ZADD {tag}z 1 m1",
    "DEL list:small list:large",
    "RPUSH list:small e1 e2 e3 e1 12",
    "LPUSH list:one e1",
    "DEL zset:small",
    "ZADD zset:small 1 m1 2 m2 2 m3 5 m5",
    "ZADD zset:one 0 m1",
    "PFADD hll:sparse a b c",
    "PFADD hll:dense a b c",
    "PFDEBUG TODENSE hll:dense",
    "PFADD hll:damaged a b c",
    "SETRANGE hll:damaged 17 zzz",
    "ZADD zset:inf -inf low +inf high 0 m1",
    "DEL set:small set:numbers",
    "SADD set:small m1 m2 m3 12",
    "SADD set:numbers 1 2 3 -70000 5000000000",
    "XADD stream:1 MAXLEN ~ 300 * f1 v f2 7",
    "XADD stream:1 * f1 v",
    "XADD stream:2 5-* f1 v",
    "XGROUP CREATE stream:1 group 0 MKSTREAM",
    "XREADGROUP GROUP group consumer COUNT 2 STREAMS stream:1 >",
    "CELL.SET cell:1 one",
    "CELL.SET cell:1 two",
    "CELL.INIT cell:2 12",
    "RUN.APPEND run:1 k1 RunStarted one",
    "RUN.APPEND run:1 k2 StepStarted two STEP m1",
    "RUN.APPEND run:2 * RunFailed {}",
    "REG.PUT reg:1 1 one",
    "REG.PUT reg:1 4 four ORDERED",
    "REG.INCRBY reg:2 1.7 12",
    "REG.SNAPSHOT PREFIX reg: POSITION here STORE reg:check",
    "SESSION.OPEN ID sess:1 TTL 600000 CAP 1 name value",
    "SESSION.PUSH sess:1 one",
    "SESSION.PUSH sess:1 two",
    "SESSION.CALL sess:1 1 LOW 1 SET num:1 10",
    "SESSION.OPEN ID sess:2 TTL 600000",
    "SESSION.PUSH sess:2 three",
    "SESSION.OPEN ID sess:3 TTL 4",
    "SET soon:1 x PX 2",
    "HSET soon:2 updated_at 3",
    "PEXPIRE soon:2 3",
    "SET gone:1 x PXAT 1",
    "SET \"\" empty",
    "DEL missing:1 missing:2",
    "IDX.CREATE idx:empty PREFIX 1 nothing: FIELD n",
    "IDX.CREATE idx:filled PREFIX 2 rec: job: FIELD updated_at",
    "IDX.CREATE idx:stamp PREFIX 1 job: FIELD n STAMP",
    "IDX.DROP idx:made",
    "SELECT 1",
    "SET num:1 1",
    "HSET rec:1 updated_at 2",
    "SELECT 0",
];

impl Vocabulary {
    /// Fills an empty server and collects what it answers.
    pub(crate) fn collect(talk: &mut Talk) -> Result<Vocabulary, String> {
        fill(talk)?;
        let mut payloads = Vec::new();
        for key in [
            "str:short",
            "num:1",
            "hash:small",
            "hash:large",
            "zset:small",
            "zset:large",
            "list:small",
            "list:large",
            "set:small",
            "set:numbers",
            "cell:1",
            "run:1",
            "reg:1",
            "rec:1",
            "stream:1",
        ] {
            if let Reply::Bulk(payload) = talk.run(&["DUMP", key])? {
                payloads.push(payload);
            }
        }
        if let Reply::Bulk(payload) = talk.run(&["FUNCTION", "DUMP"])? {
            payloads.push(payload);
        }
        let mut digests = Vec::new();
        for script in SCRIPTS.iter().take(12) {
            if let Reply::Bulk(digest) = talk.run(&["SCRIPT", "LOAD", script])? {
                digests.push(String::from_utf8_lossy(&digest).into_owned());
            }
        }
        Ok(Vocabulary { payloads, digests })
    }

    pub(crate) fn key(&self, random: &mut Random) -> Vec<u8> {
        match random.below(60) {
            0 => vec![b'k'; 1_000],
            1 => vec![b'k'; 70_000],
            2 => bytes(random, 12),
            3 => format!("key:{}", random.below(40)).into_bytes(),
            _ => random.pick(KEYS).into(),
        }
    }

    /// A key that holds, or held, what commands of this group of the documentation are for.
    pub(crate) fn fitting_key(&self, group: &str, random: &mut Random) -> Option<Vec<u8>> {
        let prefixes: &[&str] = match group {
            "string" => &["str:", "num:", "float:", "missing:"],
            "bitmap" => &["bits", "str:", "missing:"],
            "hyperloglog" => &["hll:", "missing:"],
            "hash" => &["hash:", "rec:", "job:"],
            "sorted-set" | "geo" => &["zset:", "idx:"],
            "list" => &["list:"],
            "set" => &["set:"],
            "session" => &["sess:"],
            "stream" => &["stream:"],
            _ => return None,
        };
        let fits = |key: &&&str| prefixes.iter().any(|prefix| key.starts_with(prefix));
        let fitting: Vec<_> = KEYS.iter().filter(fits).copied().collect();
        Some(random.pick(&fitting).into())
    }

    /// A value for an argument of which the documentation tells only the name.
    pub(crate) fn string(&self, name: &str, random: &mut Random) -> Vec<u8> {
        if random.one_in(40) {
            return self.odd(random);
        }
        match name {
            "field" => self.field(random),
            "member" => {
                random.pick(&["m1", "m2", "m3", "m5", "m30", "", "low", "high", "f1", "1", "12", "-70000"]).into()
            }
            "element" | "pivot" => random.pick(&["e1", "e2", "e3", "e900", "", "12", "-70000", "m1"]).into(),
            "group" | "groupname" => random.pick(&["group", "group", "group", "other", ""]).into(),
            "consumer" | "consumername" => random.pick(&["consumer", "second", "third", ""]).into(),
            "id" | "last-id" | "threshold" | "end" | "max_deleted_entry_id" => random.pick(STREAM_IDS).into(),
            "min-idle-time" => random.pick(&["0", "0", "1", "100000", "-1"]).into(),
            "min" | "max" | "start" | "stop" if random.one_in(4) => random.pick(STREAM_IDS).into(),
            "min" | "max" | "start" | "stop" => random.pick(BOUNDS).into(),
            "channel" | "shardchannel" => random.pick(CHANNELS).into(),
            "index" | "name" => random
                .pick(&["idx:updated_at", "idx:empty", "idx:filled", "idx:made", "idx:stamp", "idx:none", "num:1", ""])
                .into(),
            "prefix" => random.pick(&["rec:", "job:", "", "nothing:", "r", "{tag}", "hash:", "soon:", "reg:"]).into(),
            "script" => random.pick(SCRIPTS).into(),
            "function-code" => random.pick(LIBRARIES).into(),
            "library-name" => random.pick(&["lib1", "lib2", "lib4", "none", "holdfast"]).into(),
            "function" => random
                .pick(&["f1", "f2", "f3", "f4", "attack_ro", "attack_hook", "compare_and_swap", "none", ""])
                .into(),
            "sha1" if !self.digests.is_empty() => self.digests[random.below(self.digests.len())].clone().into_bytes(),
            "serialized-value" if !self.payloads.is_empty() => self.payload(random),
            // What REG.RESTORE takes and REG.SNAPSHOT makes; blobs that are whole come from the keys.
            "source-key" | "destination" if !random.one_in(3) => "reg:check".into(),
            "version" => random
                .pick(&["1", "2", "3", "4", "5", "0", "1.7", "1.8", "0.9", "18446744073709551615", "7.", "-1", "01"])
                .into(),
            "encoding" => random.pick(ENCODINGS).into(),
            "parameter" => random.pick(PATTERNS).into(),
            "command" | "command-name" => {
                random.pick(&["GET", "SET", "client|kill", "CLIENT", "ZUNIONSTORE", "EVAL", "none", ""]).into()
            }
            "section" => random
                .pick(&["all", "everything", "memory", "keyspace", "commandstats", "latencystats", "none", ""])
                .into(),
            "pattern" => random.pick(PATTERNS).into(),
            "type" => random.pick(&["string", "hash", "zset", "set", "stream", "list", "none", ""]).into(),
            "option" => random.pick(&["MERGE", "NOFLUSH", "NOSAVE", "x"]).into(),
            _ => self.value(random),
        }
    }

    pub(crate) fn integer(&self, name: &str, random: &mut Random) -> Vec<u8> {
        match name {
            // Most must be for real, or nothing lives long enough to be attacked.
            "seconds" | "milliseconds" | "ttl" if !random.one_in(6) => {
                (100_000 + random.below(100_000)).to_string().into_bytes()
            }
            "timeout" if !random.one_in(8) => random.pick(&["1", "5", "30"]).into(),
            // So few that requests meet those that there were.
            "request-id" | "lowest-id" if !random.one_in(8) => random.below(12).to_string().into_bytes(),
            "client-id" if random.one_in(2) => random.below(200).to_string().into_bytes(),
            "db" | "index" | "index1" | "index2" | "destination-db" if !random.one_in(4) => {
                random.pick(&["0", "1", "2", "15"]).into()
            }
            "protover" => random.pick(&["2", "3", "3", "2", "1", "4"]).into(),
            "cursor" if random.one_in(2) => b"0".to_vec(),
            _ => random.pick(INTEGERS).into(),
        }
    }

    pub(crate) fn double(&self, name: &str, random: &mut Random) -> Vec<u8> {
        match name {
            "timeout" if !random.one_in(8) => random.pick(&["0.001", "0.01", "0.02"]).into(),
            "min" | "max" => random.pick(BOUNDS).into(),
            _ => random.pick(DOUBLES).into(),
        }
    }

    pub(crate) fn unix_time(&self, name: &str, random: &mut Random) -> Vec<u8> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis() as u64;
        let now = if name.contains("milliseconds") { now } else { now / 1000 };
        match random.below(6) {
            0 => now.to_string().into_bytes(),
            1 => random.pick(INTEGERS).into(),
            _ => (now + 100_000 + random.next_u64() % 100_000).to_string().into_bytes(),
        }
    }

    pub(crate) fn pattern(&self, random: &mut Random) -> Vec<u8> {
        random.pick(PATTERNS).into()
    }

    /// Something that belongs nowhere.
    pub(crate) fn odd(&self, random: &mut Random) -> Vec<u8> {
        match random.below(9) {
            0 => Vec::new(),
            1 => vec![b'x'; 100_000],
            2 => bytes(random, 30),
            3 => random.pick(INTEGERS).into(),
            4 => random.pick(DOUBLES).into(),
            5 => random.pick(BOUNDS).into(),
            6 => self.key(random),
            7 => random
                .pick(&[
                    "LIMIT",
                    "WITHSCORES",
                    "NX",
                    "XX",
                    "FIELDS",
                    "COUNT",
                    "MATCH",
                    "GET",
                    "EX",
                    "PERSIST",
                    "KEEPTTL",
                    "FILTER",
                ])
                .into(),
            _ => random.pick(VALUES).into(),
        }
    }

    fn field(&self, random: &mut Random) -> Vec<u8> {
        if random.one_in(50) { vec![b'f'; 5_000] } else { random.pick(FIELDS).into() }
    }

    fn value(&self, random: &mut Random) -> Vec<u8> {
        match random.below(40) {
            0 => vec![b'v'; 3_000],
            1 => vec![b'v'; 200_000],
            2 => bytes(random, 40),
            _ => random.pick(VALUES).into(),
        }
    }

    /// What DUMP gave, sometimes damaged.
    fn payload(&self, random: &mut Random) -> Vec<u8> {
        let mut payload = self.payloads[random.below(self.payloads.len())].clone();
        if random.one_in(3) && !payload.is_empty() {
            let at = random.below(payload.len());
            payload[at] = random.next_u64() as u8;
        }
        if random.one_in(10) {
            payload.truncate(random.below(payload.len() + 1));
        }
        payload
    }
}

/// Puts something of every kind into a server.
pub(crate) fn fill(talk: &mut Talk) -> Result<(), String> {
    for number in 0..FILLINGS {
        // Some of it is an error on purpose, or where it was done before.
        talk.run(&filling_number(number))?;
    }
    talk.run(&["FUNCTION", "LOAD", "REPLACE", PASSING_LIBRARY]).map(drop)
}

/// One request of the filling, for a session that begins.
pub(crate) fn some_filling(random: &mut Random) -> Vec<Vec<u8>> {
    filling_number(random.below(FILLINGS))
}

const FILLINGS: usize = FILLING.len() + 5;

fn filling_number(number: usize) -> Vec<Vec<u8>> {
    let many = |start: &str, each: fn(usize) -> [String; 2]| {
        let mut args = words(start);
        args.extend((0..LARGE).flat_map(each).map(String::into_bytes));
        args
    };
    match number.checked_sub(FILLING.len()) {
        None => words(FILLING[number]),
        Some(0) => many("HSET hash:large", |i| [format!("f{i}"), i.to_string()]),
        Some(1) => many("HSET hash:large:ttl", |i| [format!("f{i}"), i.to_string()]),
        Some(2) => many("SADD set:large", |i| [format!("m{i}"), i.to_string()]),
        Some(3) => many("RPUSH list:large", |i| [format!("e{i}"), i.to_string()]),
        Some(_) => many("ZADD zset:large", |i| [(i / 3).to_string(), format!("m{i}")]),
    }
}

fn words(line: &str) -> Vec<Vec<u8>> {
    split_args(line).expect("a line of the table above")
}

pub(crate) fn bytes(random: &mut Random, len_max: usize) -> Vec<u8> {
    (0..random.below(len_max)).map(|_| random.next_u64() as u8).collect()
}

/// The number that an argument is, if it is one.
pub(crate) fn fast_number(arg: &[u8]) -> Option<i128> {
    std::str::from_utf8(arg).ok()?.trim().trim_start_matches('#').parse().ok()
}
