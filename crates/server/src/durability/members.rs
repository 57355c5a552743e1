//! The servers of a log, as they tell each other of themselves: addresses, and the lines that carry them. Refuses to know
//! who tells whom, and when.

use engine::Settings;
use std::time::{Duration, Instant};

/// Where a server is reached when it announces no address: the servers of a directory are processes of one machine.
pub(super) const HOST: &str = "127.0.0.1";
/// The most servers that a line of members may be followed by. A follower ignores longer lists.
pub(super) const MEMBERS_MAX: usize = 64;

/// Where a server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    /// By clients; 0 while it is not known.
    pub(super) port: u16,
    /// By clients that ask for the writer; 0 is nowhere.
    pub(super) sentinel_port: u16,
}

impl Address {
    /// Of a server of which only the port is known.
    pub(super) fn of_port(port: u16) -> Address {
        Address { host: HOST.to_owned(), port, sentinel_port: 0 }
    }

    /// What this server tells others of itself.
    pub(super) fn announced(settings: &Settings) -> Address {
        let host = settings.announced_host();
        let host = if host.is_empty() { HOST } else { &host };
        Address { host: host.to_owned(), port: settings.announced_port(), sentinel_port: settings.sentinel_port() }
    }

    /// `host port sentinel-port`.
    pub(super) fn line(&self) -> String {
        format!("{} {} {}", self.host, self.port, self.sentinel_port)
    }

    pub(super) fn parse(text: &str) -> Option<Address> {
        let mut words = text.split(' ');
        let address = Address::next(&mut words)?;
        words.next().is_none().then_some(address)
    }

    fn next<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Address> {
        let host = words.next().filter(|host| !host.is_empty())?.to_owned();
        Some(Address { host, port: words.next()?.parse().ok()?, sentinel_port: words.next()?.parse().ok()? })
    }
}

/// A server of which another one has told.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) address: Address,
    pub(super) is_writer: bool,
    pub(super) sequence: u64,
    pub(super) heard: Instant,
}

impl Member {
    /// `host port sentinel-port role sequence silent-ms`.
    pub(super) fn line(&self) -> String {
        let role = if self.is_writer { "writer" } else { "follower" };
        format!("{} {role} {} {}", self.address.line(), self.sequence, self.heard.elapsed().as_millis())
    }

    pub(super) fn parse(text: &str) -> Option<Member> {
        let mut words = text.split(' ');
        let address = Address::next(&mut words)?;
        let is_writer = match words.next()? {
            "writer" => true,
            "follower" => false,
            _ => return None,
        };
        let (sequence, silent_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let now = Instant::now();
        let heard = now.checked_sub(Duration::from_millis(silent_ms)).unwrap_or(now);
        Some(Member { address, is_writer, sequence, heard })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let address = Address { host: "fd00::7".into(), port: 6379, sentinel_port: 26379 };
        assert_eq!(Address::parse(&address.line()), Some(address.clone()));
        let member = Member { address: address.clone(), is_writer: true, sequence: 7, heard: Instant::now() };
        let read = Member::parse(&member.line()).unwrap();
        assert_eq!((read.address, read.is_writer, read.sequence), (address, true, 7));
        // A later version may say more.
        assert!(Member::parse("h 1 2 follower 3 4 and more").is_some());
        for wrong in ["", "h", "h 1", " 1 2", "h 70000 2", "h 1 2 3", "h x 2"] {
            assert_eq!(Address::parse(wrong), None, "{wrong}");
        }
        for wrong in ["h 1 2 leader 3 4", "h 1 2 follower 3", "h 1 2 follower -3 4", "1 2 follower 3 4"] {
            assert!(Member::parse(wrong).is_none(), "{wrong}");
        }
    }
}
