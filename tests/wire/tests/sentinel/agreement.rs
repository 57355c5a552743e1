//! The same requests to our port and to a real Sentinel, in front of a writer with one follower each: the replies are the
//! same, but for what no two servers have in common.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use wire::{Connection, Reply, free_address, fresh_dir};

use crate::group::{Group, connect, master};
use crate::support::{eventually, ok};

/// A primary, a replica and a Sentinel of Redis. They end when this is dropped.
struct RealSentinel {
    processes: Vec<Child>,
    dir: PathBuf,
    /// Primary, replica, Sentinel.
    addresses: [SocketAddr; 3],
}

impl RealSentinel {
    /// `None` where there is no Redis.
    fn start() -> Option<RealSentinel> {
        let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let addresses = [free_address(), free_address(), free_address()];
        let [primary, replica, sentinel] = addresses.map(|address| address.port().to_string());
        let dir = fresh_dir();
        let file = dir.join("sentinel.conf");
        let text = format!(
            "port {sentinel}\nbind 127.0.0.1\ndir {}\nsentinel monitor holdfast 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds holdfast 2000\nsentinel failover-timeout holdfast 60000\n",
            dir.display()
        );
        std::fs::write(&file, text).expect("a file");
        let file = file.to_str().expect("a plain path").to_owned();
        let plain = |port: &str| {
            let args = ["--bind", "127.0.0.1", "--save", "", "--dir"].map(str::to_owned).to_vec();
            [args, vec![dir.display().to_string(), "--port".into(), port.to_owned()]].concat()
        };
        let follows = [plain(&replica), vec!["--replicaof".into(), "127.0.0.1".into(), primary.clone()]].concat();
        let mut real = RealSentinel { processes: Vec::new(), dir: dir.clone(), addresses };
        for args in [plain(&primary), follows, vec![file, "--sentinel".into()]] {
            real.processes.push(Command::new(&program).args(args).stdout(Stdio::null()).spawn().ok()?);
        }
        Some(real)
    }
}

impl Drop for RealSentinel {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// What is another number with every server and every moment.
const VARIES: &[&str] = &[
    "id",
    "version",
    "last-ok-ping-reply",
    "last-ping-reply",
    "info-refresh",
    "role-reported-time",
    "slave-repl-offset",
];

/// A reply without what no two servers have in common: ports by their role, ids, times.
fn comparable(reply: &Reply, ports: [u16; 3]) -> String {
    match reply {
        Reply::Array(items) => {
            let mut parts: Vec<String> = Vec::new();
            for (at, item) in items.iter().enumerate() {
                let before = at.checked_sub(1).map(|at| &items[at]);
                let varies =
                    matches!(before, Some(Reply::Bulk(name)) if VARIES.iter().any(|known| known.as_bytes() == name));
                parts.push(if varies { "varies".into() } else { comparable(item, ports) });
            }
            format!("[{}]", parts.join(", "))
        }
        Reply::Map(pairs) => {
            let flat = pairs.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect();
            format!("map {}", comparable(&Reply::Array(flat), ports))
        }
        Reply::Push(items) => format!("push {}", comparable(&Reply::Array(items.clone()), ports)),
        Reply::Bulk(text) if text.len() == 40 && text.iter().all(u8::is_ascii_hexdigit) => "an id".into(),
        other => {
            let names = ["PRIMARY", "REPLICA", "SENTINEL"];
            let replace = |text: String, at: usize| text.replace(&ports[at].to_string(), names[at]);
            (0..3).fold(other.to_string(), replace)
        }
    }
}

const REQUESTS: &[&str] = &[
    "PING",
    "PING a",
    "PING a b",
    "HELLO",
    "HELLO 4",
    "HELLO a",
    "HELLO 2 FOO",
    "HELLO 2 SETNAME",
    "HELLO 2 AUTH default",
    "HELLO 3",
    "SENTINEL MASTER holdfast",
    "SENTINEL MASTERS",
    "SENTINEL REPLICAS holdfast",
    "SENTINEL GET-MASTER-ADDR-BY-NAME holdfast",
    "SENTINEL GET-MASTER-ADDR-BY-NAME another",
    "CLIENT GETNAME",
    "SUBSCRIBE a",
    "PING",
    "SENTINEL MYID",
    "UNSUBSCRIBE",
    "HELLO 2 SETNAME me",
    "CLIENT GETNAME",
    "SENTINEL GET-MASTER-ADDR-BY-NAME holdfast",
    "sentinel get-master-addr-by-name holdfast",
    "SENTINEL GET-MASTER-ADDR-BY-NAME HOLDFAST",
    "SENTINEL GET-MASTER-ADDR-BY-NAME another",
    "SENTINEL GET-MASTER-ADDR-BY-NAME",
    "SENTINEL MASTERS",
    "SENTINEL MASTERS holdfast",
    "SENTINEL MASTER holdfast",
    "SENTINEL MASTER another",
    "SENTINEL MASTER",
    "SENTINEL REPLICAS holdfast",
    "SENTINEL SLAVES holdfast",
    "SENTINEL SLAVES another",
    "SENTINEL SENTINELS holdfast",
    "SENTINEL SENTINELS another",
    "SENTINEL CKQUORUM holdfast",
    "SENTINEL CKQUORUM another",
    "SENTINEL MYID",
    "SENTINEL MYID a",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0 *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 a 0 *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 a *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1",
    "SENTINEL PENDING-SCRIPTS",
    "SENTINEL FAILOVER another",
    "SENTINEL FAILOVER",
    "SENTINEL REMOVE another",
    "SENTINEL SET another quorum 1",
    "SENTINEL SET holdfast",
    "SENTINEL MONITOR a",
    "SENTINEL",
    "SENTINEL WHAT",
    "INFO sentinel",
    "INFO what",
    "ROLE",
    "ROLE a",
    "PUBLISH a b",
    "PUBLISH a",
    "CLIENT SETNAME \"a b\"",
    "CLIENT SETNAME me",
    "CLIENT GETNAME",
    "CLIENT NO-EVICT on",
    "CLIENT NO-EVICT what",
    "CLIENT REPLY on",
    "CLIENT WHAT",
    "CLIENT",
    "COMMAND WHAT",
    "COMMAND INFO what",
    "AUTH a",
    "AUTH default a",
    "AUTH a b c",
    "AUTH",
    "AUTH nobody a",
    "SELECT 0",
    "GET a",
    "SET a b",
    "MULTI",
    "WHAT \"a b\" c",
    "SUBSCRIBE",
    "PSUBSCRIBE a*",
    "SUBSCRIBE a",
    "SUBSCRIBE a",
    "PING",
    "PING a",
    "GET a",
    "ROLE",
    "SENTINEL MASTERS",
    "UNSUBSCRIBE b",
    "UNSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE a*",
    "PUNSUBSCRIBE",
    "PING",
];

#[test]
fn a_real_sentinel_gives_the_same_replies() {
    let Some(group) = Group::fresh() else { return };
    let Some(real) = RealSentinel::start() else { return wire::skip("there is no redis-server to compare with") };
    // The follower has no Sentinel port, as there is one Sentinel on the other side.
    let writer = group.writer(&[]);
    let data = group.home.data().to_str().expect("a plain path").to_owned();
    let follower = group.home.start(&["--follow", &data]);
    let ports = [writer.port(), follower.address().port(), writer.sentinel.port()];
    let real_ports = real.addresses.map(|address| address.port());
    let (mut ours, mut theirs) = (writer.ask(), connect(real.addresses[2]));
    for connection in [&mut ours, &mut theirs] {
        eventually("it knows both servers, and how they are", || {
            let known = connection.run("SENTINEL REPLICAS holdfast");
            let text = known.to_string();
            !known.is_error() && text.contains("\"master-link-status\", \"ok\"") && !text.contains("\"port\", \"0\"")
        });
    }
    for request in REQUESTS {
        let (our_reply, their_reply) = (ours.run(request), theirs.run(request));
        assert_eq!(comparable(&our_reply, ports), comparable(&their_reply, real_ports), "{request}");
    }
    for garbage in [&b"*1\r\n:1\r\n"[..], b"*x\r\n", b"SENTINEL \"masters\r\n", b"*1\r\n$-5\r\n"] {
        let replies = [writer.sentinel, real.addresses[2]].map(|address| {
            let mut connection = connect(address);
            connection.queue_raw(garbage);
            (connection.read().to_string(), connection.read())
        });
        assert_eq!(replies[0], replies[1], "{garbage:?}");
    }
}

/// The messages of a hand-over that clients listen to.
#[test]
fn a_real_sentinel_tells_of_the_same_change() {
    let Some(group) = Group::fresh() else { return };
    let Some(real) = RealSentinel::start() else { return wire::skip("there is no redis-server to compare with") };
    let writer = group.writer(&[]);
    let data = group.home.data().to_str().expect("a plain path").to_owned();
    let follower = group.home.start(&["--follow", &data]);
    let ports = [writer.port(), follower.address().port(), writer.sentinel.port()];
    let heard = [(writer.sentinel, ports), (real.addresses[2], real.addresses.map(|address| address.port()))];
    let heard = heard.map(|(address, ports)| {
        let mut asks = connect(address);
        eventually("it knows both servers", || {
            asks.run("SENTINEL REPLICAS holdfast").to_string().contains("\"master-link-status\", \"ok\"")
        });
        let mut listens = connect(address);
        listens.run("SUBSCRIBE +switch-master");
        listens.run("SUBSCRIBE +slave");
        ok(&mut asks, "SENTINEL FAILOVER holdfast");
        let messages = [listens.read(), listens.read()].map(|message| comparable(&message, ports));
        eventually("the follower is the writer", || master(&mut asks) == Some(ports[1]));
        messages
    });
    assert_eq!(heard[0], heard[1]);
}

/// What a Sentinel does not know, or does another way.
#[test]
fn what_is_our_own() {
    let Some((_group, writer)) = Group::with_writer(&["--sentinel-master-name", "my.jobs"]) else { return };
    let mut connection = writer.ask();
    let mut says = |request: &str| connection.run(request).to_string();
    assert_eq!(says("SENTINEL GET-MASTER-ADDR-BY-NAME holdfast"), "(nil array)");
    assert_eq!(says("SENTINEL GET-MASTER-ADDR-BY-NAME my.jobs"), format!("[\"127.0.0.1\", \"{}\"]", writer.port()));
    assert_eq!(says("SENTINEL FAILOVER my.jobs"), "-NOGOODSLAVE No suitable replica to promote");
    for refused in [
        "SENTINEL MONITOR a 127.0.0.1 1 1",
        "SENTINEL REMOVE my.jobs",
        "SENTINEL SET my.jobs quorum 1",
        "SENTINEL RESET *",
        "SENTINEL CONFIG GET *",
        "SENTINEL DEBUG",
        "SENTINEL FLUSHCONFIG",
        "SENTINEL INFO-CACHE my.jobs",
        "SENTINEL SIMULATE-FAILURE help",
    ] {
        let reply = says(refused);
        assert!(reply.starts_with("-ERR this port tells which servers a log has"), "{refused}: {reply}");
    }
    for (request, reply) in [
        ("CLIENT SETINFO LIB-NAME mine", "+OK"),
        ("CLIENT SETINFO LIB-VER 1", "+OK"),
        ("CLIENT SETINFO WHAT 1", "-ERR Unrecognized option 'WHAT'"),
        ("CLIENT NO-TOUCH on", "+OK"),
        ("CLIENT REPLY off", "-ERR this port answers every request"),
        ("COMMAND DOCS ping", "[]"),
        ("COMMAND COUNT", ":15"),
        ("SUBSCRIBE a", "[\"subscribe\", \"a\", :1]"),
        ("RESET", "+RESET"),
        ("CLIENT GETNAME", "(nil)"),
    ] {
        assert_eq!(says(request), reply, "{request}");
    }
    let info = says("INFO");
    assert!(info.contains("redis_mode:sentinel") && info.contains("# Sentinel"), "{info}");
    assert!(says("CLIENT INFO").contains(" lib-name=mine lib-ver=1"));
    assert!(says("COMMAND LIST").contains("sentinel|masters"));
    assert!(says("COMMAND INFO ping").starts_with("[[\"ping\", :-1, "));
    assert!(says("SENTINEL HELP").contains("GET-MASTER-ADDR-BY-NAME"));
    let mut connection: Connection = writer.ask();
    assert_eq!((connection.run("QUIT").to_string(), connection.read()), ("+OK".into(), Reply::Closed));
}
