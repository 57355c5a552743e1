//! Space that the journal takes ahead of its data: a disk that others fill up does not fail the writes under way.
//! Needs the right to mount a small file system.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::faults::SmallDisk;
use crate::support::{End, Home, ok};

#[test]
fn writes_go_on_though_others_fill_the_disk() {
    for policy in ["everysec", "always"] {
        let Some(disk) = SmallDisk::mount(48) else { return };
        let server = disk.home.start(&["--appendfsync", policy]);
        let mut connection = server.connect();
        ok(&mut connection, "SET first 1");
        disk.fill();
        // What is reserved is written, and then writes are refused beforehand: none is lost under way.
        let value = vec![b'v'; 5_000];
        let mut taken = 0;
        loop {
            let reply = connection.run_with(&format!("SET key:{taken}"), &[&value]).to_string();
            if reply != "+OK" {
                assert!(reply.starts_with("-MISCONF ") && reply.contains("refused before they are made"), "{reply}");
                break;
            }
            taken += 1;
        }
        assert!(taken > 20, "{policy}: {taken}");
        assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), "[:1, :0]");
        server.kill();
        disk.make_room();
        let server = disk.home.start(&[]);
        assert_eq!(server.connect().run("DBSIZE").integer(), taken + 1, "{policy}");
    }
}

#[test]
fn a_server_that_has_stopped_takes_no_more_than_it_holds() {
    let Some(home) = Home::fresh() else { return };
    let taken = || -> u64 {
        let entries = fs::read_dir(home.data()).expect("cannot list the data directory");
        entries.map(|entry| entry.and_then(|entry| entry.metadata()).expect("cannot list").blocks() * 512).sum()
    };
    let server = home.start(&[]);
    ok(&mut server.connect(), "SET a 1");
    if taken() < 8 << 20 {
        return wire::skip("this file system cannot reserve space");
    }
    // What one that was killed leaves is given back by the next.
    let server = home.serve_again(server, &[]);
    ok(&mut server.connect(), "SET b 1");
    assert!(taken() < 30 << 20, "{} bytes", taken());
    End::Term.of(server);
    assert!(taken() < 100_000, "{} bytes", taken());
}
