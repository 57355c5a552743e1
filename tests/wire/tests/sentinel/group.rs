//! The servers of one data directory, each with its Sentinel port.

use std::net::SocketAddr;

use wire::{Connection, Reply, Server, free_address};

use crate::support::{Home, eventually, ok, role};

pub(crate) struct Group {
    pub(crate) home: Home,
}

/// A server of the group.
pub(crate) struct Member {
    pub(crate) server: Server,
    pub(crate) sentinel: SocketAddr,
}

impl Group {
    /// `None` where there is no holdfast to start.
    pub(crate) fn fresh() -> Option<Group> {
        Home::fresh().map(|home| Group { home })
    }

    pub(crate) fn with_writer(args: &[&str]) -> Option<(Group, Member)> {
        let group = Group::fresh()?;
        let writer = group.writer(args);
        Some((group, writer))
    }

    /// With a writer and a follower, both of which name the writer.
    pub(crate) fn with_pair() -> Option<(Group, Member, Member)> {
        let (group, writer) = Group::with_writer(&[])?;
        let follower = group.follower(&[]);
        agree(&[&writer, &follower], &writer);
        Some((group, writer, follower))
    }

    pub(crate) fn writer(&self, args: &[&str]) -> Member {
        let sentinel = free_address();
        let server = self.home.start(&[&["--sentinel-port", &sentinel.port().to_string()], args].concat());
        Member { server, sentinel }
    }

    pub(crate) fn follower(&self, args: &[&str]) -> Member {
        let data = self.home.data().to_str().expect("a plain path").to_owned();
        self.writer(&[&["--follow", &data], args].concat())
    }
}

impl Member {
    pub(crate) fn port(&self) -> u16 {
        self.server.address().port()
    }

    pub(crate) fn connect(&self) -> Connection {
        self.server.connect()
    }

    pub(crate) fn ask(&self) -> Connection {
        connect(self.sentinel)
    }

    /// The port of the writer, as this server's Sentinel says; `None` if it says that there is none.
    #[track_caller]
    pub(crate) fn master(&self) -> Option<u16> {
        master(&mut self.ask())
    }

    pub(crate) fn role(&self) -> String {
        role(&mut self.connect())
    }
}

pub(crate) fn connect(address: SocketAddr) -> Connection {
    let mut opened = None;
    eventually("the Sentinel port is open", || {
        opened = Connection::open(address).ok();
        opened.is_some()
    });
    opened.expect("it is open")
}

#[track_caller]
pub(crate) fn master(connection: &mut Connection) -> Option<u16> {
    match connection.run("SENTINEL GET-MASTER-ADDR-BY-NAME holdfast") {
        Reply::NilArray | Reply::Null => None,
        reply => Some(reply.items()[1].text().parse().expect("a port")),
    }
}

/// Waits until every one of these names this one as the writer.
#[track_caller]
pub(crate) fn agree(members: &[&Member], writer: &Member) {
    for member in members {
        eventually("it names the writer", || member.master() == Some(writer.port()));
    }
}

/// A value of what SENTINEL MASTER, REPLICAS or SENTINELS says of a server.
pub(crate) fn field(fields: &Reply, name: &str) -> String {
    let items = fields.items();
    let at = items.iter().step_by(2).position(|item| item.text() == name);
    at.map_or_else(String::new, |at| items[2 * at + 1].text().to_owned())
}

/// Tells the writer to hand over to a follower, and waits for it.
#[track_caller]
pub(crate) fn hand_over(from: &Member, to: &Member) {
    ok(&mut from.connect(), &format!("FAILOVER TO 127.0.0.1 {}", to.port()));
    eventually("the follower writes", || to.role() == "master" && from.role() == "slave");
}
