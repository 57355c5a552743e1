//! Random requests that change keys: every write command of the table, written as COMMAND DOCS says. Knows which
//! arguments make commands meet at the same keys; refuses to know what they do there.

use engine::command::{CommandRow, Flags, registry};
use engine::execution::docs::{Argument, ArgumentKind};
use fastrand::Rng;
use std::collections::BTreeSet;

pub(crate) struct Source {
    pub(crate) random: Rng,
    /// The present, for arguments that are instants.
    pub(crate) now_ms: u64,
    /// Replies to DUMP, for RESTORE.
    payloads: Vec<Vec<u8>>,
    /// The last reply to FUNCTION DUMP.
    libraries: Vec<u8>,
    /// Requests that follow.
    steps_left: &'static [&'static str],
    /// How many requests about streams follow.
    streams_left: u8,
    /// What the request is about, if commands of one group need a key of their own type.
    group: Option<&'static str>,
    /// Commands that half of the requests ask for.
    wanted: Vec<&'static CommandRow>,
}

/// Commands that leave little behind for others.
const RARE: &[&str] = &["flushall", "flushdb", "swapdb"];
const READS: &str = "get mget exists strlen pttl hgetall hget hlen hpttl dump getbit zrange zrank zcount zunion geosearch geopos pfcount \
                     sort_ro smembers sismember sinter sdiff lrange lindex lpos cell.getv cell.mget cell.history run.events \
                     run.snapshot run.project reg.get reg.mget xlen";

/// Commands that change something only after others, with those.
const STEPS: &[(&str, &[&str])] = &[
    ("hpersist", &["hset timed f0 1 f1 2", "hexpire timed 100 fields 2 f0 f1", "hpersist timed fields 1 f0"]),
    ("hgetex", &["hset timed f0 1", "hgetex timed ex 100 fields 1 f0"]),
    ("persist", &["set timed:1 v ex 100", "persist timed:1"]),
    ("delifeq", &["set string:1 v", "delifeq string:1 v"]),
    ("delex", &["set string:1 v", "delex string:1 ifeq v"]),
    // Only one in its first form can be made dense.
    ("pfdebug", &["del hll:1", "pfadd hll:1 a", "pfdebug todense hll:1"]),
    ("pfmerge", &["pfadd hll:1 a", "pfadd hll:2 a b", "pfmerge hll:3 hll:1 hll:2", "del hll:3"]),
    ("smove", &["sadd set:1 a b", "smove set:1 set:2 a", "smove set:2 set:1 a"]),
    ("lset", &["rpush list:1 a b c", "lset list:1 -2 another"]),
    ("lrem", &["rpush list:1 a b c", "lrem list:1 1 b"]),
    ("linsert", &["rpush list:1 a b c", "linsert list:1 before b another"]),
    ("zremrangebylex", &["zadd sorted-set:1 0 a 0 b 0 c", "zremrangebylex sorted-set:1 [b [b"]),
    ("zremrangebyscore", &["zadd sorted-set:1 0 a 1 b 2 c", "zremrangebyscore sorted-set:1 1 1"]),
    ("cell.del", &["cell.set cell:1 v", "cell.del cell:1"]),
    // Prefixes end in a separator.
    ("cell.drop", &["cell.set branch/1 v", "cell.drop branch/"]),
    ("cell.fork", &["cell.set branch/1 v", "cell.drop fork/", "cell.fork branch/ fork/"]),
    ("hcas", &["hset timed f0 1", "hcas timed f0 1 2"]),
];

/// Groups whose commands find a value of their type seldom where those of all others meet.
const TYPES: &[&str] = &["hash", "set", "sorted-set", "list"];

/// Types of events, so that runs begin, end and have steps.
const EVENT_TYPES: &[&str] =
    &["RunStarted", "RunPaused", "RunCompleted", "RunFailed", "StepStarted", "StepCompleted", "StepCorrected", "other"];

impl Source {
    pub(crate) fn new(seed: u64) -> Source {
        Source {
            random: Rng::with_seed(seed),
            now_ms: 0,
            payloads: Vec::new(),
            libraries: Vec::new(),
            steps_left: &[],
            streams_left: 0,
            group: None,
            wanted: Vec::new(),
        }
    }

    /// Every command whose effects are to be tested.
    pub(crate) fn writes() -> impl Iterator<Item = &'static CommandRow> {
        // DEBUG is for tests alone; of what it does, POPULATE and RELOAD are asked for below.
        registry().rows().iter().copied().filter(|row| row.command.flags.has(Flags::WRITE) && row.full_name != "debug")
    }

    pub(crate) fn request(&mut self) -> Vec<Vec<u8>> {
        let writes: Vec<&CommandRow> = Source::writes().collect();
        if let Some((step, rest)) = self.steps_left.split_first() {
            self.steps_left = rest;
            return words(step);
        }
        if self.streams_left > 0 {
            self.streams_left -= 1;
            let of_streams: Vec<&CommandRow> =
                writes.iter().copied().filter(|row| row.full_name.starts_with('x')).collect();
            let command = self.pick(&of_streams).full_name.clone();
            return self.about_streams(&command);
        }
        let is_wanted = !self.wanted.is_empty() && self.random.bool();
        let row = match self.random.u8(..24) {
            _ if is_wanted => *self.random.choice(&self.wanted).expect("there are some"),
            0 => return words(&format!("select {}", self.database())),
            1 => {
                return match self.random.u8(..5) {
                    0 => self.wide_sorted_set(),
                    1 => self.wide_set(),
                    2 => self.many_elements(),
                    3 => self.long_list(),
                    _ => self.wide_hash(),
                };
            }
            2 => {
                let keys = self.random.u8(..100);
                return words(&format!("debug populate {keys} cold {}", self.pick(&[0, 30, 300, 3_000])));
            }
            3 if self.random.u8(..8) == 0 => return words("debug reload"),
            // What was recorded says how many versions stay, not the setting at a replay.
            3 if self.random.u8(..8) == 0 => {
                return words(&format!("config set cell-max-versions {}", self.pick(&[0, 1, 2, 5, 128])));
            }
            7 => return self.call(),
            3..=6 => self.read(),
            _ => self.pick(&writes),
        };
        if RARE.contains(&&*row.full_name) && self.random.u8(..12) > 0 {
            return self.request();
        }
        if ["idx.create", "idx.drop", "idx.limit", "sweep", "claim"].contains(&&*row.full_name) {
            return self.about_indexes(&row.full_name);
        }
        if let Some((_, steps)) = STEPS.iter().find(|(name, _)| *name == row.full_name)
            && self.random.u8(..4) > 0
        {
            self.steps_left = &steps[1..];
            return words(steps[0]);
        }
        match &*row.full_name {
            "reg.snapshot" => return words("reg.snapshot store checkpoint"),
            "reg.restore" => {
                return words(&format!("reg.restore from checkpoint {}", self.pick(&["replace", "merge"])));
            }
            _ => {}
        }
        if row.full_name.starts_with("session.") {
            return self.about_sessions(&row.full_name);
        }
        if row.full_name.starts_with('x') {
            // A consumer needs a group, which needs a stream: they come together.
            if self.random.u8(..8) == 0 {
                self.streams_left = 40;
            }
            return self.about_streams(&row.full_name);
        }
        if let Some(subcommand) = row.full_name.strip_prefix("function|") {
            return self.about_functions(subcommand);
        }
        let mut request = vec![row.full_name.clone().into_bytes()];
        self.group = Some(row.group()).filter(|group| TYPES.contains(group));
        self.several(row.command.docs.arguments, &mut request);
        self.group = None;
        request
    }

    /// Asks more often for the commands that have changed nothing so far: they were not tested. False when there are none.
    pub(crate) fn want_missing(&mut self, recorded: &BTreeSet<String>) -> bool {
        self.wanted = Source::writes().filter(|row| !recorded.contains(&*row.full_name)).collect();
        !self.wanted.is_empty()
    }

    /// The full name of a request's command.
    pub(crate) fn name_of(request: &[Vec<u8>]) -> String {
        let name = match &request[0][..] {
            b"function" | b"xgroup" => [&request[0][..], b"|", &request[1]].concat(),
            name => name.to_vec(),
        };
        String::from_utf8_lossy(&name).into_owned()
    }

    /// A request that changes nothing.
    pub(crate) fn read_request(&mut self) -> Vec<Vec<u8>> {
        let row = self.read();
        let mut request = vec![row.full_name.clone().into_bytes()];
        self.several(row.command.docs.arguments, &mut request);
        request
    }

    fn read(&mut self) -> &'static CommandRow {
        let name = self.pick(&READS.split_whitespace().collect::<Vec<_>>());
        registry().find(name.as_bytes()).expect("these are commands")
    }

    /// Keeps what a later request can use.
    pub(crate) fn hear(&mut self, request: &[Vec<u8>], reply: &[u8]) {
        let payload = reply.iter().position(|byte| *byte == b'\n').filter(|at| reply.len() > at + 3);
        let Some(payload) = payload.map(|at| reply[at + 1..reply.len() - 2].to_vec()) else { return };
        match &request[0][..] {
            b"dump" => {
                self.payloads.push(payload);
                if self.payloads.len() > 8 {
                    self.payloads.remove(0);
                }
            }
            b"function" if request[1] == b"dump" => self.libraries = payload,
            _ => {}
        }
    }

    /// Few sessions, which live longer than the history: a follower does not know when they were renewed.
    fn about_sessions(&mut self, command: &str) -> Vec<Vec<u8>> {
        let sid = self.sid();
        let number = self.random.u8(..12);
        let arguments = match command {
            "session.open" => {
                let capabilities = self.pick(&["", "", " cap 1 n v", " cap 2 n v lang rust"]);
                format!("id {sid} ttl {}{capabilities}", self.pick(&[100_000_000, 200_000_000]))
            }
            "session.push" => {
                let mut request = words(&format!("session.push {sid}"));
                request.push(self.value());
                return request;
            }
            "session.ack" => format!("{sid} {number}"),
            "session.retry" => format!("{} limit {number}", self.pick(&[0, self.now_ms, 1 << 50])),
            "session.hook" => self.pick(&["created none", "expired none"]).to_owned(),
            // Only RESP3 has frames for requests.
            "session.attach" if self.random.bool() => return words("hello 3"),
            "session.close" if self.random.u8(..4) > 0 => return self.about_sessions("session.open"),
            _ => sid,
        };
        words(&format!("{command} {arguments}"))
    }

    /// A request of a session, which may have been sent before.
    fn call(&mut self) -> Vec<Vec<u8>> {
        let (sid, id) = (self.sid(), self.random.u8(1..30));
        let mut request = words(&format!("session.call {sid} {id} low {}", self.random.u8(..=id)));
        request.extend(self.request());
        request
    }

    fn sid(&mut self) -> String {
        self.pick(&["sid:1", "sid:1", "sid:2", "sid:3"]).to_owned()
    }

    /// Few streams, groups and ids, so that entries are delivered, claimed, acknowledged and deleted.
    fn about_streams(&mut self, command: &str) -> Vec<Vec<u8>> {
        let key = match self.random.u8(..4) {
            0 => self.key(),
            _ => self.pick(&["stream:1", "stream:1", "stream:2"]).into(),
        };
        let (group, consumer) = (self.pick(&["g1", "g1", "g2"]), self.pick(&["c1", "c2", "c3"]));
        let (ms, seq) = (self.pick(&[1, 30, 59, 59]), self.random.u8(..30));
        let id = format!("{ms}-{seq}");
        if self.random.u8(..60) == 0 {
            return vec![b"del".to_vec(), key];
        }
        let trim =
            self.pick(&["maxlen 0", "maxlen 5", "maxlen ~ 20", "maxlen = 30", "minid 20", "minid ~ 40-1 limit 0"]);
        let idle = self.pick(&["0", "0", "5", "1000"]);
        let references = self.pick(&["", "", "keepref", "delref", "acked"]);
        let after = match command {
            "xadd" => {
                let trim = if self.random.u8(..4) == 0 { format!("{references} {trim}") } else { String::new() };
                let id = match self.random.u8(..4) {
                    0 => id,
                    // Behind it no id of those above is new.
                    1 if key == b"stream:2" => "*".into(),
                    _ => format!("{ms}-*"),
                };
                let fields = self.pick(&["f1 v f2 7", "f1 v f2 12345", "f1 w", "a b c d e f"]);
                match self.random.u8(..6) {
                    0 => format!("{trim} idmp {consumer} {seq} * {fields}"),
                    1 => format!("idmpauto {consumer} {trim} * {fields}"),
                    _ => format!("{trim} {id} {fields}"),
                }
            }
            "xtrim" => format!("{trim} {references}"),
            "xdelex" => format!("{references} ids 3 {id} {ms}-0 {ms}-1"),
            "xackdel" => format!("{group} {references} ids 3 {id} {ms}-0 {ms}-1"),
            "xdel" => format!("{id} {ms}-0 {ms}-1"),
            "xcfgset" => self.pick(&["idmp-duration 5", "idmp-maxsize 2", "idmp-duration 9 idmp-maxsize 3"]).into(),
            "xsetid" if self.random.bool() => format!("{} entriesadded 500 maxdeletedid {id}", self.now_ms + 10),
            "xsetid" => id,
            "xgroup|create" => {
                format!("{group} {} {}", self.pick(&["0", "$", "7-1"]), self.pick(&["mkstream", "", "entriesread 3"]))
            }
            "xgroup|setid" => format!("{group} {}", self.pick(&["0", "$", "7-1", "0 entriesread 2"])),
            "xgroup|destroy" if self.random.u8(..3) > 0 => return self.about_streams("xadd"),
            "xgroup|destroy" => group.into(),
            "xgroup|createconsumer" | "xgroup|delconsumer" => format!("{group} {consumer}"),
            "xack" => format!("{group} {id} {ms}-0 {ms}-1"),
            "xclaim" => {
                let options =
                    ["", "force", "justid", "idle 7 retrycount 9 force", "time 5 lastid 9-9", "force lastid 3"];
                let options = self.pick(&options);
                format!("{group} {consumer} {idle} {id} {ms}-0 {options}")
            }
            "xnack" => {
                let mode = self.pick(&["silent", "fail", "fatal"]);
                let options = self.pick(&["", "force", "retrycount 3", "force retrycount 0"]);
                format!("{group} {mode} ids 3 {id} {ms}-0 {id} {options}")
            }
            "xautoclaim" => format!("{group} {consumer} {idle} 0 count 3"),
            "xreadgroup" => {
                let options = self.pick(&[
                    "",
                    "count 2",
                    "noack",
                    "block 1",
                    "count 3 noack",
                    "claim 0",
                    "claim 5 count 2 block 1",
                ]);
                let (from, mut request) = (
                    self.pick(&[">", ">", "0", "5-1"]),
                    words(&format!("xreadgroup group {group} {consumer} {options} streams")),
                );
                request.retain(|word| !word.is_empty());
                request.extend([key, from.into()]);
                return request;
            }
            _ => String::new(),
        };
        let mut request = words(&command.replace('|', " "));
        request.push(key);
        request.extend(words(&after).into_iter().filter(|word| !word.is_empty()));
        request
    }

    /// Few indexes, of the fields that most requests are about.
    fn about_indexes(&mut self, command: &str) -> Vec<Vec<u8>> {
        let name = self.pick(&["index:1", "index:2"]);
        match command {
            "idx.create" => {
                let (prefix, field) = (self.pick(&["\"\"", "a", "c", "spare:"]), self.random.u8(..4));
                let condition = self.pick(&["", " only f2 2 v 1", " exclude f2 1 v"]);
                let stamp = self.pick(&["", "", " stamp"]);
                let groups = self.pick(&["", " group f2", " group f3 held f2 2 v 1", " held f1 1 1"]);
                let line = format!("idx.create {name} prefix 1 {prefix} field f{field}{condition}{groups}{stamp}");
                words(&line).into_iter().map(|word| if word == b"\"\"" { Vec::new() } else { word }).collect()
            }
            "idx.drop" => words(&format!("idx.drop {name}")),
            "idx.limit" => {
                let index = self.pick(&["index:groups", "index:groups", "index:all", name]);
                let scope = self.pick(&["all", "each", "group v", "group 1", "group value"]);
                let limits = [
                    "held 1",
                    "held 2",
                    "held none",
                    "held default",
                    "rate 1 5",
                    "rate 100 1000 burst 2",
                    "rate none",
                    "pause yes",
                    "pause no",
                    "weight 3",
                    "reset",
                    "reset",
                ];
                words(&format!("idx.limit {index} {scope} {}", self.pick(&limits)))
            }
            "claim" => self.claim(name),
            _ => {
                let (index, before) = (self.pick(&["index:all", "index:some", name]), self.random.u16(..2_000));
                let retry = self.pick(&["", " retry f0 3 else 2 f1 NOW f2 v"]);
                let condition = self.pick(&["", " where f2 2 v value"]);
                words(&format!("sweep {index} before {before}{condition}{retry} set 1 f1 NOW+5 limit 5"))
            }
        }
    }

    /// A claim of records, with every option now and then. Some of them leave records where they are found again.
    fn claim(&mut self, name: &str) -> Vec<Vec<u8>> {
        let indexes = [
            "1 index:all",
            "1 index:some",
            "1 index:groups",
            "2 index:groups index:all",
            "2 index:some index:all",
            "",
            "2 index:all ",
        ];
        let indexes = self.pick(&indexes);
        let mut line = match indexes {
            "" => format!("claim 1 {name}"),
            "2 index:all " => format!("claim 2 index:all {name}"),
            indexes => format!("claim {indexes}"),
        };
        let options: [&[&str]; 10] = [
            &["", "", " min -inf", " min (3", " min NOW-100000"],
            &["", " max +inf", " max 500", " max (40", " max NOW", " max NOW+2000"],
            &["", "", "", " where f2 2 v value", " where f2 1 v where f0 3 1 2 3"],
            &[
                " set 1 f1 NOW+5",
                " set 2 f1 NOW+5000 f2 v",
                " set 1 f4 claimed",
                " set 1 f3 v",
                " set 2 f1 NOW+50 f3 v",
            ],
            &["", "", " counter f0", " counter f9", " counter f0 upto 3 else 2 f1 NOW f2 v"],
            &["", "", " count 2", " count 50"],
            &["", "", " order score", " order fair"],
            &["", "", " block 1", " block 0"],
            &["", "", " keys", " fields 2 f1 f9"],
            &["", "", " withttl"],
        ];
        options.iter().for_each(|some| line.push_str(self.pick(some)));
        words(&line)
    }

    /// Few libraries, whose functions are in each other's way now and then.
    fn about_functions(&mut self, subcommand: &str) -> Vec<Vec<u8>> {
        let name = self.pick(&["one", "two", "three"]);
        let mut request = words(&format!("function {subcommand}"));
        match subcommand {
            // Without anything to restore, something is dumped.
            "restore" if self.libraries.is_empty() || self.random.bool() => return words("function dump"),
            "restore" => {
                let policy = self.pick(&["append", "replace", "flush"]);
                request.extend([self.libraries.clone(), policy.into()]);
            }
            "load" => {
                let (function, value) = (self.random.u8(..6), self.random.u8(..));
                let code =
                    format!("#!lua name={name}\nredis.register_function('f{function}', function() return {value} end)");
                request.extend([b"replace".to_vec(), code.into_bytes()]);
            }
            "delete" => request.push(name.into()),
            _ if self.random.u8(..4) > 0 => return self.request(),
            _ => {}
        }
        request
    }

    /// Elements for a HyperLogLog, so many that it becomes dense now and then.
    fn many_elements(&mut self) -> Vec<Vec<u8>> {
        let mut request = vec![b"pfadd".to_vec(), self.key()];
        let (from, count) = (self.random.u32(..10_000), self.pick(&[1, 30, 400, 2_000]));
        request.extend((from..from + count).map(|number| number.to_string().into_bytes()));
        request
    }

    fn wide_hash(&mut self) -> Vec<Vec<u8>> {
        let mut request = vec![b"hset".to_vec(), self.key()];
        let count = self.pick(&[3, 9, 30, 100, 520, 1_100]);
        for number in 0..count {
            request.extend([format!("f{number}").into_bytes(), number.to_string().into_bytes()]);
        }
        request
    }

    fn wide_sorted_set(&mut self) -> Vec<Vec<u8>> {
        let mut request = vec![b"zadd".to_vec(), self.key()];
        // One score for all makes names matter, and lets ranges of them mean something.
        let (count, scores) = (self.pick(&[3, 9, 30, 100, 140, 520]), self.pick(&[1, 5, 1_000]));
        for number in 0..count {
            let score = self.random.u32(..scores);
            request.extend([score.to_string().into_bytes(), format!("f{number}").into_bytes()]);
        }
        request
    }

    /// Whole numbers, texts, or both.
    fn wide_set(&mut self) -> Vec<Vec<u8>> {
        let mut request = vec![b"sadd".to_vec(), self.key()];
        let (count, kinds) = (self.pick(&[3, 9, 30, 100, 520, 1_100]), self.pick(&[1, 2, 50]));
        for number in 0..count {
            let text = if number % kinds == kinds / 2 && kinds < 50 { "f" } else { "" };
            request.push(format!("{text}{number}").into_bytes());
        }
        request
    }

    /// Elements that are met again, and enough of them for many chunks now and then.
    fn long_list(&mut self) -> Vec<Vec<u8>> {
        let mut request = words(self.pick(&["lpush", "rpush"]));
        request.push(self.key());
        for _ in 0..self.pick(&[3, 30, 100, 520, 3_000]) {
            request.push(if self.random.u8(..50) == 0 { self.value() } else { self.element() });
        }
        request
    }

    /// Few of them, so that they are found.
    fn element(&mut self) -> Vec<u8> {
        match self.random.u8(..4) {
            0 => self.random.u8(..9).to_string().into_bytes(),
            1 => format!("an element of some length, number {}", self.random.u8(..9)).into_bytes(),
            _ => format!("e{}", self.random.u8(..9)).into_bytes(),
        }
    }

    /// Arguments as documented.
    pub(crate) fn several(&mut self, arguments: &[Argument], out: &mut Vec<Vec<u8>>) {
        let mut count_at = None;
        for argument in arguments {
            if argument.optional && self.random.u8(..3) > 0 {
                continue;
            }
            let times = if argument.multiple { self.random.usize(1..4) } else { 1 };
            for time in 0..times {
                if let Some(token) = argument.token
                    && (time == 0 || argument.multiple_token)
                {
                    out.push(token.as_bytes().to_vec());
                }
                self.one(argument, out);
            }
            if argument.name.starts_with("num") {
                count_at = Some(out.len() - 1);
            } else if let Some(at) = count_at.take() {
                out[at] = times.to_string().into_bytes();
            }
        }
    }

    fn one(&mut self, argument: &Argument, out: &mut Vec<Vec<u8>>) {
        let name = argument.name;
        let text = match argument.kind {
            ArgumentKind::PureToken => return,
            ArgumentKind::OneOf => {
                let chosen = self.pick(argument.arguments);
                return self.several(&[Argument { optional: false, ..chosen }], out);
            }
            ArgumentKind::Block => return self.several(argument.arguments, out),
            ArgumentKind::Key => self.key(),
            ArgumentKind::Double if name.ends_with("itude") => self.pick(&["1.5", "-0.25", "85", "180", "0"]).into(),
            ArgumentKind::Double => self.pick(&["1.5", "-0.25", "3", "1e10", "0", "inf", "-inf"]).into(),
            ArgumentKind::Pattern => self.pick(&["*", "*->f1", "nosort", "#"]).into(),
            ArgumentKind::UnixTime if name.contains("milli") => self.instant_ms().to_string().into_bytes(),
            ArgumentKind::UnixTime => (self.instant_ms() / 1000).to_string().into_bytes(),
            ArgumentKind::Integer => self.integer(name).to_string().into_bytes(),
            ArgumentKind::String if name == "serialized-value" && !self.payloads.is_empty() => {
                let at = self.random.usize(..self.payloads.len());
                self.payloads[at].clone()
            }
            ArgumentKind::String if name.ends_with("-digest") => {
                // Those of the empty string and of "v8", of nothing, and of bad length.
                self.pick(&["2d06800538d394c2", "0cc76dbb41381419", "0000000000000000", "123"]).into()
            }
            ArgumentKind::String if name.ends_with("bound") => self.integer("weight").to_string().into_bytes(),
            ArgumentKind::String if name == "encoding" => self.pick(&["u1", "i8", "u16", "i64", "u63"]).into(),
            ArgumentKind::String if name == "version" && self.random.u8(..8) == 0 => {
                self.pick(&["1.0", "1.1", "2.0", "18446744073709551615", "v"]).into()
            }
            ArgumentKind::String if name == "version" => self.random.u8(..20).to_string().into_bytes(),
            ArgumentKind::String if name == "type" => self.pick(EVENT_TYPES).into(),
            ArgumentKind::String if name == "element" || name == "pivot" => self.element(),
            ArgumentKind::String if name == "field" || name == "member" => self.field(),
            ArgumentKind::String if name == "min" || name == "max" => {
                self.pick(&["-", "+", "[f1", "(f2", "[f30", "0", "1", "-1", "(3"]).into()
            }
            ArgumentKind::String => self.value(),
        };
        out.push(text);
    }

    fn integer(&mut self, name: &str) -> i64 {
        match name {
            "db" | "index1" | "index2" | "destination-db" => self.database().into(),
            "seconds" => self.random.i64(-1..5),
            "milliseconds" | "ttl" => self.random.i64(-100..4_000),
            // The bits or bytes of an in-place write: within what is there, at its end, far behind it.
            "offset" => self.pick(&[0, 7, 8, 60, 500, 4_100, 9_000]) + self.random.i64(0..3),
            "value" => self.random.i64(0..2),
            "version" => self.random.i64(0..7),
            "start" | "stop" | "weight" | "count" | "limit" => self.random.i64(-3..6),
            "index" => self.random.i64(-9..300),
            _ => self.pick(&[0, 1, -1, 1_000_000_000_000]) + self.random.i64(-3..100),
        }
    }

    fn instant_ms(&mut self) -> u64 {
        self.now_ms + self.random.u64(..6_000) - 500
    }

    /// Most commands meet at a few keys; many more give the tables something to divide.
    pub(crate) fn key(&mut self) -> Vec<u8> {
        if let Some(group) = self.group
            && self.random.bool()
        {
            return format!("{group}:{}", self.random.u8(..3)).into_bytes();
        }
        match self.random.u8(..8) {
            3 if self.random.u8(..8) == 0 => format!("{}:{}", self.pick(TYPES), self.random.u8(..3)).into_bytes(),
            0 | 1 => format!("cold:{}", self.random.u8(..100)).into_bytes(),
            2 => format!("spare:{}", self.random.u16(..400)).into_bytes(),
            _ => self.pick(&["a", "b", "c", "d", "e", "{a}b", "{a}c", "", "\u{e9}\n"]).into(),
        }
    }

    fn field(&mut self) -> Vec<u8> {
        match self.random.u8(..12) {
            0 => vec![b'f'; self.pick(&[0, 65, 5_000])],
            1..=3 => format!("f{}", self.random.u8(..40)).into_bytes(),
            4 => self.random.i16(..).to_string().into_bytes(),
            _ => format!("f{}", self.random.u8(..4)).into_bytes(),
        }
    }

    pub(crate) fn value(&mut self) -> Vec<u8> {
        match self.random.u8(..12) {
            0..=3 => self.pick(&["", "v", "value", "1.5", "007", "\0\r\n"]).into(),
            4 => self.random.i64(..).to_string().into_bytes(),
            5..=7 => self.random.i64(-9..1_000).to_string().into_bytes(),
            8 => vec![self.random.u8(..); self.pick(&[43, 46, 64, 66])],
            9 => vec![self.random.u8(..); self.pick(&[500, 600, 4_096, 4_097, 20_000])],
            _ => (0..self.random.usize(..20)).map(|_| self.random.u8(..)).collect(),
        }
    }

    fn database(&mut self) -> u8 {
        self.pick(&[0, 0, 0, 0, 1, 1, 2, 15])
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(..choices.len())]
    }
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}
