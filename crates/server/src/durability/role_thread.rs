//! The thread that changes the role of this server: it applies the batches of another writer while it follows, takes
//! the log over, hands it over, and begins anew when another writer has taken it. Knows the order of the steps; refuses
//! to know what a batch means.

use super::keeper::Keeper;
use super::links::{self, Handed, NotHanded};
use super::load::{self, Indexes};
use super::roles::{HandOverRefusal, Order};
use super::snapshot_thread;
use crate::platform::clock::{unix_ms, unix_s};
use crate::platform::sockets::ListeningSocket;
use anyhow::{Context, Result, anyhow};
use engine::execution::replay::Replay;
use engine::persistence::Loading;
use engine::persistence::journal_state::JournalState;
use engine::{Engine, Persistence};
use journal::{Claim, Failure, Follower, LogPlace, OpenedLog, ReadError, RecoveryError};
use std::cell::Cell;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How often a follower looks for more while batches come, and while none do.
const LOOK_EVERY: Duration = Duration::from_micros(500);
const LOOK_EVERY_WHEN_IDLE: Duration = Duration::from_millis(2);
const IDLE_AFTER: Duration = Duration::from_millis(100);
/// How many batches, of how many bytes, are applied between two looks at orders. If there are so many, they are applied
/// under the same locks.
const BATCHES_AT_ONCE: usize = 1024;
const BYTES_AT_ONCE: usize = 512 * 1024;
/// How long to wait before the data is loaded anew, if that was of no use the last time.
const RELOADS_EVERY: Duration = Duration::from_millis(500);
/// How often the log says that the data cannot be read.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// How long to wait before a log that could not be read is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(20);
/// The same, when it could not be read many times.
const READ_AGAIN_AFTER_MAX: Duration = Duration::from_secs(1);
/// When a start that cannot read the log fails. It is not failed at once: the writer replaces what it needs no more.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// How often a writer looks whether it was fenced, if nothing wakes it.
const WRITER_LOOKS_EVERY: Duration = Duration::from_millis(500);
/// How often it looks whether clients are gone, or work in progress has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// How long the locks of a process may last that has closed its connections.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// How long work in the background may take to notice that writes are refused.
const WORK_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// How long a follower that was asked to take over may wait for its turn.
const PROMOTED_WITHIN: Duration = Duration::from_secs(15);
/// How often it asks, without an answer or when there is another writer. Nothing is applied while it waits for one.
const ASKS_EVERY: Duration = Duration::from_secs(1);

/// Changes the role of this server.
pub(crate) struct RoleThread {
    /// Where the log is kept.
    pub(crate) place: Arc<dyn LogPlace>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) indexes: Indexes,
    /// The index of its metrics: as a worker, it applies batches.
    pub(crate) metrics: usize,
    /// On how many threads it applies batches if there are many.
    pub(crate) threads: usize,
    /// When it has last begun anew.
    pub(crate) reloaded_at: Cell<Option<Instant>>,
    /// No client is connected that has passed the gates before data began to load.
    pub(crate) has_dropped_clients: Cell<bool>,
    /// A client has asked this follower to take over when its turn comes.
    pub(crate) promotion: Cell<Option<Promotion>>,
}

/// A request to take over.
#[derive(Clone, Copy)]
pub(crate) struct Promotion {
    number: u64,
    /// When it is given up.
    until: Instant,
    /// The epoch of the writer that has agreed to hand the log over.
    asked: Option<u32>,
    /// When a writer was last asked.
    asked_at: Instant,
}

/// How the log is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Only if no process has it.
    IfFree,
    /// From a process that is ending: it has closed its connections, and its locks follow.
    WhenFree,
    /// From a process that has asked for it, and only if it hands it over.
    IfHandedOver,
    /// From a process that was asked for it, even if it did not answer.
    AskThenForce,
}

/// Whether the thread waits for something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    /// It takes one step and returns: a simulation decides when the next one is.
    None,
}

/// What was applied.
#[derive(Default)]
struct Applied {
    batches: usize,
    /// There were as many as are applied at once.
    is_more_likely: bool,
}

/// What it does next.
pub(super) enum Next {
    Write,
    Follow(Box<dyn Follower>),
    /// Read all data anew, and follow.
    Reload,
}

impl RoleThread {
    /// Loads the data of a server that writes.
    pub(crate) fn load_as_writer(&self) -> Result<()> {
        load::load(&*self.place, &self.keeper, &self.engine, &self.indexes, self.threads)?;
        links::listen(&self.keeper, &*self.place);
        Ok(())
    }

    /// Loads the data of a server that follows, and returns what goes on reading. Waits for data that is being written.
    pub(crate) fn load_as_follower(&self) -> Result<Box<dyn Follower>> {
        self.keeper.roles.set_follows(true);
        self.keeper.begin_following(Arc::downgrade(&self.engine));
        // It tells clients why there are no snapshots.
        snapshot_thread::start_once(&self.keeper, &self.engine);
        links::connect(&self.keeper, &self.place);
        let (began, mut pause) = (Instant::now(), READ_AGAIN_AFTER);
        loop {
            match self.load() {
                Err(error) if is_damage(&error) && self.place.elects() => return Err(error),
                // The writer has replaced what was about to be read, or the log does not answer for a while.
                Err(error) if began.elapsed() < GIVE_UP_AFTER || self.place.elects() => {
                    match began.elapsed() < GIVE_UP_AFTER {
                        true => tracing::info!(error = format_args!("{error:#}"), "the data is read again"),
                        false => tracing::warn!(error = format_args!("{error:#}"), "the data cannot be read yet"),
                    }
                    engine::empty(&self.engine, self.engine.worker(self.metrics));
                    std::thread::sleep(pause);
                    pause = (2 * pause).min(READ_AGAIN_AFTER_MAX);
                }
                loaded => return loaded,
            }
        }
    }

    /// Takes the place of the process that writes: it ends, and this one goes on with its log and its sockets.
    pub(crate) fn upgrade(&self, mut follower: Box<dyn Follower>) -> Result<Vec<ListeningSocket>> {
        let mut replay = self.replay();
        // The other one should not end before this one has almost all it needs.
        while self.apply_some(&mut *follower, &mut replay)?.is_more_likely {}
        let began = Instant::now();
        let sockets = links::ask_to_retire(&*self.place)
            .context("the server that writes this log does not make room. Does one run?")?;
        let ended = began.elapsed();
        if let Err(error) = self.promote(follower, &mut replay, Manner::WhenFree, None) {
            // The other one is gone, so somebody has to serve: its last snapshot may have what its journal has not.
            tracing::warn!(error = format_args!("{error:#}"), "the data is read from the beginning");
            self.acquire(Manner::WhenFree)?;
            engine::empty(&self.engine, self.engine.worker(self.metrics));
            self.keeper.roles.set_follows(false);
            self.engine.restrictions.set_following(false);
            self.load_as_writer()?;
        }
        tracing::info!(
            ended_ms = ended.as_millis() as u64,
            taken_ms = (began.elapsed() - ended).as_millis() as u64,
            "this process has taken the place of another"
        );
        Ok(sockets)
    }

    /// Serves until the process ends.
    pub(crate) fn serve(&self, follower: Option<Box<dyn Follower>>) {
        let mut next = follower.map_or(Next::Write, Next::Follow);
        loop {
            next = self.turn(next, Patience::Wait);
        }
    }

    /// Serves in one role, until it is another or, without patience, for one step.
    pub(super) fn turn(&self, next: Next, patience: Patience) -> Next {
        match next {
            Next::Write => self.write(patience),
            Next::Follow(follower) => self.follow(follower, patience),
            Next::Reload => self.reload(patience),
        }
    }

    /// Reads the data as far as it is there.
    fn load(&self) -> Result<Box<dyn Follower>> {
        let RoleThread { place, keeper, engine, indexes, threads, .. } = self;
        let follower = load::read_live(&**place, keeper, engine, indexes, *threads)?;
        self.keeper.roles.set_applied(follower.reached().0, follower.time_ms());
        self.keeper.end_loading();
        // From here on clients may read. The first batch is applied under the locks of what it changes.
        drop(self.replay());
        Ok(follower)
    }

    fn replay(&self) -> Replay<'_> {
        let replay = Replay::new(&self.engine, None).on_threads(&self.engine, self.threads);
        replay.go_live(self.engine.worker(self.metrics))
    }

    /// Applies batches until it is told to take over, or has to begin anew.
    fn follow(&self, mut follower: Box<dyn Follower>, patience: Patience) -> Next {
        let mut replay = self.replay();
        let mut applied_at = Instant::now();
        loop {
            if self.keeper.has_diverged() {
                tracing::warn!("a change was made here while another server writes: loading the data anew");
                return Next::Reload;
            }
            let applied = match self.apply_some(&mut *follower, &mut replay) {
                Ok(applied) => applied,
                Err(error) => {
                    self.stop_if_damaged(&error);
                    tracing::warn!(error = format_args!("{error:#}"), "loading the data anew");
                    return Next::Reload;
                }
            };
            if applied.batches == 0 && follower.is_due() {
                match self.claim(follower, &mut replay) {
                    Ok(next) => return next,
                    Err(kept) => follower = kept,
                }
            }
            self.go_on_with_promotion();
            if applied.batches > 0 {
                applied_at = Instant::now();
            }
            let within = match patience {
                Patience::None => Duration::ZERO,
                // Orders are looked at without a wait.
                _ if applied.is_more_likely => Duration::ZERO,
                _ if applied_at.elapsed() > IDLE_AFTER => LOOK_EVERY_WHEN_IDLE,
                _ => LOOK_EVERY,
            };
            if let Some(order) = self.keeper.roles.next_order(within) {
                match self.obey(order, follower, &mut replay) {
                    Ok(next) => return next,
                    Err(kept) => follower = kept,
                }
            }
            if patience == Patience::None {
                return Next::Follow(follower);
            }
        }
    }

    /// Applies batches that are there.
    fn apply_some(&self, follower: &mut dyn Follower, replay: &mut Replay<'_>) -> Result<Applied> {
        let (mut read, mut bytes, mut time_ms) = (Vec::new(), 0, 0);
        while read.len() < BATCHES_AT_ONCE && bytes < BYTES_AT_ONCE {
            match follower.try_next() {
                Ok(Some(batch)) => {
                    (bytes, time_ms) = (bytes + batch.payload.len(), batch.time_ms);
                    read.push((batch.sequence.0, batch.payload));
                }
                Ok(None) => break,
                Err(error) => return Err(error).context("the journal cannot be followed"),
            }
        }
        let Some((last, _)) = read.last() else {
            // Marks are batches, too.
            let reached = follower.reached().0;
            if reached > self.keeper.roles.applied() {
                self.keeper.roles.set_applied(reached, follower.time_ms());
            }
            follower.note_applied();
            return Ok(Applied::default());
        };
        let (last, batches) = (*last, read.len());
        let applied = replay.many(read);
        applied.map_err(|error| anyhow!("a batch up to {last} cannot be applied: {error}"))?;
        self.keeper.roles.set_applied(last, time_ms);
        follower.note_applied();
        Ok(Applied { batches, is_more_likely: batches == BATCHES_AT_ONCE || bytes >= BYTES_AT_ONCE })
    }

    /// Does what a follower is told. Returns the follower if it goes on.
    fn obey(
        &self,
        order: Order,
        mut follower: Box<dyn Follower>,
        replay: &mut Replay<'_>,
    ) -> Result<Next, Box<dyn Follower>> {
        let (number, manner) = match order {
            Order::Promote { number } if self.place.elects() => {
                if let Some(earlier) = self.promotion.take() {
                    self.keeper.roles.finish(earlier.number, Err("another request has taken its place".to_owned()));
                    self.keeper.notify_workers();
                }
                let until = Instant::now() + PROMOTED_WITHIN;
                self.promotion.set(Some(Promotion {
                    number,
                    until,
                    asked: self.ask_writer(),
                    asked_at: Instant::now(),
                }));
                return Err(follower);
            }
            Order::Promote { number } => (Some(number), Manner::AskThenForce),
            Order::Take => (None, Manner::IfHandedOver),
            Order::TakeBack => (None, Manner::IfFree),
            Order::HandOver { answer } => {
                let why = "this server follows another: it has nothing to hand over";
                let _ = answer.send(Err(HandOverRefusal::Failed(why.into())));
                return Err(follower);
            }
        };
        // The writer stops for what is left when it is asked: that should be little.
        while self.apply_some(&mut *follower, replay).is_ok_and(|applied| applied.is_more_likely) {}
        let handed = match self.ask_for_log(manner) {
            Ok(handed) => handed,
            Err(reason) => {
                tracing::warn!(%reason, "this server goes on following");
                if let Some(number) = number {
                    self.keeper.roles.finish(number, Err(reason));
                    self.keeper.notify_workers();
                }
                return Err(follower);
            }
        };
        let result = self.promote(follower, replay, manner, handed);
        let next = if result.is_ok() { Next::Write } else { Next::Reload };
        if let Err(error) = &result {
            tracing::error!(error = format_args!("{error:#}"), "the promotion failed");
        }
        if let Some(number) = number {
            self.keeper.roles.finish(number, result.map_err(|error| format!("{error:#}")));
            self.keeper.notify_workers();
        }
        Ok(next)
    }

    /// Takes the log over because it is this server's turn. Returns the follower if another was first.
    fn claim(&self, mut follower: Box<dyn Follower>, replay: &mut Replay<'_>) -> Result<Next, Box<dyn Follower>> {
        let began = Instant::now();
        match follower.begin_epoch() {
            Ok(epoch) => tracing::info!(%epoch, "this server takes the log over"),
            Err(error) => {
                let error = anyhow::Error::new(error);
                self.stop_if_damaged(&error);
                tracing::info!(reason = format_args!("{error:#}"), "another server was first: this one follows");
                return Err(follower);
            }
        }
        let opened = (|| {
            // There is nothing left: the epoch was begun behind the last batch that is applied.
            while self.apply_some(&mut *follower, replay)?.batches > 0 {}
            follower.into_log().context("the log cannot be opened for writing")
        })();
        let result = opened.map(|opened| self.begin_writing(opened, began));
        if let Err(error) = &result {
            tracing::error!(error = format_args!("{error:#}"), "this server cannot write");
        }
        let next = if result.is_ok() { Next::Write } else { Next::Reload };
        if let Some(Promotion { number, .. }) = self.promotion.take() {
            self.keeper.roles.finish(number, result.map_err(|error| format!("{error:#}")));
            self.keeper.notify_workers();
        }
        Ok(next)
    }

    /// Asks the writer of a log that elects one for it. Its lease protects what it answers: it hands the log over, or has to
    /// be silent for long enough. Returns its epoch, if it has answered.
    fn ask_writer(&self) -> Option<u32> {
        let cluster = self.keeper.roles.cluster()?;
        let epoch = cluster.epoch();
        cluster.ask_for_log().then_some(epoch)
    }

    /// Goes on with a promotion that has begun: a new writer is asked as well. Tells a client that this server did not take
    /// over in time.
    fn go_on_with_promotion(&self) {
        let Some(promotion) = self.promotion.get() else { return };
        if Instant::now() > promotion.until {
            self.promotion.set(None);
            let why = "the writer goes on: it did not hand the log over";
            self.keeper.roles.finish(promotion.number, Err(why.to_owned()));
            self.keeper.notify_workers();
        } else if promotion.asked_at.elapsed() > ASKS_EVERY
            && let Some(cluster) = self.keeper.roles.cluster()
            && Some(cluster.epoch()) != promotion.asked
            && cluster.hears_writer()
        {
            // Another server was told the same and was first, or the writer could not answer yet.
            let asked = self.ask_writer();
            self.promotion.set(Some(Promotion { asked, asked_at: Instant::now(), ..promotion }));
        }
    }

    /// Ends the process if the log that it shares with others is damaged, as it sees it. The others go on if theirs is
    /// whole, and an operator has to look at this one.
    fn stop_if_damaged(&self, error: &anyhow::Error) {
        if self.place.elects() && is_damage(error) {
            self.keeper.abandon();
            tracing::error!(error = format_args!("{error:#}"), "the log is damaged: this server stops");
            #[cfg(test)]
            panic!("the log is damaged: {error:#}");
            #[cfg(not(test))]
            std::process::exit(1);
        }
    }

    /// Asks the writer for the log. An error if it is needed and refused.
    fn ask_for_log(&self, manner: Manner) -> Result<Option<Handed>, String> {
        if matches!(manner, Manner::IfFree | Manner::WhenFree) {
            return Ok(None);
        }
        match links::ask_for_log(&*self.place, manner == Manner::IfHandedOver) {
            Ok(handed) => {
                tracing::info!("the writer has handed the log over");
                Ok(Some(handed))
            }
            Err(NotHanded::Failed(reason)) if manner == Manner::AskThenForce => {
                tracing::warn!(%reason, "the writer does not hand the log over: it is fenced");
                Ok(None)
            }
            Err(NotHanded::Failed(reason) | NotHanded::Unsafe(reason)) => Err(reason),
        }
    }

    /// Takes the log over: from its writer, which has handed it over, or from one that is dead or does not answer.
    fn promote(
        &self,
        follower: Box<dyn Follower>,
        replay: &mut Replay<'_>,
        manner: Manner,
        handed: Option<Handed>,
    ) -> Result<()> {
        let began = Instant::now();
        let opened = self.take_over(follower, replay, manner).inspect_err(|_| self.place.release())?;
        self.begin_writing(opened, began);
        if let Some(handed) = handed {
            handed.done();
        }
        Ok(())
    }

    /// Writes a log from now on.
    fn begin_writing(&self, opened: OpenedLog, began: Instant) {
        self.keeper.open(Arc::downgrade(&self.engine), opened);
        self.keeper.snapshots.resume();
        engine::end_following(&self.engine, &mut self.engine.worker(self.metrics));
        // IMPORTANT: not before writes are accepted, so that ROLE tells the truth.
        self.keeper.roles.set_follows(false);
        snapshot_thread::start_once(&self.keeper, &self.engine);
        links::listen(&self.keeper, &*self.place);
        tracing::info!(seconds = began.elapsed().as_secs_f32(), "this server writes now");
    }

    /// Becomes the writer of what a follower has read. From the first step on, the process that has written so far
    /// confirms nothing more, even if it does not answer.
    fn take_over(&self, mut follower: Box<dyn Follower>, replay: &mut Replay<'_>, manner: Manner) -> Result<OpenedLog> {
        self.acquire(manner)?;
        follower.begin_epoch().context("the other writer cannot be fenced")?;
        while self.apply_some(&mut *follower, replay)?.batches > 0 {}
        follower.into_log().context("the journal cannot be opened for writing")
    }

    /// Takes the right to write.
    fn acquire(&self, manner: Manner) -> Result<()> {
        let claim = if manner == Manner::AskThenForce { Claim::ByForce } else { Claim::IfFree };
        let began = Instant::now();
        loop {
            match self.place.acquire(claim) {
                Err(_) if manner == Manner::WhenFree && began.elapsed() < ENDS_WITHIN => std::thread::sleep(LOOK_AGAIN),
                acquired => return Ok(acquired?),
            }
        }
    }

    /// Serves as the writer, until another one is.
    fn write(&self, patience: Patience) -> Next {
        let within = if patience == Patience::None { Duration::ZERO } else { WRITER_LOOKS_EVERY };
        loop {
            let order = self.keeper.roles.next_order(within);
            if self.keeper.state() == JournalState::Fenced {
                if let Some(Order::HandOver { answer }) = order {
                    let _ = answer.send(Err(HandOverRefusal::Failed("this server is fenced".into())));
                }
                return self.leave_to_another();
            }
            if let Some(damage @ Failure::Damaged { .. }) = self.keeper.journal().and_then(|log| log.failure()) {
                self.stop_if_damaged(&anyhow::Error::new(damage));
            }
            match order {
                Some(Order::HandOver { answer }) => {
                    if let Some(next) = self.hand_over(&answer) {
                        return next;
                    }
                }
                Some(Order::Promote { number }) => {
                    self.keeper.roles.finish(number, Ok(()));
                    self.keeper.notify_workers();
                }
                Some(Order::Take | Order::TakeBack) | None => {}
            }
            if patience == Patience::None {
                return Next::Write;
            }
        }
    }

    /// Ends the log properly and lets another process write it. The state here is that of its end, so this server can
    /// follow at once, and its clients stay. `None` if it still writes.
    fn hand_over(&self, answer: &mpsc::Sender<Result<u64, HandOverRefusal>>) -> Option<Next> {
        let (opened, state) = (self.keeper.opened(), self.keeper.state());
        let Some(opened) = opened.filter(|_| state == JournalState::Sound) else {
            let why = format!("the journal is {}: only a sound one can be handed over", state.name());
            let _ = answer.send(Err(match state {
                // What was acknowledged is in no log: nobody else can have it.
                JournalState::Off | JournalState::Starting | JournalState::StartFailed => HandOverRefusal::Unsafe(why),
                _ => HandOverRefusal::Failed(why),
            }));
            return None;
        };
        self.keeper.snapshots.stop();
        engine::begin_following(&self.engine);
        // IMPORTANT: before the log is given up. From then on another may write, and what is read here is a follower's answer.
        self.keeper.roles.set_applied(opened.log.tail().0, 0);
        self.keeper.roles.set_follows(true);
        self.wait_for_work_in_progress();
        if let Err(reason) = self.keeper.close() {
            // Another has it already, or what is stored is not known: it is left to whoever takes it, and read anew.
            tracing::error!(%reason, "the journal could not be handed over");
            let _ = answer.send(Err(HandOverRefusal::Failed(reason)));
            self.keeper.abandon();
            return Some(self.leave_to_another());
        }
        let last = opened.log.tail().0;
        let follower = (opened.follow_on)();
        self.keeper.roles.set_applied(last, unix_ms());
        self.keeper.begin_following(Arc::downgrade(&self.engine));
        self.keeper.snapshots.resume();
        self.place.release();
        links::connect(&self.keeper, &self.place);
        tracing::info!(batch = last, "the log is handed over: this server follows");
        let _ = answer.send(Ok(last));
        Some(match follower {
            Some(follower) => Next::Follow(follower),
            None => Next::Reload,
        })
    }

    /// Lets requests end that had passed the gates before writes were refused, and work in the background that notices
    /// it now. What is later still is found as a change after the end of the log.
    fn wait_for_work_in_progress(&self) {
        let began = Instant::now();
        while (self.engine.forks.any() || self.engine.restores.any()) && began.elapsed() < WORK_ENDS_WITHIN {
            std::thread::sleep(LOOK_AGAIN);
        }
        drop(self.engine.keyspace.lock_all());
    }

    /// Another process has taken the log over. What is in memory may never have happened.
    fn leave_to_another(&self) -> Next {
        tracing::warn!("another server has taken the log over: this one follows it");
        engine::set_loading(&self.engine, true);
        engine::begin_following(&self.engine);
        self.keeper.snapshots.stop();
        self.wait_for_work_in_progress();
        self.drop_clients();
        self.has_dropped_clients.set(true);
        // IMPORTANT: in this order. A client that finds a follower here must not be told that the server is fenced.
        self.keeper.begin_following(Arc::downgrade(&self.engine));
        self.keeper.roles.set_follows(true);
        self.keeper.snapshots.resume();
        self.place.release();
        links::connect(&self.keeper, &self.place);
        Next::Reload
    }

    /// Waits for so long, and refuses what is asked for meanwhile.
    fn refuse_orders(&self, within: Duration, why: &str) {
        let began = Instant::now();
        while let Some(left) = within.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            match self.keeper.roles.next_order(left) {
                Some(Order::Promote { number }) => {
                    self.keeper.roles.finish(number, Err(why.to_owned()));
                    self.keeper.notify_workers();
                }
                Some(Order::HandOver { answer }) => drop(answer.send(Err(HandOverRefusal::Failed(why.to_owned())))),
                Some(Order::Take | Order::TakeBack) | None => {}
            }
        }
    }

    /// Closes all connections, without the replies that are still to be sent.
    fn drop_clients(&self) {
        // IMPORTANT: while the journal is fenced, so that their replies are dropped. None may be sent later.
        let clients = self.engine.clients.all();
        clients.iter().for_each(|client| client.kill());
        while clients.iter().any(|client| self.engine.clients.get(client.id).is_some()) {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// What is in memory may never have happened, or have been overtaken.
    fn drop_state(&self) {
        #[cfg(test)]
        if jetstream::simulation::is_broken(jetstream::simulation::Mutation::FencedKeepsState) {
            return;
        }
        engine::empty(&self.engine, self.engine.worker(self.metrics));
    }

    /// Drops what is in memory, and loads the data anew. Clients get -LOADING meanwhile.
    fn reload(&self, patience: Patience) -> Next {
        engine::set_loading(&self.engine, true);
        self.keeper.roles.set_loading(true);
        if !self.has_dropped_clients.take() {
            // IMPORTANT: before anything is dropped. A request that has passed the gates before would find nothing, and
            // its client would be told that its data does not exist.
            self.keeper.abandon();
            self.drop_clients();
        }
        let began = Instant::now();
        if patience == Patience::Wait
            && self.reloaded_at.replace(Some(began)).is_some_and(|at| at.elapsed() < RELOADS_EVERY)
        {
            // What it has read is of no use: a hole in the log, say.
            self.refuse_orders(RELOADS_EVERY, "the log cannot be followed");
        }
        engine::set_reading(&self.engine, true);
        self.keeper.set_loading(Loading { since_s: unix_s(), total_bytes: 0, loaded_bytes: 0, left_s: 0 });
        let (mut logged_at, mut pause): (Option<Instant>, _) = (None, READ_AGAIN_AFTER);
        self.keeper.begin_following(Arc::downgrade(&self.engine));
        loop {
            self.drop_state();
            match self.load() {
                Ok(follower) => {
                    self.keeper.roles.set_loading(false);
                    engine::set_loading(&self.engine, false);
                    return Next::Follow(follower);
                }
                // Something was removed meanwhile, or a new writer has not begun yet.
                Err(error) => {
                    self.stop_if_damaged(&error);
                    if logged_at.is_none_or(|at| at.elapsed() > LOG_EVERY) {
                        logged_at = Some(Instant::now());
                        tracing::warn!(error = format_args!("{error:#}"), "the data cannot be read yet");
                    }
                    if patience == Patience::None {
                        return Next::Reload;
                    }
                    self.refuse_orders(pause, &format!("the data cannot be read yet: {error:#}"));
                    pause = (2 * pause).min(READ_AGAIN_AFTER_MAX);
                }
            }
        }
    }
}

/// True when an error says that the log has lost something, or holds what does not belong there.
fn is_damage(error: &anyhow::Error) -> bool {
    let of_failure = |failure: &Failure| matches!(failure, Failure::Damaged { .. });
    let of_batches = |error: &ReadError| matches!(error, ReadError::Damaged { .. });
    error.chain().any(|cause| {
        cause.downcast_ref::<Failure>().is_some_and(of_failure)
            || cause.downcast_ref::<ReadError>().is_some_and(of_batches)
            || cause.downcast_ref::<RecoveryError>().is_some_and(|cause| match cause {
                RecoveryError::Log(failure) => of_failure(failure),
                RecoveryError::Batches(error) => of_batches(error),
                _ => false,
            })
    })
}
