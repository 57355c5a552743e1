//! How the writer of a log and its followers on one machine talk: lines of text over a socket in the directory where they
//! meet, on which the writer listens. Without such a directory they do not talk. Knows the lines; refuses to know how a log is handed over.
//!
//! ```text
//! follower -> writer                              writer -> follower
//! FOLLOW port       where its clients reach it    WRITER port
//! AT sequence       what it has applied           TAIL sequence   the writer's newest batch
//!                                                 TAKE            take the log over (FAILOVER)
//! HANDOVER          give me the log               HANDED sequence, or REFUSED why; UNSAFE why if it has
//!                                                 acknowledged what is in no log: it must not be fenced
//! HANDOVER TOLD     the same, after TAKE          REFUSED if FAILOVER was aborted or its time is over
//! DONE              it writes now
//! AS host port      where it is reached, and         MEMBER host port sentinel-port role sequence silent-ms: the writer, or
//!    sentinel-port  where it answers as a            another follower; MEMBERS number: so many were listed, and there are
//!                   Sentinel                         no others
//! FAILOVER          do what FAILOVER does            NOFAILOVER why
//!                                                 RESIGNED        the writer follows another one from now on
//! RETIRE            end, and give me the sockets  LISTENERS, with the sockets that it listens on; LISTENERS TLS number,
//!                                                 if that many of them, the last ones, speak TLS
//! ```
//!
//! Lines that an older version does not know: a follower ignores them, and a writer ends the connection. So a follower says
//! AS and FAILOVER only to a writer that lists members.
//!
//! A follower reads the files whether or not the writer answers here.

use super::keeper::Keeper;
use super::members::{Address, HOST, MEMBERS_MAX, Member};
use super::roles::{HandOverRefusal, Order};
use crate::platform::clock::unix_ms;
use crate::platform::service_manager;
use crate::platform::sockets::ListeningSocket;
use engine::clients::Peer;
use engine::host::{SaveOnExit, Shutdown};
use engine::{ClientHandle, Engine, Persistence};
use journal::LogPlace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg, sockopt};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The socket, in the data directory. The next writer replaces it.
const SOCKET: &str = "holdfast.sock";
/// How often a follower says how far it is, while that changes, and otherwise.
const TELL_EVERY: Duration = Duration::from_millis(5);
const TELL_AT_LEAST_EVERY: Duration = Duration::from_millis(500);
/// How often a writer tells a follower how far the others are, at most.
const MEMBERS_EVERY: Duration = Duration::from_millis(500);
/// A socket takes no shorter timeout for no timeout.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// How long the other side may take for a line.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// How often a side looks whether it still has its role, or is told something.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a follower waits before it tries to connect again.
const CONNECT_EVERY: Duration = Duration::from_millis(200);
/// How long a writer may take to end.
const RETIRES_WITHIN: Duration = Duration::from_secs(60);
/// Sockets that are given to another process.
const SOCKETS_MAX: usize = 32;
/// A longer line is none of ours.
const LINE_MAX: usize = 200;

/// One end of a connection.
struct Link {
    reader: BufReader<UnixStream>,
    /// The beginning of a line.
    line: Vec<u8>,
}

impl Link {
    fn new(stream: UnixStream) -> io::Result<Link> {
        stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
        Ok(Link { reader: BufReader::new(stream), line: Vec::new() })
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        self.reader.get_mut().write_all(format!("{line}\n").as_bytes())
    }

    /// The next line; `None` if there is no whole one within that time. The end of the connection is an error.
    fn hear(&mut self, within: Duration) -> io::Result<Option<String>> {
        self.reader.get_ref().set_read_timeout(Some(within))?;
        loop {
            let available = match self.reader.fill_buf() {
                Ok([]) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(available) => available,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            self.line.extend_from_slice(&available[..taken]);
            self.reader.consume(taken);
            if self.line.len() > LINE_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
        }
    }
}

/// The number after a word.
fn number<T: std::str::FromStr>(line: &str, word: &str) -> Option<T> {
    line.strip_prefix(word)?.strip_prefix(' ')?.parse().ok()
}

/// Calls `open` with a path of the socket that is short, however long that of the directory is: the path of a socket
/// has room for some hundred bytes.
fn at_socket<T>(directory: &Path, open: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let opened = File::open(directory)?;
    open(Path::new(&format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd())))
}

fn open(place: &dyn LogPlace) -> io::Result<Link> {
    let nowhere = || io::Error::new(ErrorKind::Unsupported, "the servers of this log cannot talk to each other");
    let directory = place.meeting_directory().ok_or_else(nowhere)?;
    Link::new(at_socket(directory, |path| UnixStream::connect(path))?)
}

// The writer's side.

/// Answers followers while this server writes.
pub(super) fn listen(keeper: &Arc<Keeper>, place: &dyn LogPlace) {
    let Some(directory) = place.meeting_directory() else { return };
    let bound = at_socket(directory, |path| {
        // Another writer's: it is gone, or follows.
        let _ = std::fs::remove_file(path);
        UnixListener::bind(path)
    });
    let listener = match bound {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(%error, "followers cannot ask this server for anything: no socket in the data directory");
            return;
        }
    };
    let keeper = keeper.clone();
    let since = keeper.roles.changes();
    let serve = move || {
        while keeper.roles.changes() == since {
            match accept(&listener) {
                Ok(Some(stream)) => {
                    let keeper = keeper.clone();
                    let serve = move || {
                        // A follower that has gone is no error.
                        let _ = serve_follower(&keeper, stream);
                    };
                    let _ = std::thread::Builder::new().name("follower".into()).spawn(serve);
                }
                Ok(None) => {}
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("followers".into()).spawn(serve) {
        tracing::warn!(%error, "no thread to answer followers could be started");
    }
}

/// The next connection; `None` if none comes for a while.
fn accept(listener: &UnixListener) -> io::Result<Option<UnixStream>> {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    let within = Timespec { tv_sec: 0, tv_nsec: 4 * LOOK_EVERY.subsec_nanos() as i64 };
    match poll(&mut polled, Some(&within))? {
        0 => Ok(None),
        _ => listener.accept().map(|(stream, _)| Some(stream)),
    }
}

/// A follower that is listed while its connection lasts.
struct Listed<'k> {
    keeper: &'k Keeper,
    number: u64,
    shown: Option<Shown>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.keeper.roles.remove_follower(self.number);
        self.keeper.notify_workers();
    }
}

/// Another server in CLIENT LIST, while the connection to it lasts. CLIENT KILL ends the connection.
struct Shown {
    engine: Arc<Engine>,
    handle: Arc<ClientHandle>,
}

impl Shown {
    /// Shows the server whose clients reach it at this port.
    fn new(keeper: &Keeper, link: &Link, peer: Peer, port: u16) -> Option<Shown> {
        let engine = keeper.engine()?;
        let stream = link.reader.get_ref().try_clone().ok()?;
        let (fd, name) = (stream.as_raw_fd(), format!("{HOST}:{port}"));
        let end = move || drop(stream.shutdown(std::net::Shutdown::Both));
        let local = format!("{HOST}:{}", keeper.settings.client_port());
        let handle = ClientHandle::new(engine.clients.next_id(), name, local, fd, unix_ms(), Box::new(end));
        let handle = Arc::new(handle.of_server(peer));
        engine.clients.add(handle.clone());
        Some(Shown { engine, handle })
    }

    fn note_active(&self) {
        self.handle.note_active(self.engine.clock.monotonic_ns());
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.engine.clients.remove(&self.handle);
    }
}

fn serve_follower(keeper: &Keeper, stream: UnixStream) -> io::Result<()> {
    let mut link = Link::new(stream)?;
    let (tell, told) = mpsc::channel();
    let mut listed: Option<Listed<'_>> = None;
    let mut members = MembersTold::default();
    let since = keeper.roles.changes();
    while !keeper.roles.follows() && keeper.roles.changes() == since {
        if told.try_recv().is_ok() {
            link.say("TAKE")?;
        }
        if let Some(Listed { number, .. }) = &listed {
            members.tell(keeper, &mut link, *number)?;
        }
        let Some(line) = link.hear(LOOK_EVERY)? else { continue };
        if let Some(port) = number(&line, "FOLLOW") {
            let number = keeper.roles.add_follower(port, tell.clone());
            listed = Some(Listed { keeper, number, shown: Shown::new(keeper, &link, Peer::Replica, port) });
            // IMPORTANT: before the port alone. A follower must not take the two for two writers.
            members.tell(keeper, &mut link, number)?;
            link.say(&format!("WRITER {}", keeper.settings.announced_port()))?;
        } else if let Some(applied) = number(&line, "AT") {
            if let Some(Listed { number, shown, .. }) = &listed {
                shown.iter().for_each(Shown::note_active);
                keeper.roles.hear_of_follower(*number, applied);
                keeper.notify_workers();
            }
            link.say(&format!("TAIL {}", keeper.tail()))?;
        } else if let (Some(address), Some(listed)) = (line.strip_prefix("AS ").and_then(Address::parse), &listed) {
            keeper.roles.set_follower_address(listed.number, address);
        } else if line == "FAILOVER" && listed.is_some() {
            if let Err(reason) = keeper.roles.fail_over() {
                link.say(&format!("NOFAILOVER {reason}"))?;
            }
        } else if line == "HANDOVER TOLD" && !keeper.roles.accept_hand_over() {
            return link.say("REFUSED the failover was aborted, or its time is over");
        } else if line.starts_with("HANDOVER") {
            return hand_over(keeper, link);
        } else if line == "RETIRE" {
            return retire(keeper, &link);
        } else {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    if keeper.roles.follows() { link.say("RESIGNED") } else { Ok(()) }
}

/// What a writer has told a follower of the others.
#[derive(Default)]
struct MembersTold {
    changes: Option<u64>,
    at: Option<Instant>,
}

impl MembersTold {
    /// Tells it if others have come or gone, and now and then how far they are.
    fn tell(&mut self, keeper: &Keeper, link: &mut Link, number: u64) -> io::Result<()> {
        let since = self.changes.filter(|_| self.at.is_some_and(|at| at.elapsed() < MEMBERS_EVERY));
        let own = Address::announced(&keeper.settings);
        let Some((members, changes)) = keeper.roles.members_for(number, own, keeper.tail(), since) else {
            return Ok(());
        };
        for member in &members {
            link.say(&format!("MEMBER {}", member.line()))?;
        }
        (self.changes, self.at) = (Some(changes), Some(Instant::now()));
        link.say(&format!("MEMBERS {}", members.len()))
    }
}

/// Hands the log over, and takes it back if the follower is gone before it has begun to write.
fn hand_over(keeper: &Keeper, mut link: Link) -> io::Result<()> {
    let (answer, answered) = mpsc::channel();
    keeper.roles.give(Order::HandOver { answer });
    match answered.recv() {
        Ok(Ok(last)) => {
            let taken = link.say(&format!("HANDED {last}")).and_then(|()| {
                loop {
                    if let Some(line) = link.hear(ANSWERS_WITHIN)? {
                        break Ok(line == "DONE");
                    }
                }
            });
            if !matches!(taken, Ok(true)) {
                tracing::warn!("the follower that the log was handed to has gone: this server takes it back");
                keeper.roles.give(Order::TakeBack);
            }
            Ok(())
        }
        Ok(Err(HandOverRefusal::Unsafe(reason))) => link.say(&format!("UNSAFE {reason}")),
        Ok(Err(HandOverRefusal::Failed(reason))) => link.say(&format!("REFUSED {reason}")),
        Err(_) => link.say("REFUSED the server stops"),
    }
}

/// Gives the listening sockets to a process that takes this one's place, and ends this one in peace: clients get the
/// replies to what they have asked for, and find the other process when they connect again.
fn retire(keeper: &Keeper, link: &Link) -> io::Result<()> {
    let mut sockets = keeper.roles.share_listeners();
    sockets.truncate(SOCKETS_MAX);
    sockets.sort_by_key(|listening| listening.is_tls);
    let borrowed: Vec<BorrowedFd<'_>> = sockets.iter().map(|listening| listening.socket.as_fd()).collect();
    // A process of an older version knows nothing of TLS: it does not take the place of one that has such sockets.
    let line = match sockets.iter().filter(|listening| listening.is_tls).count() {
        0 => "LISTENERS\n".to_owned(),
        tls => format!("LISTENERS TLS {tls}\n"),
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&borrowed));
    }
    sendmsg(link.reader.get_ref(), &[IoSlice::new(line.as_bytes())], &mut ancillary, SendFlags::NOSIGNAL)?;
    service_manager::fall_silent();
    tracing::info!("another process takes the place of this one, which ends");
    if let Some(engine) = keeper.engine() {
        engine.host.shutdown(Shutdown { graceful: true, save: SaveOnExit::AsSet, force: false });
    }
    // The other side sees that the process has ended when this connection does.
    loop {
        std::thread::park();
    }
}

// The follower's side.

/// Tells the writer how far this server is, while it follows.
pub(super) fn connect(keeper: &Arc<Keeper>, place: &Arc<dyn LogPlace>) {
    if place.meeting_directory().is_none() {
        return;
    }
    let (keeper, place) = (keeper.clone(), place.clone());
    let since = keeper.roles.changes();
    let serve = move || {
        while keeper.roles.changes() == since {
            let _ = follow(&keeper, &*place);
            keeper.roles.lose_writer();
            std::thread::sleep(CONNECT_EVERY);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("writer-link".into()).spawn(serve) {
        tracing::warn!(%error, "no thread to talk to the writer could be started");
    }
}

fn follow(keeper: &Keeper, place: &dyn LogPlace) -> io::Result<()> {
    let mut link = open(place)?;
    keeper.roles.begin_link();
    link.say(&format!("FOLLOW {}", keeper.settings.announced_port()))?;
    let (mut told, mut told_at, mut heard_at) = (None, Instant::now(), Instant::now());
    let since = keeper.roles.changes();
    let mut shown: Option<Shown> = None;
    let mut members = MembersHeard::default();
    while keeper.roles.follows() && keeper.roles.changes() == since {
        let applied = keeper.roles.applied();
        let elapsed = told_at.elapsed();
        let is_due = told != Some(applied) && elapsed >= TELL_EVERY || elapsed >= TELL_AT_LEAST_EVERY;
        if is_due || told.is_none() {
            link.say(&format!("AT {applied}"))?;
            (told, told_at) = (Some(applied), Instant::now());
        }
        members.answer(keeper, &mut link)?;
        if let Some(line) = link.hear(TELL_EVERY.saturating_sub(told_at.elapsed()).max(SHORTEST_WAIT))? {
            match line.as_str() {
                "TAKE" => {
                    tracing::info!("the writer asks this server to take over");
                    keeper.roles.give(Order::Take);
                }
                "RESIGNED" => {
                    keeper.roles.writer_resigned();
                    return Ok(());
                }
                _ => members.hear(keeper, &line),
            }
            if let Some(reason) = line.strip_prefix("NOFAILOVER ") {
                tracing::warn!(%reason, "the writer was asked for a failover, and refuses");
            }
            let port = number(&line, "WRITER");
            if let Some(port) = port {
                shown = Shown::new(keeper, &link, Peer::Primary, port);
            }
            shown.iter().for_each(Shown::note_active);
            keeper.roles.hear_of_writer(port, number(&line, "TAIL"));
            heard_at = Instant::now();
        }
        // It may have been stopped, and another may listen by now.
        if heard_at.elapsed() > ANSWERS_WITHIN {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// What a follower is told of the other members of its log, and what it answers.
#[derive(Default)]
struct MembersHeard {
    /// Those of a list that is not complete yet.
    members: Vec<Member>,
    /// The writer lists members.
    are_listed: bool,
    /// Where this follower has said that it is reached.
    said: Option<Address>,
}

impl MembersHeard {
    fn hear(&mut self, keeper: &Keeper, line: &str) {
        if let Some(member) = line.strip_prefix("MEMBER ").and_then(Member::parse) {
            if self.members.len() < MEMBERS_MAX {
                self.members.push(member);
            }
        } else if let Some(count) = number::<usize>(line, "MEMBERS") {
            let members = std::mem::take(&mut self.members);
            if members.len() == count {
                self.are_listed = true;
                keeper.roles.hear_of_members(members);
            }
        }
    }

    /// Says where this follower is reached, if that has changed, and passes on that it was asked for a failover.
    fn answer(&mut self, keeper: &Keeper, link: &mut Link) -> io::Result<()> {
        if !self.are_listed {
            return Ok(());
        }
        let own = Address::announced(&keeper.settings);
        if self.said.as_ref() != Some(&own) {
            link.say(&format!("AS {}", own.line()))?;
            self.said = Some(own);
        }
        if keeper.roles.take_failover_request() { link.say("FAILOVER") } else { Ok(()) }
    }
}

/// A log that its writer has handed over. If it is dropped before [`Handed::done`], the writer takes the log back.
pub(super) struct Handed(Link);

impl Handed {
    /// This server writes now.
    pub(super) fn done(mut self) {
        let _ = self.0.say("DONE");
    }
}

/// Why a writer has not handed its log over.
pub(super) enum NotHanded {
    /// It has acknowledged what is in no log: to fence it would lose that.
    Unsafe(String),
    /// It is dead, does not answer, or cannot.
    Failed(String),
}

/// Asks the writer to hand the log over. An error says why it does not: it is dead, or does not answer.
pub(super) fn ask_for_log(place: &dyn LogPlace, was_told: bool) -> Result<Handed, NotHanded> {
    let ask = || -> io::Result<Result<Link, NotHanded>> {
        let mut link = open(place)?;
        link.say(if was_told { "HANDOVER TOLD" } else { "HANDOVER" })?;
        Ok(match link.hear(ANSWERS_WITHIN)? {
            Some(line) if line.starts_with("HANDED ") => Ok(link),
            Some(line) => Err(match line.strip_prefix("UNSAFE ") {
                Some(why) => NotHanded::Unsafe(why.to_owned()),
                None => NotHanded::Failed(line.trim_start_matches("REFUSED ").to_owned()),
            }),
            None => Err(NotHanded::Failed("it does not answer".into())),
        })
    };
    ask().map_err(|error| NotHanded::Failed(error.to_string()))?.map(Handed)
}

/// Asks the writer to end, and waits for it. Returns the sockets that it has listened on.
pub(super) fn ask_to_retire(place: &dyn LogPlace) -> io::Result<Vec<ListeningSocket>> {
    let mut link = open(place)?;
    let writer = sockopt::socket_peercred(link.reader.get_ref())?.pid;
    // IMPORTANT: before the writer ends, or systemd would take its end for that of the service.
    service_manager::main_process(std::process::id());
    retire_the_other(&mut link)
        .inspect_err(|_| service_manager::main_process(writer.as_raw_nonzero().get().unsigned_abs()))
}

fn retire_the_other(link: &mut Link) -> io::Result<Vec<ListeningSocket>> {
    link.say("RETIRE")?;
    let mut sockets: Vec<TcpListener> = Vec::new();
    let mut bytes = [0; LINE_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    link.reader.get_ref().set_read_timeout(Some(ANSWERS_WITHIN))?;
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(link.reader.get_ref(), &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            sockets.extend(sent.map(TcpListener::from));
        }
    }
    let line = String::from_utf8_lossy(&bytes[..received.bytes]);
    let tls = if line == "LISTENERS\n" { Some(0) } else { number(line.trim_end(), "LISTENERS TLS") };
    let Some(tls) = tls.filter(|tls: &usize| *tls <= sockets.len() && !sockets.is_empty()) else {
        return Err(io::Error::new(ErrorKind::InvalidData, "the writer has not given its sockets"));
    };
    let plain = sockets.len() - tls;
    let sockets =
        sockets.into_iter().enumerate().map(|(index, socket)| ListeningSocket { socket, is_tls: index >= plain });
    let sockets = sockets.collect();
    let deadline = Instant::now() + RETIRES_WITHIN;
    while Instant::now() < deadline {
        match link.hear(ANSWERS_WITHIN) {
            Ok(_) => {}
            Err(_) => return Ok(sockets),
        }
    }
    Err(io::Error::new(ErrorKind::TimedOut, "the writer was asked to end, and has not"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut link, mut other) = (Link::new(ours).unwrap(), theirs);
        other.write_all(b"AT 1").unwrap();
        assert_eq!(link.hear(Duration::from_millis(1)).unwrap(), None);
        other.write_all(b"7\nTAIL 20\n").unwrap();
        let heard = [link.hear(ANSWERS_WITHIN).unwrap().unwrap(), link.hear(ANSWERS_WITHIN).unwrap().unwrap()];
        assert_eq!((number(&heard[0], "AT"), number(&heard[1], "TAIL")), (Some(17_u64), Some(20_u64)));
        assert_eq!(number::<u64>("ATTIC 3", "AT"), None);
        other.write_all(&[b'x'; LINE_MAX + 1]).unwrap();
        assert!(link.hear(ANSWERS_WITHIN).is_err());
        drop(other);
        assert!(link.hear(ANSWERS_WITHIN).is_err());
    }

    #[test]
    fn the_socket_is_reached_however_long_its_path_is() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("d".repeat(150));
        std::fs::create_dir(&directory).unwrap();
        let listener = at_socket(&directory, |path| UnixListener::bind(path)).unwrap();
        at_socket(&directory, |path| UnixStream::connect(path)).unwrap();
        assert!(accept(&listener).unwrap().is_some());
    }
}
