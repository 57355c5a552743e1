//! Scripts that change their pace: quick many times, then a loop, in every place where Lua runs. Others must be served
//! meanwhile, and SCRIPT KILL and FUNCTION KILL must end it, unless it has written; then it ends by itself.

use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply};

use crate::session::{Attack, mix};
use crate::talk::{REPLY_DEADLINE, Talk, Trouble, encode};

/// What a loop does at each turn.
const BODIES: &[&str] = &[
    "local x = 1 + 1",
    "redis.call('TIME')",
    "redis.call('PUBLISH', 'ch:1', 'message')",
    "redis.log(redis.LOG_DEBUG, 'message')",
    "redis.call('GET', 'str:short')",
    "redis.call('HGETALL', 'hash:large')",
    "redis.pcall('NOSUCH')",
    "pcall(function() redis.call('TIME') error('thrown') end)",
    "pcall(function() for i = 1, 100000 do end end)",
    "local s = string.rep('x', 100000)",
    "local t = {} for i = 1, 1000 do t[i] = (i * 7919) % 1009 end table.sort(t)",
    "local f = string.find(string.rep('a', 1500), '.-b')",
    "local s = string.gsub(string.rep('ab', 500), 'b', 'c')",
    "local t = {} for i = 1, 500 do t[i] = i end local s = table.concat(t, ',')",
    "cjson.decode(cjson.encode({1, 2, {a = {3}}}))",
    "cmsgpack.unpack(cmsgpack.pack({1, 2, {a = {3}}}))",
    "redis.sha1hex(string.rep('x', 10000))",
    "local f = loadstring('return 1')()",
];

/// What the loop has done before. After a write it cannot be killed, and so it must end by itself.
const STARTS: &[(&str, Ending)] = &[
    ("", Ending::ByKill),
    ("redis.call('TIME')", Ending::ByKill),
    ("redis.call('PUBLISH', 'ch:1', 'message')", Ending::ByKill),
    ("redis.call('GET', 'str:short')", Ending::ByKill),
    ("", Ending::ByItself),
    ("redis.call('SET', 'pace:written', '1')", Ending::ByItself),
    ("redis.call('HSET', 'rec:1', 'updated_at', '7')", Ending::ByItself),
];

#[derive(Clone, Copy, PartialEq)]
enum Ending {
    ByKill,
    ByItself,
}

/// Where Lua runs. Of the words, `SOURCE` stands for a script, `DIGEST` for its digest, `FUNCTION` for a function with the
/// same body, `ID` for a number that was not used before, `PACE` for `quick` or `loop`.
struct Place {
    /// Sent once, before the runs. Hooks are the whole server's.
    before: &'static [&'static str],
    run: &'static [&'static str],
}

const PLACES: &[Place] = &[
    place(&[], &["EVAL SOURCE 0 PACE"]),
    place(&[], &["EVAL SOURCE 1 str:short PACE"]),
    place(&["SCRIPT LOAD SOURCE"], &["EVALSHA DIGEST 0 PACE"]),
    place(&[], &["EVAL_RO SOURCE 0 PACE"]),
    place(&[], &["FCALL FUNCTION 0 PACE"]),
    place(&[], &["FCALL FUNCTION 1 str:short PACE"]),
    place(&[], &["MULTI", "SET pace:queued 1", "EVAL SOURCE 0 PACE", "GET pace:queued", "EXEC"]),
    place(&[], &["MULTI", "FCALL FUNCTION 0 PACE", "EXEC"]),
    place(&[SESSION], &["SESSION.CALL pace:sess ID LOW 0 EVAL SOURCE 0 PACE"]),
    place(&[SESSION], &["SESSION.CALL pace:sess ID LOW 0 FCALL FUNCTION 0 PACE"]),
    place(&["SESSION.HOOK CREATED FUNCTION"], &["SESSION.OPEN ID pace:ID CAP 1 pace PACE"]),
    place(&["SESSION.HOOK CREATED FUNCTION"], &["MULTI", "SESSION.OPEN ID pace:ID CAP 1 pace PACE", "EXEC"]),
    place(
        &["SESSION.HOOK CREATED NONE", "SESSION.HOOK EXPIRED FUNCTION"],
        &["SESSION.OPEN ID pace:ID CAP 1 pace PACE", "SESSION.CLOSE pace:ID"],
    ),
    place(
        &["SESSION.HOOK CREATED NONE", "SESSION.HOOK EXPIRED FUNCTION"],
        &["SESSION.OPEN ID pace:ID TTL 5 CAP 1 pace PACE"],
    ),
    place(&[], &["TXN.BEGIN", "EVAL SOURCE 1 str:short PACE", "TXN.COMMIT"]),
    place(&[], &["TXN.BEGIN", "SET pace:queued 2", "FCALL FUNCTION 0 PACE", "TXN.COMMIT"]),
];

const fn place(before: &'static [&'static str], run: &'static [&'static str]) -> Place {
    Place { before, run }
}

const SESSION: &str = "SESSION.OPEN ID pace:sess TTL 600000";

/// What others ask meanwhile, on connections of their own. Each must be answered.
const OTHERS: &[&str] = &[
    "PING",
    "GET str:long",
    "SET pace:other 1",
    "INFO",
    "EVAL 'return 1' 0",
    "SCRIPT KILL",
    "FUNCTION KILL",
    "FUNCTION STATS",
    "CLIENT LIST",
    "HELLO 3",
];

/// How much processor time the server takes for a loop that ends by itself.
const FINITE_S: f64 = 0.4;

impl Attack<'_> {
    /// Trial after trial until the time is over. Every connection may run some at once.
    pub(crate) fn run_paces(&self, connection: usize, until: Instant) {
        let mut number = 0;
        while Instant::now() < until && !self.record.is_stopped() {
            number += 1;
            // Not the numbers of the other sessions.
            let random = Random::new(mix(self.seed, 3_000_000 + connection as u64, number));
            match self.pace(connection, number, random) {
                Ok(()) => self.record.ended(connection, "answered or not wanted"),
                Err(Trouble::Closed | Trouble::Stopped) => {}
                Err(Trouble::Wrong(what)) => {
                    self.record.fail(format!("paces, connection {connection}, trial {number}: {what}"));
                }
            }
        }
    }

    /// No script is left that runs. Hooks are taken away first.
    pub(crate) fn end_paces(&self) {
        if let Err(what) = self.no_script_is_left() {
            self.record.fail(what);
        }
    }

    fn no_script_is_left(&self) -> Result<(), String> {
        let mut talk =
            Talk::open(self.address, &self.record.stop).map_err(|error| format!("cannot connect: {error}"))?;
        let began = Instant::now();
        let mut has_hooks = self.knows("SESSION.HOOK");
        loop {
            if has_hooks {
                let unset =
                    [talk.run(&["SESSION.HOOK", "CREATED", "NONE"])?, talk.run(&["SESSION.HOOK", "EXPIRED", "NONE"])?];
                has_hooks = unset.iter().any(Reply::is_error);
            }
            let killed = [talk.run(&["SCRIPT", "KILL"])?, talk.run(&["FUNCTION", "KILL"])?];
            let is_idle = |reply: &Reply| matches!(reply, Reply::Error(text) if text.starts_with(b"NOTBUSY"));
            let is_quiet = !has_hooks && killed.iter().all(is_idle);
            match talk.run(&["PING"])? {
                Reply::Simple(_) if is_quiet => return Ok(()),
                _ if began.elapsed() > REPLY_DEADLINE => {
                    let stats = talk.run(&["FUNCTION", "STATS"])?;
                    return Err(format!("a script runs {REPLY_DEADLINE:?} after all clients have left: {stats}"));
                }
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn pace(&self, connection: usize, number: u64, mut random: Random) -> Result<(), Trouble> {
        let known: Vec<_> =
            PLACES.iter().filter(|place| place.before.iter().chain(place.run).all(|line| self.knows(line))).collect();
        let place = known[random.below(known.len())];
        let (start, ending) = random.pick(STARTS);
        // Half of the scripts are new to the server, the others may have been quick or not before.
        let nonce = if random.one_in(2) { mix(self.seed, number, connection as u64) } else { 0 };
        let source = source(start, ending, random.pick(BODIES), nonce);
        let mut talk = self.open()?;
        let mut words = Words { function: format!("pace_{connection}"), digest: String::new(), source, id: 0 };
        let library = words.library();
        let patiently = |talk: &mut Talk, args: &[Vec<u8>]| talk.must(args).map_err(Trouble::Wrong);
        patiently(&mut talk, &["FUNCTION", "LOAD", "REPLACE", &library].map(Vec::from))?;
        let digest = patiently(&mut talk, &["SCRIPT", "LOAD", &words.source].map(Vec::from))?;
        words.digest = String::from_utf8_lossy(digest.bytes()).into_owned();
        for line in place.before {
            let args = words.request(line, "");
            self.record.sent(connection, number, &args);
            self.record.received(connection, &patiently(&mut talk, &args)?);
        }
        words.id = mix(self.seed, 4_000_000 + connection as u64, number) % 1_000_000_000 * 1_000;
        for _ in 0..random.below(30) {
            words.id += 1;
            self.send(&mut talk, connection, number, &words.run(place, "quick"))?;
            self.read(&mut talk, connection, place)?;
        }
        words.id += 1;
        self.send(&mut talk, connection, number, &words.run(place, "loop"))?;
        for _ in 0..random.below(4) {
            thread::sleep(Duration::from_millis(random.pick(&[0, 1, 20, 100, 400])));
            let args = wire::split_args(random.pick(OTHERS)).expect("a line of the table above");
            let mut other = Talk::open(self.address, &self.record.stop).map_err(|_| Trouble::Closed)?;
            other.run(&args).map_err(Trouble::Wrong)?;
        }
        if random.one_in(6) {
            self.record.did(connection, number, "hung up");
            return Ok(());
        }
        // While nothing comes, it kills.
        self.read(&mut talk, connection, place)
    }

    /// A connection that knows its own number, so that it can help itself while it waits.
    fn open(&self) -> Result<Talk, Trouble> {
        let mut talk = Talk::open(self.address, &self.record.stop).map_err(|_| Trouble::Closed)?;
        talk.must_learn_id().map_err(Trouble::Wrong)?;
        Ok(talk)
    }

    fn send(&self, talk: &mut Talk, connection: usize, number: u64, batch: &[Vec<Vec<u8>>]) -> Result<(), Trouble> {
        batch.iter().for_each(|args| self.record.sent(connection, number, args));
        talk.send(&encode(batch))
    }

    fn read(&self, talk: &mut Talk, connection: usize, place: &Place) -> Result<(), Trouble> {
        for _ in place.run {
            let reply = talk.read()?;
            self.record.received(connection, &reply);
        }
        Ok(())
    }
}

/// What the words of a place stand for.
struct Words {
    source: String,
    digest: String,
    function: String,
    id: u64,
}

impl Words {
    fn run(&self, place: &Place, pace: &str) -> Vec<Vec<Vec<u8>>> {
        place.run.iter().map(|line| self.request(line, pace)).collect()
    }

    fn request(&self, line: &str, pace: &str) -> Vec<Vec<u8>> {
        let word = |word: &str| match word {
            "SOURCE" => self.source.clone().into_bytes(),
            "DIGEST" => self.digest.clone().into_bytes(),
            "FUNCTION" => self.function.clone().into_bytes(),
            "ID" if line.starts_with("SESSION.CALL") => self.id.to_string().into_bytes(),
            "PACE" => pace.into(),
            other => other.replace(":ID", &format!(":{}", self.id)).into_bytes(),
        };
        line.split(' ').map(word).collect()
    }

    fn library(&self) -> String {
        let Words { function, source, .. } = self;
        format!("#!lua name={function}\nredis.register_function('{function}', function(KEYS, ARGV)\n{source}\nend)")
    }
}

/// A script that is quick or loops, as its last argument says.
fn source(start: &str, ending: Ending, body: &str, nonce: u64) -> String {
    let repeat = match ending {
        Ending::ByKill => format!("while true do {body} end"),
        // Not by TIME, which stands still within a script.
        Ending::ByItself => format!("local late = os.clock() + {FINITE_S} repeat {body} until os.clock() > late"),
    };
    format!("local nonce = {nonce} if ARGV[#ARGV] == 'loop' then {start} {repeat} end return 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_has_written_ends_by_itself() {
        let writes = |start: &&(&str, Ending)| ["SET", "INCR", "DEL"].iter().any(|name| start.0.contains(name));
        assert!(STARTS.iter().filter(writes).all(|(_, ending)| *ending == Ending::ByItself));
        assert!(BODIES.iter().all(|body| !["SET", "INCR", "DEL"].iter().any(|name| body.contains(name))));
        assert!(!source("", Ending::ByItself, "", 1).contains("while true"));
    }

    #[test]
    fn words_stand_for_what_they_say() {
        let words = Words { source: "return 1".into(), digest: "d".into(), function: "f".into(), id: 7 };
        let text = |line: &str| {
            let args = words.request(line, "loop");
            args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            text("SESSION.CALL pace:sess ID LOW 0 EVAL SOURCE 0 PACE"),
            "SESSION.CALL pace:sess 7 LOW 0 EVAL return 1 0 loop"
        );
        assert_eq!(text("SESSION.OPEN ID pace:ID CAP 1 pace PACE"), "SESSION.OPEN ID pace:7 CAP 1 pace loop");
    }
}
