//! `holdfast import --follow`: brings the data of a running Redis or Valkey into a running Holdfast, keeps it as the source
//! has it, and promotes it when asked. Knows the order of these; the files of this folder know the rest.
//!
//! ```text
//! source ──RDB file──► load ──────► target      once, and again when the source has forgotten what is missing
//!        ──commands──► gather ────► target      in transactions that write the position too
//! side   ──offsets, counts, CLIENT PAUSE
//! ```
//!
//! After a broken connection, and after a start, the position in the target says what to ask the source for.

mod copy;
mod gather;
mod limits;
mod load;
mod position;
mod progress;
mod promote;
mod session;
mod signals;
mod source;
mod target;

use super::data_tools::LeftOut;
use super::import::ImportReport;
use super::link::{Way, is_lost};
use crate::config::ServerUrl;
use anyhow::Result;
use progress::Progress;
pub(super) use promote::ask as ask_for_promotion;
use signals::Signals;
use source::Side;
use std::time::{Duration, Instant};

/// How long to wait before the next try, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// What is asked for.
pub(crate) struct Request {
    pub(crate) from: ServerUrl,
    pub(crate) to: ServerUrl,
    pub(crate) way: Way,
    /// What the target has may go.
    pub(crate) replaces: bool,
    /// Promote as soon as all is there.
    pub(crate) promotes: bool,
    /// Hold writers of the source back before the end, for this long at most.
    pub(crate) pause: Option<Duration>,
    pub(crate) skip_unsupported: bool,
}

pub(super) fn run(request: Request) -> Result<()> {
    let mut follower = Follower {
        side: Side::new(&request.from, &request.way),
        request,
        report: ImportReport::default(),
        signals: Signals::listen()?,
        progress: Progress::new(),
        has_begun: false,
        has_position: false,
        is_told_to_promote: false,
    };
    let mut retry = RETRY_FIRST;
    loop {
        let began = Instant::now();
        let error = match follower.session() {
            Ok(End::Promoted) => return follower.conclude(),
            Ok(End::Stopped) => {
                eprintln!("stopped: the same command goes on from here");
                return Ok(());
            }
            Err(error) if follower.has_begun && is_lost(&error) => error,
            Err(error) => return Err(error),
        };
        if began.elapsed() > RETRY_MAX {
            retry = RETRY_FIRST;
        }
        eprintln!("{error:#}: trying again");
        let until = Instant::now() + retry;
        while Instant::now() < until && !follower.signals.stops() {
            std::thread::sleep(RETRY_FIRST);
        }
        if follower.signals.stops() {
            return Ok(());
        }
        retry = (retry * 2).min(RETRY_MAX);
    }
}

/// What lasts longer than a connection.
struct Follower {
    request: Request,
    report: ImportReport,
    signals: Signals,
    side: Side,
    progress: Progress,
    /// Both servers were reached: from now on, what fails may pass.
    has_begun: bool,
    /// The target holds a position of this process.
    has_position: bool,
    is_told_to_promote: bool,
}

/// How a session ends that does not break.
enum End {
    Promoted,
    /// By a signal. It can be gone on from.
    Stopped,
}

impl Follower {
    fn conclude(&self) -> Result<()> {
        println!("{}", self.report);
        match self.report.has_left_something_out() && !self.request.skip_unsupported {
            true => Err(LeftOut::by_following(&self.request.from).into()),
            false => Ok(()),
        }
    }
}
