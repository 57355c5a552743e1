//! The hosts of a cluster: each has a network of its own (a namespace of Linux), and a cable to the others that can be
//! pulled. Where that is not allowed, all share the loopback of this machine, and have no cables. Knows `ip`; refuses to know
//! what runs on a host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::network::Party;
use crate::server::free_address;

/// The hosts, and the bridge to which their cables lead.
pub(crate) struct Hosts {
    /// `None`: all are this machine.
    bridge: Option<Bridge>,
    hosts: Vec<(Party, Host)>,
}

struct Bridge {
    name: String,
    /// Where this process is, for those that have a cable.
    address: Ipv4Addr,
}

/// Where a process runs.
#[derive(Clone)]
pub(crate) struct Host {
    /// `None`: this machine.
    own: Option<OwnNetwork>,
}

#[derive(Clone)]
struct OwnNetwork {
    namespace: String,
    /// Its end of the cable at the bridge.
    cable: String,
    address: Ipv4Addr,
}

/// Runs `ip`. False if it is refused.
fn ip(words: &str) -> bool {
    let output = Command::new("ip").args(words.split_whitespace()).output();
    output.is_ok_and(|output| output.status.success())
}

/// True when hosts can have networks of their own here, and reach this process and each other.
pub fn can_separate() -> bool {
    let Ok(mut hosts) = Hosts::new(true) else { return false };
    let (Ok(host), Ok(other)) = (hosts.add(Party::Nats(0)), hosts.add(Party::Nats(1))) else { return false };
    let Ok(listener) = TcpListener::bind((hosts.gateway(), 0)) else { return false };
    let Ok(gateway) = listener.local_addr() else { return false };
    // What bash ends with: 0 if somebody listens, 1 if nobody does, and another number without an answer.
    let connect = |to: SocketAddr| {
        let mut command = host.command(Path::new("timeout"));
        command.args(["5", "bash", "-c", &format!("exec 3<>/dev/tcp/{}/{}", to.ip(), to.port())]);
        command.stderr(Stdio::null()).status().ok().and_then(|status| status.code())
    };
    connect(gateway) == Some(0) && connect(other.address(9)) == Some(1)
}

impl Hosts {
    /// Hosts with networks of their own, if `separate`.
    pub(crate) fn new(separate: bool) -> Result<Hosts, String> {
        static BRIDGES: AtomicU32 = AtomicU32::new(0);
        let mut hosts = Hosts { bridge: None, hosts: Vec::new() };
        if separate {
            let (process, count) = (std::process::id(), BRIDGES.fetch_add(1, Ordering::Relaxed));
            let subnet = process.wrapping_mul(7).wrapping_add(count);
            // Addresses that are for tests of networks.
            let address = Ipv4Addr::new(198, 18 + (subnet / 256 % 2) as u8, (subnet % 256) as u8, 1);
            let name = format!("hf{}b{}", process % 100_000, count % 1000);
            if !ip(&format!("link add {name} type bridge")) {
                return Err(format!("the bridge {name} cannot be made"));
            }
            hosts.bridge = Some(Bridge { name: name.clone(), address });
            if !ip(&format!("addr add {address}/24 dev {name}")) || !ip(&format!("link set {name} up")) {
                return Err(format!("the bridge {name} cannot be used"));
            }
        }
        Ok(hosts)
    }

    /// Where this process is, for the hosts.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        self.bridge.as_ref().map_or(Ipv4Addr::LOCALHOST, |bridge| bridge.address)
    }

    /// Makes a host for a process.
    pub(crate) fn add(&mut self, party: Party) -> Result<Host, String> {
        let Some(Bridge { name: bridge, address }) = &self.bridge else { return Ok(Host { own: None }) };
        let (number, [a, b, c, _]) = (self.hosts.len(), address.octets());
        let (namespace, address) = (format!("{bridge}n{number}"), Ipv4Addr::new(a, b, c, 10 + number as u8));
        let cable = format!("{bridge}v{number}");
        let is_made = [
            format!("netns add {namespace}"),
            format!("link add {cable} type veth peer name eth0 netns {namespace}"),
            format!("link set {cable} master {bridge} up"),
            format!("-n {namespace} link set lo up"),
            format!("-n {namespace} addr add {address}/24 dev eth0"),
            format!("-n {namespace} link set eth0 up"),
        ];
        let host = Host { own: Some(OwnNetwork { namespace, cable, address }) };
        self.hosts.push((party, host.clone()));
        match is_made.iter().find(|words| !ip(words)) {
            None => Ok(host),
            Some(words) => Err(format!("a host cannot be made: ip {words}")),
        }
    }

    /// Pulls the cable of a process, or puts it back.
    pub(crate) fn set_plugged(&self, party: Party, is_plugged: bool) -> Result<(), String> {
        let host = self.hosts.iter().find(|(known, _)| *known == party).map(|(_, host)| host);
        match host {
            Some(Host { own: Some(OwnNetwork { cable, .. }) })
                if ip(&format!("link set {cable} {}", if is_plugged { "up" } else { "down" })) =>
            {
                Ok(())
            }
            _ => Err(format!("{party:?} has no cable that can be pulled")),
        }
    }

    pub(crate) fn heal(&self) -> Result<(), String> {
        self.hosts.iter().try_for_each(|(party, _)| self.set_plugged(*party, true))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for (_, host) in &self.hosts {
            if let Some(OwnNetwork { namespace, cable, .. }) = &host.own {
                ip(&format!("link del {cable}"));
                ip(&format!("netns del {namespace}"));
            }
        }
        if let Some(Bridge { name, .. }) = &self.bridge {
            ip(&format!("link del {name}"));
        }
    }
}

impl Host {
    /// An address at which a process can listen; with this port, if it has a network of its own.
    pub(crate) fn address(&self, port: u16) -> SocketAddr {
        match &self.own {
            Some(OwnNetwork { address, .. }) => SocketAddr::new(IpAddr::V4(*address), port),
            None => free_address(),
        }
    }

    /// A command that runs there. The process is that of the program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        match &self.own {
            Some(OwnNetwork { namespace, .. }) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{namespace}")).arg(program);
                command
            }
            None => Command::new(program),
        }
    }
}
