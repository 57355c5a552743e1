//! Walks through the states of the journal while clients write and read: orders, full disks, failing system calls, snapshots, and an
//! end. Then the server is started again, and has to hold what was promised.

use std::env;
use std::fmt::Write as _;

use wire::{Connection, Random, Reply, Server};

use super::ledger::{Ledger, Outcome};
use super::load::Load;
use crate::faults::{Injected, SmallDisk};
use crate::support::eventually;

/// One thing that is done to a server under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// CONFIG SET appendonly no.
    Off,
    /// CONFIG SET appendonly yes, and its reply.
    On,
    /// The same, without waiting for the reply.
    OnWithoutWaiting,
    /// yes, no and yes, each on a connection of its own, all at once.
    OnOffOn,
    /// Others fill the disk.
    Fill,
    /// There is room again.
    MakeRoom,
    /// This system call fails.
    Break(&'static str),
    /// This system call fails after so many.
    BreakAfter(&'static str, usize),
    /// All system calls work again.
    Mend,
    /// A command that is not waited for: BGSAVE, BGREWRITEAOF.
    Ask(&'static str),
    /// INFO tells of this state, sooner or later.
    Until(&'static str),
    /// Writes have used up what was reserved, sooner or later.
    UntilFull,
}

/// How a walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill,
    Signal(&'static str),
    Shutdown(&'static str),
}

const ENDS: &[End] = &[
    End::Kill,
    End::Kill,
    End::Signal("TERM"),
    End::Signal("INT"),
    End::Shutdown(""),
    End::Shutdown("NOW"),
    End::Shutdown("NOSAVE"),
    End::Shutdown("SAVE"),
    End::Shutdown("SAVE NOW FORCE"),
];

const CALLS: &[&str] = &["pwrite64", "fdatasync", "fsync", "rename", "ftruncate", "openat", "fallocate"];
const POLICIES: &[&str] = &["everysec", "always", "no"];
const TIMEOUTS: &[&str] = &["0", "10"];

impl Step {
    fn random(random: &mut Random) -> Step {
        match random.below(12) {
            0 => Step::Off,
            1 | 2 => Step::On,
            3 => Step::OnWithoutWaiting,
            4 => Step::OnOffOn,
            5 => Step::Fill,
            6 => Step::MakeRoom,
            7 => Step::Break(random.pick(CALLS)),
            8 => Step::BreakAfter(random.pick(CALLS), 2 + random.below(20)),
            9 => Step::Mend,
            10 => Step::Ask("BGSAVE"),
            _ => Step::Ask("BGREWRITEAOF"),
        }
    }
}

/// Every arrow of the diagram in `engine::journal_state`: whether the journal is on at first, what is done, and the end.
const ARROWS: &[(bool, &[Step], End)] = &[
    // Off, Starting, Sound.
    (false, &[Step::On], End::Kill),
    (false, &[Step::OnWithoutWaiting], End::Signal("TERM")),
    (false, &[Step::OnWithoutWaiting], End::Kill),
    (true, &[Step::Off, Step::On, Step::Off], End::Kill),
    (true, &[Step::Off, Step::OnOffOn, Step::On], End::Shutdown("NOW")),
    (true, &[Step::Ask("BGSAVE"), Step::Off, Step::On], End::Kill),
    (false, &[Step::Ask("BGSAVE"), Step::On, Step::Ask("BGREWRITEAOF")], End::Signal("INT")),
    (false, &[], End::Shutdown("SAVE")),
    // StartFailed, and away from it.
    (false, &[Step::Fill, Step::On, Step::Until("start-failed")], End::Signal("TERM")),
    (false, &[Step::Break("rename"), Step::On, Step::Mend, Step::On], End::Kill),
    (false, &[Step::Break("fsync"), Step::On, Step::Off, Step::Mend], End::Shutdown("NOSAVE")),
    // Sound, without room.
    (true, &[Step::Fill, Step::UntilFull, Step::MakeRoom], End::Kill),
    (true, &[Step::Fill, Step::UntilFull, Step::Off, Step::On], End::Shutdown("")),
    // Failed, Restarting, Sound.
    (true, &[Step::Break("pwrite64"), Step::Until("failed")], End::Kill),
    (true, &[Step::BreakAfter("fdatasync", 3), Step::Until("failed"), Step::On, Step::Mend, Step::On], End::Kill),
    (true, &[Step::Break("fdatasync"), Step::Until("failed"), Step::Mend], End::Signal("TERM")),
    (true, &[Step::Break("pwrite64"), Step::Until("failed"), Step::Off, Step::Mend, Step::On], End::Kill),
    (true, &[Step::Break("pwrite64"), Step::Until("failed"), Step::Mend, Step::Ask("BGSAVE")], End::Shutdown("NOW")),
    // Closing, from a sound journal.
    (true, &[], End::Shutdown("NOW")),
    (true, &[], End::Signal("TERM")),
];

/// How many of them are walked, if HOLDFAST_TEST_ROUNDS does not ask for more: other ones each time.
const ARROWS_WALKED: usize = 8;

/// How many walks share a data directory.
const WALKS_PER_DISK: usize = 4;
/// Room for all that a fast machine writes in these walks: it is full only when a walk fills it.
const DISK_MEBIBYTES: usize = 64;

#[test]
fn every_arrow_of_the_diagram() {
    let mut random = Random::from_env();
    let mut plans: Vec<Plan> =
        ARROWS.iter().map(|(on, steps, end)| Plan::with(*on, steps, *end, &mut random)).collect();
    while plans.len() > rounds(ARROWS_WALKED) {
        plans.swap_remove(random.below(plans.len()));
    }
    run(&plans, &mut random);
}

#[test]
fn at_random() {
    let mut random = Random::from_env();
    let plans: Vec<Plan> = (0..rounds(6)).map(|_| Plan::random(&mut random)).collect();
    run(&plans, &mut random);
}

fn rounds(default: usize) -> usize {
    env::var("HOLDFAST_TEST_ROUNDS").map_or(default, |rounds| rounds.parse().expect("a number of rounds"))
}

#[derive(Debug)]
struct Plan {
    on: bool,
    policy: &'static str,
    /// shutdown-timeout
    timeout: &'static str,
    steps: Vec<Step>,
    end: End,
}

impl Plan {
    fn with(on: bool, steps: &[Step], end: End, random: &mut Random) -> Plan {
        Plan { on, policy: random.pick(POLICIES), timeout: random.pick(TIMEOUTS), steps: steps.to_vec(), end }
    }

    fn random(random: &mut Random) -> Plan {
        let steps: Vec<Step> = (0..2 + random.below(5)).map(|_| Step::random(random)).collect();
        let (on, end) = (random.one_in(2), random.pick(ENDS));
        Plan::with(on, &steps, end, random)
    }
}

/// Walks one plan after the other. Each start verifies the walks before it.
fn run(plans: &[Plan], random: &mut Random) {
    for (group, plans) in plans.chunks(WALKS_PER_DISK).enumerate() {
        let Some(disk) = SmallDisk::mount(DISK_MEBIBYTES) else { return };
        let mut ledgers: Vec<Ledger> = Vec::new();
        for (number, plan) in plans.iter().enumerate() {
            let server = start(&disk, plan, &ledgers);
            let walk = Walk::begin(&disk, server, plan, number, random);
            ledgers.push(walk.go(plan, random));
            let ledger = ledgers.last().expect("it was just pushed");
            let (answered, refused) = (
                ledger.count(|entry| matches!(entry.outcome, Outcome::Answered(_))),
                ledger.count(|entry| entry.outcome == Outcome::Refused),
            );
            println!("{group}.{number}: {answered} answered, {refused} refused. {}", ledger.story);
        }
        start(&disk, &Plan::with(true, &[], End::Kill, random), &ledgers).kill();
    }
}

/// Starts a server, on a disk that was checked, and compares what it holds with what earlier ones have promised.
fn start(disk: &SmallDisk, plan: &Plan, ledgers: &[Ledger]) -> Server {
    if let Some(last) = ledgers.last() {
        let check = disk.home.tool("check");
        let said = String::from_utf8_lossy(&check.stderr).into_owned() + &String::from_utf8_lossy(&check.stdout);
        assert!(check.status.success(), "{said}\n{}", last.story);
    }
    let on = if plan.on { "yes" } else { "no" };
    let (policy, timeout) = (plan.policy, plan.timeout);
    let of_plan = ["--appendonly", on, "--appendfsync", policy, "--shutdown-timeout", timeout];
    let server = disk.home.start(&[&of_plan[..], &["--save", "", "--threads", "2"]].concat());
    let mut connection = server.connect();
    ledgers.iter().rev().take(2).for_each(|ledger| ledger.verify(&mut connection));
    server
}

/// A server, its clients, and what is wrong with its disk.
struct Walk<'a> {
    disk: &'a SmallDisk,
    server: Server,
    load: Load,
    injected: Option<Injected>,
    /// Clients that asked and were not waited for.
    unheard: Vec<Connection>,
    /// The journal was said to be on, and was not told to go off since.
    is_promising: bool,
    /// The last period of which something is promised.
    promised: Option<u64>,
    story: String,
}

impl<'a> Walk<'a> {
    fn begin(disk: &'a SmallDisk, server: Server, plan: &Plan, number: usize, random: &mut Random) -> Walk<'a> {
        let load = Load::start(&server, number, random);
        let (on, policy, timeout) = (plan.on, plan.policy, plan.timeout);
        let story = format!("walk {number}, on at first: {on}, {policy}, shutdown-timeout {timeout}");
        Walk {
            disk,
            server,
            load,
            injected: None,
            unheard: Vec::new(),
            is_promising: on,
            promised: on.then_some(0),
            story,
        }
    }

    fn go(mut self, plan: &Plan, random: &mut Random) -> Ledger {
        self.load.flow(5 + random.below(30) as u64);
        for step in &plan.steps {
            if !self.take(*step) {
                break;
            }
            let state = self.state();
            let _ = write!(self.story, "; {step:?} -> {state}");
            self.load.flow(1 + random.below(30) as u64);
        }
        self.end(plan.end)
    }

    /// A field of INFO.
    fn info(&self, name: &str) -> String {
        let reply = self.server.connect().run("INFO persistence");
        let Reply::Bulk(text) = &reply else { panic!("INFO: {reply}\n{}", self.story) };
        let text = String::from_utf8_lossy(text);
        let value =
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("INFO has the field");
        value.to_owned()
    }

    /// The state of the journal. Once INFO says that it is on, that is a promise.
    fn state(&mut self) -> String {
        let state = self.info("journal_state");
        if matches!(state.as_str(), "sound" | "failed" | "restarting") {
            self.note_on();
        }
        state
    }

    fn note_on(&mut self) {
        if !self.is_promising {
            self.load.next_period();
            self.is_promising = true;
        }
        self.promised = Some(self.load.period());
    }

    /// To be said before the journal is told to go off.
    fn note_off(&mut self) {
        if self.is_promising {
            self.promised = Some(self.load.period());
            self.load.next_period();
            self.is_promising = false;
        }
    }

    /// Takes a step; false when that cannot be done here.
    fn take(&mut self, step: Step) -> bool {
        match step {
            Step::Off => {
                self.note_off();
                let reply = self.server.connect().run("CONFIG SET appendonly no").to_string();
                assert_eq!(reply, "+OK", "{step:?}\n{}", self.story);
            }
            Step::On => {
                let reply = self.server.connect().run("CONFIG SET appendonly yes").to_string();
                match reply.as_str() {
                    "+OK" => self.note_on(),
                    _ => assert!(reply.starts_with("-MISCONF "), "{step:?}: {reply}\n{}", self.story),
                }
            }
            Step::OnWithoutWaiting => self.ask("CONFIG SET appendonly yes"),
            Step::OnOffOn => {
                self.note_off();
                let mut clients = [(); 3].map(|()| self.server.connect());
                for (client, word) in clients.iter_mut().zip(["yes", "no", "yes"]) {
                    client.queue_line(&format!("CONFIG SET appendonly {word}"));
                    client.flush();
                }
                for client in &mut clients {
                    let reply = client.read().to_string();
                    let is_known = reply == "+OK"
                        || reply.starts_with("-MISCONF ")
                        || reply == "-ERR appendonly was turned off before the journal had begun";
                    assert!(is_known, "{step:?}: {reply}\n{}", self.story);
                }
            }
            Step::Fill if !self.disk.is_filled() => self.disk.fill(),
            Step::MakeRoom if self.disk.is_filled() => self.disk.make_room(),
            Step::Break(call) => return self.inject(call, "error=EIO"),
            Step::BreakAfter(call, count) => return self.inject(call, &format!("error=EIO:when={count}+")),
            Step::Mend => {
                if let Some(injected) = self.injected.take() {
                    injected.mend();
                }
            }
            Step::Ask(command) => self.ask(command),
            Step::Until(state) => {
                let mut client = self.server.connect();
                eventually(&format!("{state}\n{}", self.story), || {
                    // With a policy that never syncs by itself.
                    if client.pipeline(&["SET probe 1", "WAITAOF 1 0 1"])[1] == Reply::Closed {
                        client = self.server.connect();
                    }
                    self.info("journal_state") == state
                });
            }
            Step::UntilFull => eventually("the disk is full", || self.info("journal_has_room") == "0"),
            Step::Fill | Step::MakeRoom => {}
        }
        true
    }

    fn inject(&mut self, call: &str, what: &str) -> bool {
        if let Some(injected) = self.injected.take() {
            injected.mend();
        }
        self.injected = Injected::into(&self.disk.home, &self.server, call, what);
        self.injected.is_some()
    }

    fn ask(&mut self, command: &str) {
        let mut client = self.server.connect();
        client.queue_line(command);
        client.flush();
        self.unheard.push(client);
    }

    fn end(mut self, end: End) -> Ledger {
        let state = self.state();
        let _ = write!(self.story, "; {end:?} in {state}");
        let is_sick = self.injected.is_some() || self.disk.is_filled();
        let saves = match end {
            End::Kill | End::Shutdown("NOSAVE") => false,
            End::Shutdown(how) if how.starts_with("SAVE") => true,
            // What was answered while the journal was about to begin is kept by the snapshot that it begins with.
            _ => matches!(state.as_str(), "starting" | "start-failed"),
        };
        let is_forced = matches!(end, End::Shutdown(how) if how.ends_with("FORCE"));
        self.load.end_is_near();
        match end {
            End::Kill => return self.finish(None),
            End::Signal(name) => self.server.signal(name),
            End::Shutdown(how) => self.ask(&format!("SHUTDOWN {how}")),
        }
        let mut status = None;
        let mut refused = false;
        eventually("it ends or says why not", || {
            refused = self.disk.home.stderr().contains("The server does not stop");
            status = self.server.ended();
            refused || status.is_some()
        });
        let code = status.map(|status| status.code());
        let _ = write!(self.story, ", code {code:?}");
        match code {
            None => {
                let may_stay = refused && saves && is_sick && !is_forced;
                assert!(may_stay, "it did not stop\n{}\n{}", self.disk.home.stderr(), self.story);
                self.load.end_is_put_off();
                assert_eq!(self.server.connect().run("PING").to_string(), "+PONG", "{}", self.story);
                self.load.end_is_near();
            }
            // Forced, it ends without the snapshot that was asked for, as Redis does.
            Some(Some(0)) if self.is_promising || saves && !(is_forced && is_sick) => self.promised = Some(u64::MAX),
            Some(Some(0)) => assert_ne!((state.as_str(), is_sick), ("start-failed", true), "{}", self.story),
            Some(Some(1)) => {
                let may_fail = is_sick || matches!(state.as_str(), "start-failed" | "failed" | "restarting");
                assert!(may_fail, "{}\n{}", self.disk.home.stderr(), self.story);
            }
            _ => panic!("{}\n{}", self.disk.home.stderr(), self.story),
        }
        self.finish(code.flatten())
    }

    /// The server has ended, or is killed now.
    fn finish(self, code: Option<i32>) -> Ledger {
        let promised = match code {
            Some(0) => self.promised,
            _ if self.is_promising => Some(self.load.period()),
            _ => self.promised,
        };
        self.server.kill();
        drop(self.injected);
        if self.disk.is_filled() {
            self.disk.make_room();
        }
        self.load.finish(promised, self.story)
    }
}
