//! What can happen. Every step is atomic, and any other may come between two of them, ticks of the clock included: so a
//! process may be paused for any time between two steps, a message may be late or never arrive, and the log may be
//! away. Knows which steps there are, time and crashes; what the others do is in the files beside it.

use super::config::{Config, Mutation};
use super::invariants::{self, flags};
use super::state::*;
use super::writes::Writes;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    /// Time passes on all clocks but one.
    Tick {
        except: Option<u8>,
    },
    Write(u8),
    Read(u8),
    /// The writer sends what waits: whole batches in one frame, the next piece of a large one, or a heartbeat.
    SendFrame(u8),
    HandOver(u8),
    /// An append arrives at the log. With `copy` the network keeps it too.
    Arrive {
        request: u8,
        copy: bool,
    },
    Lose(u8),
    Answered(u8),
    /// The same bytes for the same position.
    Resend(u8),
    /// Reads the log at the position of the oldest frame without an answer.
    Resolve(u8),
    /// A follower reads the next frame.
    Apply(u8),
    /// What comes next was purged: load the newest snapshot.
    Reload(u8),
    TakeOver(u8),
    Crash(u8),
    /// With any of the snapshots: the newest may be damaged.
    Start {
        server: u8,
        snapshot: Option<u8>,
    },
    ServerTickBegins(u8),
    CheckReply {
        server: u8,
        reply: u8,
    },
    SendReply {
        server: u8,
        reply: u8,
    },
    BeginSnapshot(u8),
    PublishSnapshot(u8),
    Purge(u8),
}

impl Config {
    /// Server 0 writes, with its epoch record as the only frame; the others have applied it.
    pub(crate) fn start(&self) -> State {
        let first = Frame {
            epoch: 1,
            author: 0,
            incarnation: 0,
            kind: Kind::Epoch,
            first_batch: 1,
            writes: Writes::default(),
            number: 0,
            chain: None,
        };
        let server = |index: u8| Server {
            up: true,
            incarnation: 0,
            role: if index == 0 { Role::Writer } else { Role::Follower },
            epoch: 1,
            chain: Some(first.link()),
            applied: 1,
            unfinished: None,
            state: Writes::default(),
            queue: Writes::default(),
            pending: Vec::new(),
            lease: if index == 0 { self.lease } else { 0 },
            wait: if index == 0 { 0 } else { self.wait },
            releasing: false,
            replies: Vec::new(),
            checked_replies: Vec::new(),
            snapshot: None,
            purge_to: None,
            halted: false,
            leased_at_tick_start: false,
            miscounted: 0,
        };
        State {
            servers: (0..self.servers).map(server).collect(),
            log: vec![first],
            purged: 0,
            requests: Vec::new(),
            answers: Vec::new(),
            store: Vec::new(),
            next_write: 1,
            budget: self.budget,
            observed: 0,
            acknowledged: Writes::default(),
            refused: Writes::default(),
            repliers: Vec::new(),
            violations: 0,
        }
    }

    /// The steps that may be possible. Whether one is, `after` decides.
    pub(crate) fn steps(&self, all: &State, steps: &mut Vec<Step>) {
        if all.violations & !flags::LATE_REPLY != 0 && !self.explore_on {
            return;
        }
        steps.push(Step::Tick { except: None });
        for server in 0..self.servers {
            if all.budget.skew > 0 || (self.frozen_clock && server == 0) {
                steps.push(Step::Tick { except: Some(server) });
            }
        }
        for request in 0..all.requests.len() as u8 {
            steps.push(Step::Arrive { request, copy: false });
            if all.budget.duplicates > 0 {
                steps.push(Step::Arrive { request, copy: true });
            }
            if all.budget.losses > 0 {
                steps.push(Step::Lose(request));
            }
        }
        steps.extend((0..all.answers.len() as u8).map(Step::Answered));
        for (index, server) in (0u8..).zip(&all.servers) {
            if server.up {
                self.steps_of(all, index, server, steps);
            } else {
                steps.push(Step::Start { server: index, snapshot: None });
                let snapshots = 0..all.store.len() as u8;
                steps.extend(snapshots.map(|at| Step::Start { server: index, snapshot: Some(at) }));
            }
        }
    }

    fn steps_of(&self, all: &State, at: u8, server: &Server, steps: &mut Vec<Step>) {
        if all.budget.crashes > 0 {
            steps.push(Step::Crash(at));
        }
        steps.extend((0..server.replies.len() as u8).map(|reply| Step::CheckReply { server: at, reply }));
        steps.extend((0..server.checked_replies.len() as u8).map(|reply| Step::SendReply { server: at, reply }));
        if server.halted {
            return;
        }
        match server.role {
            Role::Writer => {
                steps.extend([Step::Write(at), Step::Read(at), Step::SendFrame(at), Step::HandOver(at)]);
                steps.extend([Step::Resend(at), Step::Resolve(at)]);
            }
            Role::Candidate => steps.extend([Step::Resend(at), Step::Resolve(at)]),
            Role::Follower => steps.extend([Step::Apply(at), Step::Reload(at), Step::TakeOver(at)]),
        }
        if self.mutation == Mutation::CheckAtStartOfTick {
            steps.push(Step::ServerTickBegins(at));
        }
        if self.budget.snapshots > 0 {
            steps.extend([Step::BeginSnapshot(at), Step::PublishSnapshot(at), Step::Purge(at)]);
        }
    }

    /// The state after a step; `None` if the step is not possible.
    pub(crate) fn after(&self, before: &State, step: Step) -> Option<State> {
        let mut next = before.clone();
        self.perform(&mut next, step)?;
        self.normalize(&mut next);
        invariants::check(self, &mut next);
        Some(next)
    }

    fn perform(&self, all: &mut State, step: Step) -> Option<()> {
        match step {
            Step::Tick { except } => self.tick(all, except),
            Step::Write(at) => self.write(all, at),
            Step::Read(at) => self.read(all, at),
            Step::SendFrame(at) => self.send_frame(all, at),
            Step::HandOver(at) => self.hand_over(all, at),
            Step::Arrive { request, copy } => self.arrive(all, request, copy),
            Step::Lose(request) => {
                all.budget.losses -= 1;
                all.requests.remove(request.into());
                Some(())
            }
            Step::Answered(answer) => self.answered(all, answer),
            Step::Resend(at) => self.resend(all, at),
            Step::Resolve(at) => self.resolve(all, at),
            Step::Apply(at) => self.apply(all, at),
            Step::Reload(at) => self.reload(all, at),
            Step::TakeOver(at) => self.take_over(all, at),
            Step::Crash(at) => self.crash(all, at),
            Step::Start { server, snapshot } => self.start_server(all, server, snapshot),
            Step::ServerTickBegins(at) => {
                let server = &mut all.servers[usize::from(at)];
                let was = std::mem::replace(&mut server.leased_at_tick_start, server.lease > 0);
                (was != server.leased_at_tick_start).then_some(())
            }
            Step::CheckReply { server, reply } => self.check_reply(all, server, reply),
            Step::SendReply { server, reply } => {
                let reply = all.servers[usize::from(server)].checked_replies.remove(reply.into());
                self.deliver(all, server, reply);
                Some(())
            }
            Step::BeginSnapshot(at) => self.begin_snapshot(all, at),
            Step::PublishSnapshot(at) => self.publish_snapshot(all, at),
            Step::Purge(at) => self.purge(all, at),
        }
    }

    fn tick(&self, all: &mut State, except: Option<u8>) -> Option<()> {
        let mut moved = false;
        let mut count_down = |left: &mut u8| {
            moved |= *left > 0;
            *left = left.saturating_sub(1);
        };
        for (_, server) in (0u8..).zip(&mut all.servers).filter(|(index, _)| except != Some(*index)) {
            count_down(&mut server.lease);
            count_down(&mut server.wait);
            server.pending.iter_mut().for_each(|pending| count_down(&mut pending.lease));
        }
        if except.is_some_and(|index| !(self.frozen_clock && index == 0)) {
            all.budget.skew = all.budget.skew.checked_sub(1)?;
        }
        moved.then_some(())
    }

    fn crash(&self, all: &mut State, at: u8) -> Option<()> {
        all.budget.crashes -= 1;
        let server = &mut all.servers[usize::from(at)];
        self.become_follower(server);
        self.load(server, None);
        server.up = false;
        server.incarnation += 1;
        server.wait = 0;
        server.checked_replies.clear();
        server.snapshot = None;
        server.purge_to = None;
        Some(())
    }

    fn start_server(&self, all: &mut State, at: u8, snapshot: Option<u8>) -> Option<()> {
        let snapshot = snapshot.map(|at| all.store[usize::from(at)]);
        // Without a snapshot the log must be whole.
        (snapshot.is_some() || all.purged == 0).then_some(())?;
        let server = &mut all.servers[usize::from(at)];
        server.up = true;
        self.load(server, snapshot);
        if self.mutation == Mutation::ImpatientStart {
            server.wait = 0;
        }
        Some(())
    }

    /// Gives equal states equal forms, and drops messages that can have no effect.
    fn normalize(&self, all: &mut State) {
        let last = all.log.len() as u8;
        if self.prune && self.mutation != Mutation::ConflictMeansRefused {
            // A position that is taken stays taken: such an append fails, whenever it arrives. Its sender learns of the
            // conflict by reading the position, which it may do at any time.
            all.requests.retain(|request| request.expected.is_none_or(|expected| expected >= last));
            all.answers.retain(|answer| answer.at.is_some());
        }
        let servers = &all.servers;
        all.answers.retain(|answer| {
            let server = &servers[usize::from(answer.frame.author)];
            let mut pending = server.pending.iter();
            server.up
                && server.incarnation == answer.frame.incarnation
                && pending.any(|pending| pending.frame == answer.frame && !pending.acknowledged)
        });
        all.requests.sort_unstable();
        if self.prune {
            all.requests.dedup();
        }
        all.answers.sort_unstable();
        all.answers.dedup();
    }
}
