//! One connection to each side: attach, load, follow, until one of them breaks or the end is asked for.

use super::gather::Gatherer;
use super::load::Loader;
use super::position::{At, Position, Reserved};
use super::progress::Progress;
use super::promote::Compared;
use super::source::{Attached, Source};
use super::target::{Allowed, Found, Target};
use super::{End, Follower, copy, limits, promote};
use anyhow::{Result, bail};
use formats::replication::{Next, ReplicationId};
use std::time::{Duration, Instant};

/// What one value may decompress to.
const VALUE_BYTES_MAX: usize = 4 << 30;
/// A command of the source may be so much longer than the target takes before it is refused unread: what is refused
/// afterwards is named.
const COMMAND_BYTES_BEYOND: u64 = 64 << 20;
/// How long commands are gathered before they are sent.
const GATHER_FOR: Duration = Duration::from_millis(10);
const ACKNOWLEDGE_EVERY: Duration = Duration::from_secs(1);
/// How often the position is written while nothing but signs of life comes.
const NOTE_EVERY: Duration = Duration::from_secs(10);
/// How long no writer may have written before the promotion, if nothing holds writers back.
const QUIET_FOR: Duration = Duration::from_secs(1);
/// How often digests are compared before they count as different: keys may expire meanwhile.
const COMPARISONS_MAX: u32 = 10;
const COMPARE_EVERY: Duration = Duration::from_millis(300);

impl Follower {
    pub(super) fn session(&mut self) -> Result<End> {
        let (mut target, found) =
            Target::open(&self.request.to, &self.request.way, &self.request.from.to_string(), self.allowed())?;
        let began = self.begin(&mut target, found);
        if began.is_err() && !self.has_begun {
            target.leave_as_it_was()?;
        }
        match began? {
            Begun::Promoted => Ok(End::Promoted),
            Begun::Copy => copy::run(self, &mut target).map_err(limits::explain),
            Begun::Follow(mut source, attached, at) => self.go_on(&mut source, &mut target, attached, at),
        }
    }

    /// What the target may hold.
    fn allowed(&self) -> Allowed {
        match () {
            () if self.has_position => Allowed::Position,
            () if self.request.replaces => Allowed::Anything,
            () => Allowed::NothingOfOthers,
        }
    }

    /// Attaches to the source. Until it has succeeded once, nothing of the target is changed for good.
    fn begin(&mut self, target: &mut Target, found: Found) -> Result<Begun> {
        let mut is_replaceable = self.request.replaces || self.has_begun;
        match &found {
            // The answer to the last transaction was lost.
            Found::Gone if self.is_told_to_promote => return Ok(Begun::Promoted),
            Found::Gone => bail!("the position in the target is gone: it was promoted, or somebody has removed it"),
            Found::Foreign if !self.request.replaces => {
                bail!(
                    "{} has keys or functions already: with --replace, all of them are removed first",
                    self.request.to
                )
            }
            Found::OfAnother(_) => {}
            Found::Stale(why) => {
                is_replaceable = true;
                eprintln!("all data comes again: {why}");
            }
            Found::Empty | Found::Foreign | Found::Ours => is_replaceable = true,
        }
        let at = match (&found, &target.position) {
            (Found::Ours | Found::OfAnother(_), Some(Position::At(at))) => Some(at.clone()),
            _ => None,
        };
        let bytes_max = (VALUE_BYTES_MAX, target.limits.request_bytes_max.saturating_add(COMMAND_BYTES_BEYOND));
        let (source, attached) = Source::attach(&self.request.from, &self.request.way, at.as_ref(), bytes_max)?;
        if let (Found::OfAnother(other), Attached::Full(..) | Attached::Refused(_)) = (&found, &attached)
            && !is_replaceable
        {
            bail!("{} has the data of {other}: with --replace, it is removed first", self.request.to);
        }
        self.has_begun = true;
        if let Attached::Refused(why) = attached {
            eprintln!("{} does not take a replica ({why}): its keys are copied one by one", self.request.from);
            return Ok(Begun::Copy);
        }
        Ok(Begun::Follow(Box::new(source), attached, at))
    }

    fn go_on(&mut self, source: &mut Source, target: &mut Target, attached: Attached, at: Option<At>) -> Result<End> {
        let at = match (attached, at) {
            (Attached::Partial(id), Some(at)) => {
                eprintln!("going on behind byte {} of the history of {}", at.offset, self.request.from);
                At { id: id.unwrap_or(at.id), ..at }
            }
            (Attached::Full(id, offset), at) => {
                if at.is_some() {
                    eprintln!("{} has not kept what came since: all data comes again", self.request.from);
                }
                match self.load(source, target, id, offset).map_err(limits::explain)? {
                    Some(at) => at,
                    None => return Ok(End::Stopped),
                }
            }
            (Attached::Partial(_) | Attached::Refused(_), _) => bail!("{} does not go on from here", self.request.from),
        };
        self.has_position = true;
        self.follow(source, target, at)
    }

    /// Brings all data in; `None` when a signal has stopped it.
    fn load(&mut self, source: &mut Source, target: &mut Target, id: ReplicationId, offset: u64) -> Result<Option<At>> {
        self.report = Default::default();
        target.begin_load()?;
        self.has_position = true;
        let (signals, progress) = (&self.signals, &mut self.progress);
        source.wait_for_payload(|| {
            progress.now_and_then(|| "the source prepares its data".to_owned());
            if signals.stops() { bail!("stopped by a signal") } else { Ok(()) }
        })?;
        let mut loader = Loader::new();
        let began = Instant::now();
        while let Some(item) = source.stream.item()? {
            loader.item(target, item, &mut self.report)?;
            if loader.items.is_multiple_of(1024) {
                self.progress.loading(loader.items, source.stream.bytes_read());
                if self.signals.stops() {
                    return Ok(None);
                }
            }
        }
        target.end_window(&mut self.report)?;
        let at = At { id, offset, db: source.stream.stream_db().unwrap_or(0) };
        target.note(Position::At(at.clone()))?;
        // A source that has written its data straight to this connection waits for that.
        source.acknowledge(offset)?;
        eprintln!("all data has come, in {:.1} s: {} items", began.elapsed().as_secs_f64(), loader.items);
        Ok(Some(at))
    }

    fn follow(&mut self, source: &mut Source, target: &mut Target, at: At) -> Result<End> {
        // The source may count from another beginning now.
        self.progress = Progress::new();
        let mut gatherer = Gatherer::new(at.offset, at.db, target.databases, target.limits.request_bytes_max);
        let now = Instant::now();
        let mut following = Following {
            id: at.id,
            applied: at.offset,
            in_flight: at.offset,
            noted: now,
            acknowledged: now - ACKNOWLEDGE_EVERY,
            gathered: now,
            changed: now,
            pause_began: None,
            comparisons: 0,
            looked: now - COMPARE_EVERY,
            compared: None,
            has_time_for_digests: true,
        };
        loop {
            let next = source.next()?;
            let is_idle = matches!(next, Next::NotYet);
            match next {
                Next::Ended => bail!(std::io::Error::other(format!("{} has closed the connection", self.request.from))),
                Next::NotYet => {}
                Next::Command { command, bytes } => {
                    let had_changes = gatherer.has_changes();
                    if let Err(error) = gatherer.take(command, bytes, &mut self.report) {
                        if error.is::<Reserved>() {
                            // The command would come again after each start, until all data comes again.
                            target.finish(&mut self.report)?;
                            target.note(Position::Loading)?;
                        }
                        return Err(error);
                    }
                    if gatherer.has_changes() {
                        following.changed = Instant::now();
                        if !had_changes {
                            following.gathered = following.changed;
                        }
                    }
                }
            }
            self.pump(&mut following, &mut gatherer, target, is_idle)?;
            if following.acknowledged.elapsed() >= ACKNOWLEDGE_EVERY
                || gatherer.is_asked_for_offset && following.applied == gatherer.offset()
            {
                following.acknowledged = Instant::now();
                gatherer.is_asked_for_offset = false;
                source.acknowledge(following.applied)?;
                self.look_around(&mut following, target)?;
            }
            if self.signals.stops() {
                target.finish(&mut self.report)?;
                return Ok(End::Stopped);
            }
            if self.is_told_to_promote
                && is_idle
                && following.applied == gatherer.offset()
                && !gatherer.has_changes()
                && self.is_at_the_end(&following)?
                && self.is_equal(&mut following, target)?
                // IMPORTANT: again, because comparing takes time, and writers are held back no longer than was said.
                && self.is_at_the_end(&following)?
            {
                self.say(&following);
                target.promote()?;
                return Ok(End::Promoted);
            }
        }
    }

    /// Sends what is gathered, and reads what was answered, without waiting for more than one transaction.
    fn pump(
        &mut self,
        following: &mut Following,
        gatherer: &mut Gatherer,
        target: &mut Target,
        is_idle: bool,
    ) -> Result<()> {
        let is_due = gatherer.is_full()
            || gatherer.has_changes() && (is_idle || following.gathered.elapsed() >= GATHER_FOR)
            || gatherer.offset() > following.in_flight && following.noted.elapsed() >= NOTE_EVERY;
        if target.is_busy() && (is_due || is_idle) {
            target.finish(&mut self.report)?;
            following.applied = following.in_flight;
        }
        if is_due {
            let batch = gatherer.batch();
            (following.in_flight, following.noted, following.gathered) = (batch.offset, Instant::now(), Instant::now());
            target.apply(batch, &following.id)?;
        } else if !target.is_busy() && !gatherer.has_changes() {
            // Signs of life change nothing: they need not be written.
            (following.applied, following.in_flight) = (gatherer.offset(), gatherer.offset());
        }
        Ok(())
    }

    /// What is done about once a second.
    fn look_around(&mut self, following: &mut Following, target: &mut Target) -> Result<()> {
        if let Ok(Some(offset)) = self.side.offset() {
            self.progress.sample(Instant::now(), offset);
        }
        self.progress.following(self.report.commands, following.applied);
        if !target.is_busy() {
            target.look_for_promotion()?;
        }
        if !self.is_told_to_promote && (target.promote.is_some() || self.signals.promotes() || self.request.promotes) {
            self.is_told_to_promote = true;
            self.request.pause = promote::asked_pause(target.promote.as_deref()).or(self.request.pause);
            eprintln!("promotion is asked for: waiting until writers of the source have stopped");
        }
        if self.is_told_to_promote
            && !following.holds_writers_back(self.request.pause)
            && let Some(pause) = self.request.pause
        {
            promote::pause(&mut self.side, pause)?;
            following.pause_began = Some(Instant::now());
        }
        Ok(())
    }

    /// True when everything that was written is applied, and no writer writes.
    fn is_at_the_end(&mut self, following: &Following) -> Result<bool> {
        if self.request.pause.is_some() {
            if !following.holds_writers_back(self.request.pause) {
                return Ok(false);
            }
        } else if following.changed.elapsed() < QUIET_FOR {
            self.progress.now_and_then(|| "the source is still written: stop its writers".to_owned());
            return Ok(false);
        }
        // IMPORTANT: asked for after the pause began. A source that does not answer may have been written.
        let end = self.side.offset()?;
        if end.is_none() {
            self.progress.now_and_then(|| "the source does not say how far it is: waiting for it".to_owned());
        }
        Ok(end.is_some_and(|end| following.applied >= end))
    }

    /// Compares both sides. False when it may be different in a moment.
    fn is_equal(&mut self, following: &mut Following, target: &mut Target) -> Result<bool> {
        // What was compared before writers had to be held back once more need not be compared again.
        if following.compared.as_ref().is_some_and(|(at, _)| *at == following.applied) {
            return Ok(true);
        }
        if following.looked.elapsed() < COMPARE_EVERY {
            return Ok(false);
        }
        following.comparisons += 1;
        let compared = promote::compare(&mut self.side, target, following.has_time_for_digests)?;
        following.looked = Instant::now();
        // Also where the two sides differ: writers have gone on meanwhile.
        if self.request.pause.is_some() && !following.holds_writers_back(self.request.pause) {
            eprintln!("comparing took longer than writers are held back: they are held back once more");
            following.has_time_for_digests = false;
        }
        let is_last = following.comparisons >= COMPARISONS_MAX;
        if !compared.has_counts() || compared.differs() && !is_last {
            return Ok(false);
        }
        following.compared = Some((following.applied, compared));
        Ok(true)
    }

    /// Says how both sides compare.
    fn say(&mut self, following: &Following) {
        if let Some((_, compared)) = &following.compared {
            println!("{compared}");
            if compared.differs() {
                self.report.failed(b"(comparison)", "the two sides differ");
            }
        }
    }
}

/// How a session begins.
enum Begun {
    /// The source takes no replica.
    Copy,
    Follow(Box<Source>, Attached, Option<At>),
    /// An earlier session has ended the import, and did not hear of it.
    Promoted,
}

impl Following {
    /// True while the source holds writers back, and for long enough to end the import.
    fn holds_writers_back(&self, pause: Option<Duration>) -> bool {
        let ends_in = |began: Instant| pause.unwrap_or_default().saturating_sub(began.elapsed());
        self.pause_began.is_some_and(|began| ends_in(began) > pause.unwrap_or_default() / 4)
    }
}

/// Where a session is in the history.
struct Following {
    id: ReplicationId,
    /// Up to where the target has said that it has everything.
    applied: u64,
    /// Up to where it was sent.
    in_flight: u64,
    noted: Instant,
    acknowledged: Instant,
    /// When the first of the gathered commands came.
    gathered: Instant,
    /// When the last command came that changes something.
    changed: Instant,
    /// When the source was last told to hold writers back.
    pause_began: Option<Instant>,
    comparisons: u32,
    /// When both sides were last compared.
    looked: Instant,
    /// How they compared, and where in the history.
    compared: Option<(u64, Compared)>,
    /// False once comparing digests has taken longer than writers are held back.
    has_time_for_digests: bool,
}
