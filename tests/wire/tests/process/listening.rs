//! Where the server listens, and what becomes of clients for which there is no file descriptor.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use wire::{Connection, Reply, Server, free_address};

use crate::support::{Dir, Holdfast, can_start_holdfast, eventually, info, ok};

fn answers(address: SocketAddr) -> bool {
    Connection::open(address).is_ok_and(|mut connection| connection.run("PING").to_string() == "+PONG")
}

fn setting(connection: &mut Connection, name: &str) -> String {
    connection.run(&format!("CONFIG GET {name}")).items()[1].text().to_owned()
}

#[test]
fn the_port_can_be_changed_while_running() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let (before, after) = (server.address(), free_address());
    let mut control = server.connect();
    ok(&mut control, &format!("CONFIG SET port {}", after.port()));
    assert!(answers(after) && !answers(before));
    assert_eq!(setting(&mut control, "port"), after.port().to_string());

    // Somebody else listens there.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    assert_eq!(
        control.run(&format!("CONFIG SET timeout 7 port {port}")).to_string(),
        "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs."
    );
    assert!(answers(after));
    assert_eq!(setting(&mut control, "port"), after.port().to_string());
    assert_eq!(setting(&mut control, "timeout"), "0");

    ok(&mut control, "CONFIG SET port 0");
    assert!(!answers(after) && control.run("PING").to_string() == "+PONG");
    ok(&mut control, &format!("CONFIG SET port {}", before.port()));
    assert!(answers(before));
}

#[test]
fn the_addresses_can_be_changed_while_running() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let first = server.address();
    let second = SocketAddr::new([127, 0, 0, 2].into(), first.port());
    let mut control = server.connect();
    for (bind, expected) in [
        ("127.0.0.1 127.0.0.2", (true, true)),
        ("127.0.0.2", (false, true)),
        ("127.0.0.2 -192.0.2.1", (false, true)),
        ("0.0.0.0", (true, true)),
        ("127.0.0.1", (true, false)),
        ("", (false, false)),
        ("127.0.0.1", (true, false)),
    ] {
        ok(&mut control, &format!("CONFIG SET bind '{bind}'"));
        assert_eq!((answers(first), answers(second)), expected, "{bind}");
        assert_eq!(setting(&mut control, "bind"), bind);
    }
    for bind in ["192.0.2.1", "127.0.0.1 192.0.2.1", "nonsense"] {
        assert_eq!(
            control.run(&format!("CONFIG SET bind '{bind}'")).to_string(),
            "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses."
        );
        assert!(answers(first));
        assert_eq!(setting(&mut control, "bind"), "127.0.0.1");
    }
}

#[test]
fn a_port_that_the_system_has_picked_is_known() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Server::launch(any, dir.path(), |command| {
        dir.keep_output(command.args(["--bind", "127.0.0.1", "127.0.0.2"]));
    });
    eventually("it has started", || dir.read("stdout").contains("redis-cli -p "));
    let port: u16 = dir.read("stdout").trim().rsplit(' ').next().unwrap().parse().unwrap();
    for ip in [[127, 0, 0, 1], [127, 0, 0, 2]] {
        let mut connection = Connection::open((ip, port).into()).unwrap();
        assert_eq!(setting(&mut connection, "port"), port.to_string());
    }
    server.kill();
}

#[test]
fn the_directory_stays() {
    let Some((_server, mut control)) = Holdfast::start_with_client(&["--enable-protected-configs", "yes"]) else {
        return;
    };
    let dir = setting(&mut control, "dir");
    for same in [dir.clone(), format!("{dir}/"), format!("{dir}/../{}", dir.rsplit('/').next().unwrap())] {
        ok(&mut control, &format!("CONFIG SET dir {same}"));
        assert_eq!(setting(&mut control, "dir"), dir);
    }
    let failed = "-ERR CONFIG SET failed (possibly related to argument 'dir') - ";
    assert_eq!(control.run("CONFIG SET dir /no/such").to_string(), format!("{failed}No such file or directory"));
    let refusal = control.run("CONFIG SET timeout 3 dir /").to_string();
    assert!(
        refusal.starts_with(&format!("{failed}the journal and snapshots are in {dir} and stay there")),
        "{refusal}"
    );
    assert_eq!((setting(&mut control, "dir"), setting(&mut control, "timeout")), (dir, "0".into()));
}

#[test]
fn no_more_clients_are_allowed_than_there_are_file_descriptors() {
    let Some((server, mut control)) = Holdfast::start_with_client(&[]) else { return };
    limit_files(&server, 500);
    let refusal = control.run("CONFIG SET maxclients 4294967295").to_string();
    let words = "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to \
                 handle the specified number of clients, try with ";
    let room = refusal.strip_prefix(words).and_then(|room| room.parse::<u64>().ok());
    assert!(room.is_some(), "{refusal}");
    assert_eq!(setting(&mut control, "maxclients"), "10000");
}

#[test]
fn a_client_without_a_file_descriptor_is_told_so() {
    let Some((server, mut control)) = Holdfast::start_with_client(&["--threads", "1"]) else { return };
    assert_eq!(control.run("PING").to_string(), "+PONG");
    // Every number up to there is in use soon, if it is not now.
    limit_files(&server, 64);
    let mut others = Vec::new();
    let refusal = loop {
        let mut other = server.connect();
        match other.run("PING") {
            Reply::Simple(_) => others.push(other),
            refusal => break refusal,
        }
        assert!(others.len() < 64, "there are no more descriptors than that");
    };
    assert_eq!(refusal.to_string(), "-ERR max number of clients reached");
    assert_eq!(server.connect().read().to_string(), "-ERR max number of clients reached");
    assert!(info::<u64>(&mut control, "rejected_connections") >= 2);
    others.clear();
    eventually("there is room again", || server.connect().run("PING").to_string() == "+PONG");
}

/// Lowers the limit of open files of a running server.
fn limit_files(server: &Holdfast, files: u32) {
    let pid = server.process_id().to_string();
    let limit = format!("--nofile={files}:{files}");
    let lowered = Command::new("prlimit").args(["--pid", &pid, &limit]).status();
    assert!(lowered.is_ok_and(|status| status.success()), "prlimit (util-linux) is needed");
}
