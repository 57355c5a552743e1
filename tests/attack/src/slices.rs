//! Commands that work in slices, beside commands that change whole databases. Two databases are filled with names that tell
//! them apart, so that the end shows where a command has worked: in the database in which it began, and what it replied.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Random, Reply, split_args};

use crate::session::{Attack, mix};
use crate::table::{items, text};
use crate::talk::{REPLY_DEADLINE, Talk, Trouble, encode};

/// A command that takes several slices on enough data.
struct Sliced {
    line: &'static str,
    filling: Filling,
    outcome: Outcome,
}

/// What both databases are filled with.
#[derive(Clone, Copy, PartialEq)]
enum Filling {
    Records,
    Cells,
    Registers,
    /// Requests of sessions to their clients.
    Pending,
}

impl Filling {
    /// A command without which there is none.
    fn needs(self) -> &'static str {
        match self {
            Filling::Records => "IDX.CREATE",
            Filling::Cells => "CELL.SET",
            Filling::Registers => "REG.PUT",
            Filling::Pending => "SESSION.PUSH",
        }
    }
}

/// How what the command has done is held against what it replied.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// It replies the names that it has changed, and marks them.
    Marks,
    /// It replies names and changes nothing.
    Reads,
    /// It stores names at `sl:out` and replies how many.
    StoresNames,
    /// It replies a blob of registers.
    RepliesBlob,
    /// It stores a blob of registers at `sl:out` and replies how many.
    StoresBlob,
    /// It removes names and replies how many.
    Removes,
    /// It copies names to `fork/` and replies how many.
    Forks,
    /// It sets registers as `sl:check` has them.
    Restores,
}

const SLICED: &[Sliced] = &[
    sliced("CLAIM 1 sl:idx SET 1 mark S COUNT 1000000 KEYS", Filling::Records, Outcome::Marks),
    sliced("CLAIM 1 sl:idx MAX NOW SET 1 mark S COUNTER n COUNT 1000000", Filling::Records, Outcome::Marks),
    sliced("SWEEP sl:idx BEFORE 1000000000 SET 1 mark S", Filling::Records, Outcome::Marks),
    sliced("SWEEP sl:idx BEFORE 1000000000 RETRY n 5 ELSE 1 mark E SET 1 mark S", Filling::Records, Outcome::Marks),
    sliced("SESSION.RETRY 99999999999999 LIMIT 1000000", Filling::Pending, Outcome::Marks),
    sliced("IDX.RANGE sl:idx -inf +inf KEYS", Filling::Records, Outcome::Reads),
    sliced("IDX.RANGE sl:idx -inf +inf REV", Filling::Records, Outcome::Reads),
    sliced("ZRANGE sl:idx 0 -1", Filling::Records, Outcome::Reads),
    sliced("ZREVRANGEBYSCORE sl:idx +inf -inf", Filling::Records, Outcome::Reads),
    sliced("ZUNION 1 sl:idx", Filling::Records, Outcome::Reads),
    sliced("ZRANDMEMBER sl:idx 1000000", Filling::Records, Outcome::Reads),
    sliced("ZRANGESTORE sl:out sl:idx 0 -1", Filling::Records, Outcome::StoresNames),
    sliced("ZUNIONSTORE sl:out 1 sl:idx", Filling::Records, Outcome::StoresNames),
    sliced("CELL.DROP sl/", Filling::Cells, Outcome::Removes),
    sliced("CELL.FORK sl/ fork/", Filling::Cells, Outcome::Forks),
    sliced("REG.SNAPSHOT PREFIX sl:reg:", Filling::Registers, Outcome::RepliesBlob),
    sliced("REG.SNAPSHOT PREFIX sl:reg: STORE sl:out", Filling::Registers, Outcome::StoresBlob),
    sliced("REG.RESTORE FROM sl:check", Filling::Registers, Outcome::Restores),
];

const fn sliced(line: &'static str, filling: Filling, outcome: Outcome) -> Sliced {
    Sliced { line, filling, outcome }
}

/// What comes between the slices, in database 0. `NAME` is one of its names, `ID` the client of the sliced command.
const DISTURBANCES: &[&str] = &[
    "SWAPDB 0 1",
    "SWAPDB 1 0",
    "SWAPDB 0 1",
    "SWAPDB 0 1",
    "FLUSHDB",
    "FLUSHALL",
    "FLUSHALL ASYNC",
    "MOVE NAME 2",
    "RENAME NAME NAMEx",
    "IDX.DROP sl:idx",
    "DEBUG RELOAD",
    "CONFIG SET hash-max-listpack-entries 4",
    "CLIENT KILL ID ID",
    "SET sl:other value",
];

/// The databases' letters: each name of theirs has it between two separators.
const LETTERS: [char; 2] = ['a', 'b'];
/// Database 2 is moved to, and 3 is where a blob is looked into.
const MOVED_TO: usize = 2;
const WORKBENCH: &str = "3";
/// Registers that were made after the checkpoint: REG.RESTORE removes them.
const EXTRAS: usize = 20;
const SESSIONS: usize = 8;

impl Attack<'_> {
    /// Trial after trial until the time is over. Uses the first places in the record.
    pub(crate) fn run_slices(&self, until: Instant) {
        let mut number = 0;
        while (number == 0 || Instant::now() < until) && !self.record.is_stopped() {
            number += 1;
            // Not the numbers of the other sessions.
            let mut random = Random::new(mix(self.seed, 2_000_000, number));
            let known: Vec<_> =
                SLICED.iter().filter(|sliced| self.knows(sliced.line) && self.knows(sliced.filling.needs())).collect();
            if known.is_empty() {
                return;
            }
            let sliced = known[random.below(known.len())];
            if let Err(what) = self.slice(number, sliced, random) {
                self.record.fail(format!("slices, trial {number}: {what}"));
            }
        }
    }

    /// Whether the server has the command that a line begins with.
    pub(crate) fn knows(&self, line: &str) -> bool {
        let name = line.split(' ').next().unwrap_or_default();
        self.table.rows.iter().any(|row| row.words[0].eq_ignore_ascii_case(name.as_bytes()))
    }

    fn slice(&self, number: u64, sliced: &Sliced, mut random: Random) -> Result<(), String> {
        let open = || Talk::open(self.address, &self.record.stop).map_err(|error| format!("cannot connect: {error}"));
        let sizes = [(); 2].map(|()| 100 + random.below(1_100));
        let mut watch = open()?;
        let start = fill(&mut watch, sliced.filling, sizes)?;
        let (mut actor, mut disturber) = (open()?, open()?);
        let id = actor.must(&["CLIENT", "ID"])?.integer();

        let request = words(sliced.line);
        self.record.sent(0, number, &request);
        actor.send(&encode(&[&request])).map_err(|trouble| format!("{}: {trouble:?}", sliced.line))?;
        let mut events = Events::default();
        for _ in 0..1 + random.below(3) {
            thread::sleep(Duration::from_millis(random.pick(&[0, 0, 1, 2, 5, 10, 20, 40])));
            let line = random.pick(DISTURBANCES);
            if !self.knows(line) {
                continue;
            }
            let letter = events.letter_at_zero();
            let name = key(sliced.filling, letter, random.below(sizes[usize::from(letter == LETTERS[1])]));
            let line = line.replace("NAME", &name).replace("ID ID", &format!("ID {id}"));
            let args = words(&line);
            self.record.sent(1, number, &args);
            let reply = disturber.run(&args)?;
            self.record.received(1, &reply);
            events.note(&line, &name, &reply)?;
        }
        let reply = match actor.read() {
            Ok(reply) => Some(reply),
            Err(Trouble::Closed) if events.killed => None,
            Err(Trouble::Stopped) => return Ok(()),
            Err(trouble) => return Err(format!("{}: {trouble:?}", sliced.line)),
        };
        match &reply {
            Some(reply) => self.record.received(0, reply),
            None => self.record.ended(0, "killed"),
        }
        let census = settled(&mut watch, sliced.filling, &start, events.killed)?;
        let trial = Trial { sliced, sizes, events, reply, census };
        trial.judge(&mut watch).map_err(|what| {
            format!("{}, {} and {} names, {}: {what}", sliced.line, sizes[0], sizes[1], trial.events.told())
        })
    }
}

fn words(line: &str) -> Vec<Vec<u8>> {
    split_args(line).expect("a line of the tables above")
}

/// What the disturbances have done, as far as their replies tell.
#[derive(Default)]
struct Events {
    lines: Vec<String>,
    swapped: bool,
    flushed: BTreeSet<char>,
    /// Names that were moved or renamed, the new ones included.
    victims: BTreeSet<String>,
    index_dropped: bool,
    killed: bool,
}

impl Events {
    fn letter_at_zero(&self) -> char {
        LETTERS[usize::from(self.swapped)]
    }

    fn note(&mut self, line: &str, name: &str, reply: &Reply) -> Result<(), String> {
        self.lines.push(format!("{line} {}", reply.excerpt()));
        let is_busy = matches!(reply, Reply::Error(text) if text.starts_with(b"BUSY"));
        let command = line.split(' ').next().unwrap_or_default();
        match command {
            "SWAPDB" if is_busy => {}
            "SWAPDB" | "FLUSHDB" | "FLUSHALL" if reply.is_error() => {
                return Err(format!("{line} was answered with {}", reply.excerpt()));
            }
            "SWAPDB" => self.swapped = !self.swapped,
            "FLUSHDB" => self.flushed.extend([self.letter_at_zero()]),
            "FLUSHALL" => self.flushed.extend(LETTERS),
            "MOVE" | "RENAME" if !reply.is_error() => {
                self.victims.extend([name.to_string(), format!("{name}x")]);
            }
            "IDX.DROP" => self.index_dropped |= !reply.is_error(),
            "CLIENT" => self.killed = true,
            _ => {}
        }
        Ok(())
    }

    fn told(&self) -> String {
        self.lines.join(", ")
    }
}

/// The key of element `number`.
fn key(filling: Filling, letter: char, number: usize) -> String {
    match filling {
        Filling::Records => format!("sl:rec:{letter}:{number}"),
        Filling::Cells => format!("sl/{letter}/{number}"),
        Filling::Registers => format!("sl:reg:{letter}:{number}"),
        Filling::Pending => format!("sl:sess:{letter}:{}", number % SESSIONS),
    }
}

/// The name of element `number`: its key, or what a session's request is called in replies.
fn element(filling: Filling, letter: char, number: usize) -> String {
    match filling {
        Filling::Pending => format!("{}#{}", key(filling, letter, number), 1 + number / SESSIONS),
        _ => key(filling, letter, number),
    }
}

fn extra(letter: char, number: usize) -> String {
    format!("sl:reg:{letter}:extra{number}")
}

/// Which of the databases a name belongs to.
fn letter_of(name: &str) -> Option<char> {
    LETTERS.into_iter().find(|letter| name.split([':', '/']).any(|part| part == letter.to_string()))
}

/// Empties the server, fills databases 0 and 1, and returns the time after that.
fn fill(talk: &mut Talk, filling: Filling, sizes: [usize; 2]) -> Result<String, String> {
    talk.must(&["FLUSHALL"])?;
    if filling == Filling::Pending {
        // What an earlier part has set may fail, and would count as a failure of SESSION.OPEN.
        talk.must(&["SESSION.HOOK", "CREATED", "NONE"])?;
        talk.must(&["SESSION.HOOK", "EXPIRED", "NONE"])?;
    }
    if filling == Filling::Records {
        // It is there unless the last trial has dropped it.
        talk.run(&["IDX.DROP", "sl:idx"])?;
        talk.must(&["IDX.CREATE", "sl:idx", "PREFIX", "1", "sl:rec:", "FIELD", "score"])?;
    }
    for (db, (letter, size)) in LETTERS.into_iter().zip(sizes).enumerate() {
        talk.must(&["SELECT", &db.to_string()])?;
        talk.must(&["SET", "sl:which", &letter.to_string()])?;
        let all =
            |request: &dyn Fn(usize) -> String| (0..size).map(|number| words(&request(number))).collect::<Vec<_>>();
        let mut requests = Vec::new();
        match filling {
            Filling::Records => {
                requests.extend(all(&|number| format!("HSET {} score {number}", key(filling, letter, number))))
            }
            Filling::Cells => requests.extend(all(&|number| format!("CELL.SET {} v", key(filling, letter, number)))),
            Filling::Registers => {
                requests.extend(all(&|number| format!("REG.PUT {} 1 old", key(filling, letter, number))));
                requests.push(words("REG.SNAPSHOT PREFIX sl:reg: STORE sl:check"));
                requests.extend(all(&|number| format!("REG.PUT {} 2 new", key(filling, letter, number))));
                requests.extend((0..EXTRAS).map(|number| words(&format!("REG.PUT {} 1 new", extra(letter, number)))));
            }
            Filling::Pending => {
                requests.extend(
                    (0..SESSIONS)
                        .map(|number| words(&format!("SESSION.OPEN ID {} TTL 600000", key(filling, letter, number)))),
                );
                requests.extend(all(&|number| format!("SESSION.PUSH {} payload", key(filling, letter, number))));
            }
        }
        if let Some(error) = talk.run_all(&requests)?.iter().find(|reply| reply.is_error()) {
            return Err(format!("filling the databases was answered with {}", error.excerpt()));
        }
    }
    talk.must(&["SELECT", "0"])?;
    // Later than all that was pushed.
    thread::sleep(Duration::from_millis(2));
    let time = talk.must(&["TIME"])?;
    let parts: Vec<_> = items(&time).iter().map(text).collect();
    Ok(format!("{}{:03}", parts[0], parts[1].parse::<u64>().unwrap_or(0) / 1_000))
}

/// All names at the end, by database, each with what it looks like: `mark` or value, empty if it is as it was.
#[derive(PartialEq)]
struct Census {
    databases: Vec<BTreeMap<String, String>>,
    /// What `sl:which` says of each database.
    which: Vec<Option<char>>,
}

/// The census, once no work goes on. A command whose client was killed may go on.
fn settled(talk: &mut Talk, filling: Filling, start: &str, killed: bool) -> Result<Census, String> {
    let began = Instant::now();
    let mut census = Census::take(talk, filling, start)?;
    if !killed {
        return Ok(census);
    }
    loop {
        thread::sleep(Duration::from_millis(100));
        let next = Census::take(talk, filling, start)?;
        if next == census {
            return Ok(census);
        }
        if began.elapsed() > REPLY_DEADLINE {
            return Err("the work of a client that was killed does not end".into());
        }
        census = next;
    }
}

impl Census {
    fn take(talk: &mut Talk, filling: Filling, start: &str) -> Result<Census, String> {
        let mut census = Census { databases: Vec::new(), which: Vec::new() };
        for db in 0..=MOVED_TO {
            talk.must(&["SELECT", &db.to_string()])?;
            let names = scan(talk)?.into_iter().filter(|name| letter_of(name).is_some()).collect::<Vec<_>>();
            let mut found: BTreeMap<_, _> = names.iter().map(|name| (name.clone(), String::new())).collect();
            match filling {
                Filling::Cells => {}
                Filling::Records => {
                    let marks = names.iter().map(|name| vec!["HGET", name.as_str(), "mark"]).collect::<Vec<_>>();
                    for (name, mark) in names.iter().zip(talk.run_all(&marks)?) {
                        found.insert(name.clone(), text(&mark));
                    }
                }
                Filling::Registers => {
                    let values = names.iter().map(|name| vec!["REG.GET", name.as_str()]).collect::<Vec<_>>();
                    for (name, value) in names.iter().zip(talk.run_all(&values)?) {
                        found.insert(name.clone(), items(&value).first().map(text).unwrap_or_default());
                    }
                }
                Filling::Pending => {
                    found.clear();
                    for name in &names {
                        let pending = talk.must(&["SESSION.PENDING", name, "AFTER", "0", "LIMIT", "1000000"])?;
                        for request in items(&pending) {
                            let [id, _, sent] = items(request) else { continue };
                            let sent_again = sent.integer() > start.parse().unwrap_or(i64::MAX);
                            let mark = if sent_again { "S" } else { "" };
                            found.insert(format!("{name}#{}", id.integer()), mark.into());
                        }
                    }
                }
            }
            let which = text(&talk.must(&["GET", "sl:which"])?);
            census.databases.push(found);
            census.which.push(which.chars().next());
        }
        talk.must(&["SELECT", "0"])?;
        Ok(census)
    }

    /// What a name of this letter looks like, wherever it is.
    fn of(&self, letter: char) -> BTreeMap<&str, &str> {
        let all = self.databases.iter().flatten();
        let own = all.filter(|(name, _)| letter_of(name) == Some(letter));
        own.map(|(name, state)| (name.as_str(), state.as_str())).collect()
    }
}

/// Every key of the selected database.
fn scan(talk: &mut Talk) -> Result<Vec<String>, String> {
    let (mut names, mut cursor) = (Vec::new(), String::from("0"));
    loop {
        let page = talk.must(&["SCAN", &cursor, "COUNT", "1000"])?;
        let [next, keys] = items(&page) else { return Err(format!("SCAN was answered with {}", page.excerpt())) };
        names.extend(items(keys).iter().map(text));
        cursor = text(next);
        if cursor == "0" {
            return Ok(names);
        }
    }
}

/// One run of a sliced command, as it ended.
struct Trial<'a> {
    sliced: &'a Sliced,
    sizes: [usize; 2],
    events: Events,
    /// None if its client was killed.
    reply: Option<Reply>,
    census: Census,
}

impl Trial<'_> {
    /// Whether some order of the commands explains the end.
    fn judge(&self, talk: &mut Talk) -> Result<(), String> {
        self.names_are_at_home()?;
        self.names_are_there()?;
        if let Some(Reply::Error(text)) = &self.reply
            && self.events.flushed.is_empty()
            && !self.events.index_dropped
        {
            return Err(format!("it was answered with -{}", String::from_utf8_lossy(text)));
        }
        match self.sliced.outcome {
            Outcome::Marks => self.judge_marks(),
            Outcome::Reads => match &self.reply {
                Some(reply) if !reply.is_error() => self.judge_names(&names(reply)),
                _ => Ok(()),
            },
            Outcome::StoresNames | Outcome::StoresBlob => self.judge_stored(talk),
            Outcome::RepliesBlob => match &self.reply {
                Some(Reply::Bulk(blob)) => self.judge_names(&registers_of(talk, blob)?),
                _ => Ok(()),
            },
            Outcome::Removes => self.judge_removed(),
            Outcome::Forks => self.judge_forked(),
            Outcome::Restores => self.judge_restored(),
        }
    }

    /// The names of this database before the command, without those that were moved or renamed.
    fn expected(&self, letter: char) -> BTreeSet<String> {
        let size = self.sizes[usize::from(letter == LETTERS[1])];
        let names = (0..size).map(|number| element(self.sliced.filling, letter, number));
        names.filter(|name| !self.is_victim(name)).collect()
    }

    fn is_victim(&self, name: &str) -> bool {
        self.events.victims.contains(&name.replacen("fork/", "sl/", 1))
    }

    /// The databases that still have what they had.
    fn kept(&self) -> impl Iterator<Item = char> {
        LETTERS.into_iter().filter(|letter| !self.events.flushed.contains(letter))
    }

    /// No database has names of the other.
    fn names_are_at_home(&self) -> Result<(), String> {
        for (db, found) in self.census.databases.iter().take(2).enumerate() {
            let own = found.keys().filter(|name| !self.is_victim(name));
            let letters: BTreeSet<_> = own.filter_map(|name| letter_of(name)).chain(self.census.which[db]).collect();
            if letters.len() > 1 {
                return Err(format!("database {db} has names of both databases"));
            }
        }
        Ok(())
    }

    /// A database that was flushed is empty, and the other has what it had, unless the command takes it away.
    fn names_are_there(&self) -> Result<(), String> {
        for letter in LETTERS {
            let found = self.census.of(letter);
            if self.events.flushed.contains(&letter) {
                match found.keys().find(|name| !self.is_victim(name)) {
                    None => continue,
                    Some(name) => return Err(format!("{name} is there, though its database was flushed")),
                }
            }
            if self.sliced.outcome == Outcome::Removes {
                continue;
            }
            if let Some(name) = self.expected(letter).iter().find(|name| !found.contains_key(name.as_str())) {
                return Err(format!("{name} is gone, and nothing has removed it"));
            }
        }
        Ok(())
    }

    /// Names that a command has found in one database: of that one alone, each once, and all of them.
    fn judge_names(&self, found: &[String]) -> Result<(), String> {
        let unique: BTreeSet<_> = found.iter().cloned().collect();
        if unique.len() < found.len() {
            return Err(format!("of {} names in its reply some are there twice", found.len()));
        }
        let letters: BTreeSet<_> = found.iter().filter_map(|name| letter_of(name)).collect();
        if letters.len() > 1 {
            return Err(format!("{} names in its reply, of both databases", found.len()));
        }
        if self.events.index_dropped {
            return Ok(());
        }
        let Some(letter) = letters.into_iter().next() else {
            return match self.events.flushed.is_empty() {
                true => Err("no names in its reply".into()),
                false => Ok(()),
            };
        };
        if self.events.flushed.contains(&letter) {
            return Ok(());
        }
        match self.expected(letter).difference(&unique).next() {
            Some(name) => Err(format!("{name} is not among the {} names in its reply", found.len())),
            None => Ok(()),
        }
    }

    fn judge_marks(&self) -> Result<(), String> {
        let marked = |letter| {
            let all = self.census.of(letter);
            let marked = all.into_iter().filter(|(name, mark)| *mark == "S" && !self.is_victim(name));
            marked.map(|(name, _)| name.to_string()).collect::<BTreeSet<_>>()
        };
        let marked = LETTERS.map(marked);
        if marked.iter().all(|names| !names.is_empty()) {
            return Err(format!("it has changed {} and {} in the two databases", marked[0].len(), marked[1].len()));
        }
        let marked: BTreeSet<_> = marked.into_iter().flatten().collect();
        match &self.reply {
            None => Ok(()),
            Some(Reply::Error(_)) if marked.is_empty() => Ok(()),
            Some(Reply::Error(_)) => Err(format!("it was answered with an error and has changed {}", marked.len())),
            Some(reply) => {
                let told = names(reply);
                self.judge_names(&told)?;
                let told: BTreeSet<_> = told.into_iter().collect();
                if let Some(name) = marked.difference(&told).next() {
                    return Err(format!("{name} was changed and is not in its reply"));
                }
                let has_to_be = |name: &&String| {
                    !self.is_victim(name)
                        && letter_of(name).is_some_and(|letter| self.kept().any(|kept| kept == letter))
                };
                match told.difference(&marked).find(has_to_be) {
                    Some(name) => Err(format!("{name} is in its reply and was not changed")),
                    None => Ok(()),
                }
            }
        }
    }

    /// What lies at `sl:out`, in whichever database, is of that database alone.
    fn judge_stored(&self, talk: &mut Talk) -> Result<(), String> {
        for (db, which) in self.census.which.iter().enumerate() {
            talk.must(&["SELECT", &db.to_string()])?;
            let stored = match self.sliced.outcome {
                Outcome::StoresBlob => match talk.must(&["GET", "sl:out"])? {
                    Reply::Bulk(blob) => {
                        let names = registers_of(talk, &blob)?;
                        talk.must(&["SELECT", &db.to_string()])?;
                        names
                    }
                    _ => continue,
                },
                _ => items(&talk.must(&["ZRANGE", "sl:out", "0", "-1"])?).iter().map(text).collect(),
            };
            if stored.is_empty() {
                continue;
            }
            self.judge_names(&stored)?;
            if *which != letter_of(&stored[0]) {
                return Err(format!("sl:out of database {db} has names of the other one"));
            }
            if let Some(Reply::Integer(told)) = self.reply
                && told != stored.len() as i64
            {
                return Err(format!("it replied {told}, and stored {}", stored.len()));
            }
        }
        talk.must(&["SELECT", "0"]).map(drop)
    }

    /// How many of each database's names `is_done` says yes to: none of one, and all or none of the other.
    fn judge_done(&self, verb: &str, is_done: impl Fn(&BTreeMap<&str, &str>, &str) -> bool) -> Result<(), String> {
        let mut done = Vec::new();
        for letter in self.kept() {
            let (all, found) = (self.expected(letter), self.census.of(letter));
            let count = all.iter().filter(|name| is_done(&found, name)).count();
            if count != 0 && count != all.len() {
                return Err(format!("{verb} {count} of the {} names of {letter}", all.len()));
            }
            done.extend((count > 0).then_some(count));
        }
        match &self.reply {
            _ if done.len() > 1 => Err(format!("{verb} names of both databases")),
            Some(Reply::Error(_)) if !done.is_empty() => Err(format!("it was answered with an error and has {verb}")),
            Some(reply) if !reply.is_error() && done.is_empty() && self.events.flushed.is_empty() => {
                Err(format!("{verb} nothing, and replied {}", reply.excerpt()))
            }
            Some(Reply::Integer(told)) if !done.is_empty() => {
                let off = (*told - done[0] as i64).unsigned_abs() as usize;
                match off > self.events.victims.len() {
                    true => Err(format!("{verb} {}, and replied {told}", done[0])),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn judge_removed(&self) -> Result<(), String> {
        self.judge_done("removed", |found, name| !found.contains_key(name))
    }

    fn judge_forked(&self) -> Result<(), String> {
        self.judge_done("copied", |found, name| found.contains_key(name.replacen("sl/", "fork/", 1).as_str()))
    }

    fn judge_restored(&self) -> Result<(), String> {
        self.judge_done("restored", |found, name| found.get(name) == Some(&"old"))?;
        for letter in self.kept() {
            let found = self.census.of(letter);
            let restored = self.expected(letter).iter().any(|name| found.get(name.as_str()) == Some(&"old"));
            let extras = (0..EXTRAS).filter(|number| found.contains_key(extra(letter, *number).as_str())).count();
            if extras != if restored { 0 } else { EXTRAS } {
                return Err(format!("{extras} of {EXTRAS} registers of {letter} that the checkpoint has not are left"));
            }
        }
        Ok(())
    }
}

/// The names in a reply: its items, or the first of each; a request of a session with its number.
fn names(reply: &Reply) -> Vec<String> {
    let name = |item: &Reply| match item {
        Reply::Array(parts) => match parts.as_slice() {
            [sid, Reply::Integer(id), ..] => format!("{}#{id}", text(sid)),
            [first, ..] => text(first),
            [] => String::new(),
        },
        item => text(item),
    };
    items(reply).iter().map(name).collect()
}

/// The names in a blob of registers. Restores it in a database of its own.
fn registers_of(talk: &mut Talk, blob: &[u8]) -> Result<Vec<String>, String> {
    talk.must(&["SELECT", WORKBENCH])?;
    talk.must(&["FLUSHDB"])?;
    talk.must(&[b"REG.RESTORE".as_slice(), blob])?;
    let names = scan(talk)?;
    talk.must(&["FLUSHDB"])?;
    talk.must(&["SELECT", "0"])?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_database() {
        assert_eq!(letter_of("sl:rec:a:12"), Some('a'));
        assert_eq!(letter_of("fork/b/1"), Some('b'));
        assert_eq!(letter_of("sl:sess:b:1#7"), Some('b'));
        assert_eq!(letter_of("sl:which"), None);
    }

    /// A drop of which a part went on in the other database.
    #[test]
    fn work_in_two_databases_is_found() {
        let sliced = SLICED.iter().find(|sliced| sliced.outcome == Outcome::Removes).unwrap();
        let left = |letter, count| (0..count).map(move |number| (key(Filling::Cells, letter, number), String::new()));
        let trial = |a, b, reply| Trial {
            sliced,
            sizes: [10, 10],
            events: Events::default(),
            reply: Some(Reply::Integer(reply)),
            census: Census {
                databases: vec![left('b', b).collect(), left('a', a).collect(), BTreeMap::new()],
                which: vec![Some('b'), Some('a'), None],
            },
        };
        assert!(trial(0, 10, 10).judge_removed().is_ok());
        assert!(trial(10, 0, 10).judge_removed().is_ok());
        assert!(trial(4, 6, 10).judge_removed().is_err());
        assert!(trial(0, 10, 9).judge_removed().is_err());
        assert!(trial(0, 0, 20).judge_removed().is_err());
        assert!(trial(10, 10, 0).judge_removed().is_err());
    }
}
