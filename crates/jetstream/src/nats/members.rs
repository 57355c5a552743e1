//! The processes that use a log, as they tell each other. Knows their lines; decides nothing: who writes is in the log
//! alone.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A member that was not heard of for this long is not listed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// More members than that are not remembered.
const MEMBERS_MAX: usize = 64;
/// A longer line is none of ours.
const LINE_MAX: usize = 512;

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Announcement {
    /// The name of the process.
    pub id: String,
    /// Where clients reach it.
    pub host: String,
    pub port: u16,
    /// Where it answers as a Sentinel; 0: nowhere.
    pub sentinel_port: u16,
    pub is_writer: bool,
    pub epoch: u32,
    /// The last batch that it has applied; for a writer, the last one that it has made.
    pub sequence: u64,
    pub version: String,
}

impl Announcement {
    pub(super) fn encode(&self) -> String {
        let Announcement { id, host, port, sentinel_port, is_writer, epoch, sequence, version } = self;
        let role = if *is_writer { "writer" } else { "follower" };
        format!("MEMBER {id} {host} {port} {sentinel_port} {role} {epoch} {sequence} {version}")
    }

    /// What a member has said. `None` for lines that are not understood: a newer version may say more.
    pub(super) fn read(line: &[u8]) -> Option<Announcement> {
        let is_plain = |line: &&str| line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let line = std::str::from_utf8(line).ok().filter(|line| line.len() <= LINE_MAX).filter(is_plain);
        line.and_then(Announcement::decode)
    }

    fn decode(line: &str) -> Option<Announcement> {
        let mut words = line.split(' ');
        let mut next = || words.next();
        if next()? != "MEMBER" {
            return None;
        }
        let announcement = Announcement {
            id: next()?.to_owned(),
            host: next()?.to_owned(),
            port: next()?.parse().ok()?,
            sentinel_port: next()?.parse().ok()?,
            is_writer: match next()? {
                "writer" => true,
                "follower" => false,
                _ => return None,
            },
            epoch: next()?.parse().ok()?,
            sequence: next()?.parse().ok()?,
            version: next()?.to_owned(),
        };
        Some(announcement)
    }
}

/// A member, and when it was last heard of.
#[derive(Clone, Debug)]
pub struct Member {
    pub said: Announcement,
    pub heard: Instant,
}

/// The members that were heard of, without this process.
#[derive(Default)]
pub struct Members {
    known: Mutex<BTreeMap<String, Member>>,
}

impl Members {
    pub fn list(&self) -> Vec<Member> {
        let mut known = self.known.lock();
        known.retain(|_, member| member.heard.elapsed() < FORGOTTEN_AFTER);
        known.values().cloned().collect()
    }

    /// Takes what a member has said.
    pub(super) fn hear(&self, line: &[u8], own: &str) -> bool {
        let Some(said) = Announcement::read(line).filter(|said| said.id != own) else { return false };
        let mut known = self.known.lock();
        if known.len() >= MEMBERS_MAX && !known.contains_key(&said.id) {
            return false;
        }
        // One that was started again at the same place is not two.
        known.retain(|id, member| *id == said.id || (&member.said.host, member.said.port) != (&said.host, said.port));
        known.insert(said.id.clone(), Member { said, heard: Instant::now() });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_says_is_understood_and_nonsense_is_not() {
        let said = Announcement {
            id: "a1".into(),
            host: "::1".into(),
            port: 6379,
            sentinel_port: 26379,
            is_writer: true,
            epoch: 3,
            sequence: 4,
            version: "0.1.0".into(),
        };
        let members = Members::default();
        assert!(members.hear(said.encode().as_bytes(), "b2"));
        assert!(members.hear(format!("{} and more", said.encode()).as_bytes(), "b2"));
        assert!(!members.hear(said.encode().as_bytes(), "a1"), "itself");
        let again = Announcement { id: "a3".into(), ..said.clone() };
        assert!(members.hear(again.encode().as_bytes(), "b2"));
        assert_eq!(members.list().len(), 1, "it was started again");
        assert!(members.hear(said.encode().as_bytes(), "b2"));
        let escaped = Announcement { id: "c".into(), port: 1, version: "\x1b[2J".into(), ..said.clone() };
        assert!(!members.hear(escaped.encode().as_bytes(), "b2"));
        for nonsense in [&b"MEMBER"[..], b"", b"\xff", b"MEMBER a b c d e f g h", &[b'x'; 600]] {
            assert!(!members.hear(nonsense, "b2"));
        }
        assert_eq!(members.list().into_iter().map(|member| member.said).collect::<Vec<_>>(), [said]);
    }
}
