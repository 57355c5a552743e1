//! A server that may open no more files: its journal goes on in the segment that it has. Needs `prlimit`.

use std::process::Command;

use wire::{Reply, Server};

use crate::support::{Home, eventually, ok};

/// Sets how many descriptors a server may have. Those that it has stay. `false`, and the test is skipped, where that
/// cannot be done.
fn limit(server: &Server, descriptors: &str) -> bool {
    let mut prlimit = Command::new("prlimit");
    // The soft limit alone, so that it can be raised again.
    prlimit.arg(format!("--pid={}", server.process_id())).arg(format!("--nofile={descriptors}:"));
    let done = prlimit.output().is_ok_and(|output| output.status.success());
    if !done {
        wire::skip("there is no prlimit, or it is not permitted");
    }
    done
}

#[test]
fn without_descriptors_the_journal_goes_on() {
    let Some((home, server, mut connection)) =
        Home::serve_client(&["--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"])
    else {
        return;
    };
    ok(&mut connection, "SET first 1");
    if !limit(&server, "3") {
        return;
    }
    // A segment has 64 MiB.
    let value = vec![b'v'; 1 << 20];
    let set = |connection: &mut wire::Connection, number: i64| {
        connection.run_with(&format!("SET key:{number}"), &[&value]).to_string()
    };
    for number in 0..70 {
        assert_eq!(set(&mut connection, number), "+OK", "{number}");
    }
    assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), "[:1, :0]");
    let segments = || {
        let names = std::fs::read_dir(home.data()).expect("cannot list the data directory");
        names.filter(|entry| entry.as_ref().expect("cannot list").path().extension() == Some("seg".as_ref())).count()
    };
    assert_eq!(segments(), 1, "there is no descriptor for the next");
    assert!(limit(&server, "1000"));
    let mut more = 70;
    eventually("the next segment is begun", || {
        assert_eq!(set(&mut connection, more), "+OK", "{more}");
        more += 1;
        segments() == 2
    });
    let (_server, mut connection) = home.serve_client_again(server, &[]);
    assert_eq!(connection.run("DBSIZE").integer(), more + 1);
    assert_eq!(connection.run("STRLEN key:69"), Reply::Integer(1 << 20));
    assert!(!home.stderr().contains("WARN"), "{}", home.stderr());
}
