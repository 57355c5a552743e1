//! The way that is left where a source takes no replica: every key by SCAN, DUMP and RESTORE. Knows two passes: one at once, which
//! shows that all can be carried over, and one at the end, when writers have stopped, which makes the copy exact. What is
//! written between the two is not seen before the second.

use super::position::{Position, Reserved, is_reserved};
use super::target::Target;
use super::{End, Follower, promote};
use crate::tools::link::Reply;
use anyhow::{Context, Result, bail};
use std::time::{Duration, Instant};

const KEYS_PER_STEP: &[u8] = b"200";
const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub(super) fn run(follower: &mut Follower, target: &mut Target) -> Result<End> {
    target.begin_load()?;
    follower.has_position = true;
    follower.report = Default::default();
    if !functions(follower, target)? | !pass(follower, target)? {
        return Ok(End::Stopped);
    }
    target.note(Position::Copied)?;
    eprintln!(
        "this is a copy of a moment that has passed: what is written now is copied at the promotion, once writers have stopped"
    );
    loop {
        target.look_for_promotion()?;
        if follower.signals.stops() {
            return Ok(End::Stopped);
        }
        if target.promote.is_some() || follower.signals.promotes() || follower.request.promotes {
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    let (pause, began) = (promote::asked_pause(target.promote.as_deref()).or(follower.request.pause), Instant::now());
    match pause {
        Some(pause) => promote::pause(&mut follower.side, pause)?,
        None => eprintln!("copying once more: writers of the source must have stopped"),
    }
    follower.report = Default::default();
    if !functions(follower, target)? | !pass(follower, target)? {
        return Ok(End::Stopped);
    }
    remove_what_is_gone(follower, target)?;
    let compared = promote::compare(&mut follower.side, target, true)?;
    if let Some(pause) = pause.filter(|pause| began.elapsed() >= *pause) {
        target.forget_promotion()?;
        bail!(
            "not promoted: copying once more took {:.1} s, and writers were held back for {:.1} s, so they may have written \
             meanwhile. Begin again, with a longer --pause-source",
            began.elapsed().as_secs_f64(),
            pause.as_secs_f64()
        );
    }
    println!("{compared}");
    // The answer to the last transaction may be lost.
    follower.is_told_to_promote = true;
    if compared.differs() {
        follower.report.failed(b"(comparison)", "the two sides differ");
    }
    target.promote()?;
    Ok(End::Promoted)
}

/// Copies the libraries of functions.
fn functions(follower: &mut Follower, target: &mut Target) -> Result<bool> {
    // A server before Redis 7 has none.
    if let Reply::Bulk(payload) = follower.side.ask(&[b"FUNCTION", b"DUMP"])? {
        target.load(&[b"FUNCTION", b"RESTORE", &payload, b"REPLACE"], &mut follower.report)?;
    }
    Ok(true)
}

/// Copies every key; false when a signal has stopped it.
fn pass(follower: &mut Follower, target: &mut Target) -> Result<bool> {
    let (began, mut keys) = (Instant::now(), 0);
    for db in 0..target.databases {
        let number = db.to_string();
        if follower.side.client()?.ask(&[b"SELECT", number.as_bytes()])?.error().is_some() {
            break;
        }
        target.load(&[b"SELECT", number.as_bytes()], &mut follower.report)?;
        let mut cursor = b"0".to_vec();
        loop {
            let names;
            (cursor, names) = step(follower.side.client()?.must(&[b"SCAN", &cursor, b"COUNT", KEYS_PER_STEP])?)?;
            keys += copy(follower, target, &names)?;
            follower.progress.loading(keys, 0);
            if follower.signals.stops() {
                target.end_window(&mut follower.report)?;
                return Ok(false);
            }
            if cursor == b"0" {
                break;
            }
        }
    }
    target.end_window(&mut follower.report)?;
    eprintln!("copied {keys} keys in {:.1} s", began.elapsed().as_secs_f64());
    Ok(true)
}

/// The next cursor, and the names that were found.
fn step(reply: Reply) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let Reply::Array(parts) = reply else { bail!("SCAN was answered with {reply:?}") };
    let [Reply::Bulk(cursor), Reply::Array(names)] = &parts[..] else { bail!("SCAN was answered with {parts:?}") };
    let names = names.iter().map(|name| match name {
        Reply::Bulk(name) => Ok(name.clone()),
        other => bail!("SCAN found {other:?}"),
    });
    Ok((cursor.clone(), names.collect::<Result<_>>()?))
}

fn copy(follower: &mut Follower, target: &mut Target, names: &[Vec<u8>]) -> Result<u64> {
    let client = follower.side.client()?;
    for name in names {
        client.queue(&[b"DUMP", name]);
        client.queue(&[b"PTTL", name]);
    }
    client.flush()?;
    let mut copied = 0;
    for name in names {
        let client = follower.side.client()?;
        let (payload, ttl) = (client.read()?, client.read()?);
        if is_reserved(name) {
            return Err(Reserved(name.clone()).into());
        }
        match (payload, ttl) {
            // In the time that is left, so that clocks of two machines are not compared.
            (Reply::Bulk(payload), Reply::Integer(ttl)) if ttl != -2 => {
                // Zero would be no deadline at all.
                let ttl = if ttl < 0 { 0 } else { ttl.max(1) }.to_string();
                target.load(&[b"RESTORE", name, ttl.as_bytes(), &payload, b"REPLACE"], &mut follower.report)?;
                copied += 1;
            }
            (Reply::Error(error), _) | (_, Reply::Error(error)) => follower.report.failed(b"DUMP", &error),
            // It has gone meanwhile.
            _ => {}
        }
    }
    Ok(copied)
}

/// Removes the keys that the source does not have.
fn remove_what_is_gone(follower: &mut Follower, target: &mut Target) -> Result<()> {
    for db in 0..target.databases {
        let number = db.to_string();
        target.ask(&[b"SELECT", number.as_bytes()])?;
        let has_it = follower.side.client()?.ask(&[b"SELECT", number.as_bytes()])?.error().is_none();
        let mut cursor = b"0".to_vec();
        loop {
            let names;
            (cursor, names) = step(target.ask(&[b"SCAN", &cursor, b"COUNT", KEYS_PER_STEP])?)?;
            let client = follower.side.client()?;
            names.iter().filter(|_| has_it).for_each(|name| client.queue(&[b"EXISTS", name]));
            client.flush()?;
            let mut gone: Vec<Vec<Vec<u8>>> = Vec::new();
            for name in names {
                let is_there = has_it && follower.side.client()?.read()? != Reply::Integer(0);
                let is_ours = db == 0 && is_reserved(&name);
                if !is_there && !is_ours {
                    gone.push(vec![b"DEL".to_vec(), name]);
                }
            }
            for reply in target.ask_all(&gone)? {
                if let Some(error) = reply.error() {
                    return Err(anyhow::anyhow!("{error}")).context("a key that the source does not have");
                }
            }
            if cursor == b"0" {
                break;
            }
        }
    }
    target.ask(&[b"SELECT", b"0"])?;
    Ok(())
}
