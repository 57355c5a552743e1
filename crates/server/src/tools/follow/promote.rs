//! The end of an import: how it is asked for, how writers are held back, and whether both sides are equal.

use super::position::{KEY, PROMOTE_KEY};
use super::source::Side;
use super::target::Target;
use crate::config::ServerUrl;
use crate::tools::link::{Client, Reply, Way};
use anyhow::{Result, bail, ensure};
use std::fmt;
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Asks the process that follows into a target for its promotion, and waits until that is done. With `pause`, it holds the
/// writers of the source back for that long at most.
pub(crate) fn ask(to: &ServerUrl, way: &Way, pause: Option<Duration>, within: Duration) -> Result<()> {
    let mut client = Client::connect(to, way)?;
    let is_begun =
        |client: &mut Client| Ok::<bool, anyhow::Error>(client.must(&[b"EXISTS", KEY])? == Reply::Integer(1));
    ensure!(
        is_begun(&mut client)?,
        "too early, or done already: no data has come into {to} from `holdfast import --follow` that is not promoted (it \
         has no key {}). Start that first, and ask for the promotion when it says that it follows",
        String::from_utf8_lossy(KEY)
    );
    let state = |client: &mut Client| client.must(&[b"HGET", KEY, b"state"]).map(|reply| reply.text());
    let is_loading = |state: &Option<String>| state.as_deref() == Some("loading");
    if is_loading(&state(&mut client)?) {
        let s = within.as_secs();
        eprintln!("too early: the data of the source is still coming into {to}. This waits for it, for at most {s} s");
    }
    let pause_ms = pause.map_or(0, |pause| pause.as_millis()).to_string();
    client.must(&[b"SET", PROMOTE_KEY, pause_ms.as_bytes()])?;
    let began = Instant::now();
    loop {
        // IMPORTANT: in this order: both go at once.
        let is_asked = client.must(&[b"EXISTS", PROMOTE_KEY])? == Reply::Integer(1);
        if !is_begun(&mut client)? {
            break;
        }
        // Only a copy is refused.
        let state = state(&mut client)?;
        let is_copied = state.as_deref() == Some("copied");
        ensure!(is_asked || !is_copied, "{to} was not promoted: the process that follows says why");
        if !is_asked {
            ask_again(&mut client, pause_ms.as_bytes())?;
        }
        if began.elapsed() > within {
            client.must(&[b"DEL", PROMOTE_KEY])?;
            let s = within.as_secs();
            ensure!(
                !is_loading(&state),
                "{to} was not promoted within {s} s: too early, the data of the source is still coming in. Ask again later"
            );
            bail!("{to} was not promoted within {s} s: see what the process says that follows, and whether it runs");
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    println!("{to} is promoted");
    Ok(())
}

/// Asks once more: a FLUSHALL of the source, or all data that comes again, has removed the request. The position is watched,
/// because a promotion removes both keys, and the request must not come back after that.
fn ask_again(client: &mut Client, pause_ms: &[u8]) -> Result<()> {
    client.must(&[b"WATCH", KEY])?;
    if client.must(&[b"EXISTS", KEY])? != Reply::Integer(1) {
        return client.must(&[b"UNWATCH"]).map(drop);
    }
    client.must(&[b"MULTI"])?;
    client.must(&[b"SET", PROMOTE_KEY, pause_ms])?;
    // If the position has moved meanwhile, this is done again.
    client.must(&[b"EXEC"]).map(drop)
}

/// How long writers are to be held back, in the words of a request for the promotion.
pub(super) fn asked_pause(request: Option<&str>) -> Option<Duration> {
    request.and_then(|ms| ms.parse().ok()).filter(|ms| *ms > 0).map(Duration::from_millis)
}

/// Holds the writers of the source back.
pub(super) fn pause(side: &mut Side, pause: Duration) -> Result<()> {
    let ms = pause.as_millis().to_string();
    if let Reply::Error(error) = side.ask(&[b"CLIENT", b"PAUSE", ms.as_bytes(), b"WRITE"])? {
        bail!("the source does not pause its writers: {error}");
    }
    eprintln!("the source holds writers back for {} s", pause.as_secs_f64());
    Ok(())
}

/// Both sides side by side.
pub(super) struct Compared {
    /// The keys of each database, if the source tells.
    source: Option<Vec<u64>>,
    target: Vec<u64>,
    digests: Digests,
}

/// The digests of all data.
enum Digests {
    /// At the source and here.
    Both(String, String),
    /// One of them does not allow DEBUG.
    Denied,
    /// Valkey's digest leaves out the deadlines of hash fields, and there are some.
    Other,
    /// Computing them takes longer than writers are held back.
    NoTime,
}

pub(super) fn compare(side: &mut Side, target: &mut Target, with_digests: bool) -> Result<Compared> {
    let digests = match if with_digests { side.digest() } else { None } {
        _ if !with_digests => Digests::NoTime,
        Some(_) if side.is_valkey() && target.has_field_deadlines()? => Digests::Other,
        Some(of_source) => target.digest()?.map_or(Digests::Denied, |of_target| Digests::Both(of_source, of_target)),
        None => Digests::Denied,
    };
    Ok(Compared { source: side.counts(target.databases), target: target.counts()?, digests })
}

impl Compared {
    /// False when the source could not be asked.
    pub(super) fn has_counts(&self) -> bool {
        self.source.is_some()
    }

    pub(super) fn differs(&self) -> bool {
        self.source.as_ref().is_some_and(|source| *source != self.target)
            || matches!(&self.digests, Digests::Both(source, target) if source != target)
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            None => writeln!(f, "{} keys; the source does not tell how many it has", self.target.iter().sum::<u64>())?,
            Some(source) => {
                for (db, (source, target)) in source.iter().zip(&self.target).enumerate() {
                    if *source > 0 || *target > 0 {
                        writeln!(f, "database {db}: {source} keys at the source, {target} here")?;
                    }
                }
            }
        }
        match &self.digests {
            Digests::Denied => f.write_str("digests were not compared: that takes DEBUG on both sides"),
            Digests::Other => {
                f.write_str("digests were not compared: those of Valkey leave out the deadlines of hash fields")
            }
            Digests::NoTime => f.write_str("digests were not compared: that takes longer than writers are held back"),
            Digests::Both(source, target) if source == target => write!(f, "digests are equal: {source}"),
            Digests::Both(source, target) => write!(f, "DIGESTS DIFFER: {source} at the source, {target} here"),
        }
    }
}
