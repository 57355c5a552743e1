//! Who may read metrics: users that may run INFO; and where the port may listen.

use std::net::SocketAddr;

use wire::{Connection, free_address};

use crate::http::{Watched, get, request};
use crate::process::{can_start_holdfast, fail_to_start};
use crate::support::ok;

/// `reader:secret`, `writer:secret` and `default:pass`, as HTTP writes them.
const READER: &str = "Authorization: Basic cmVhZGVyOnNlY3JldA==";
const WRITER: &str = "Authorization: Basic d3JpdGVyOnNlY3JldA==";
const DEFAULT: &str = "Authorization: Basic ZGVmYXVsdDpwYXNz";

fn status(address: SocketAddr, line: &[&str]) -> u16 {
    request(address, "GET", "/metrics", line).status
}

#[track_caller]
fn sign_in(client: &mut Connection) {
    ok(client, "AUTH pass");
    ok(client, "ACL SETUSER reader on >secret +info");
    ok(client, "ACL SETUSER writer on >secret +set ~*");
}

#[test]
fn with_a_password_a_user_is_needed_that_may_run_info() {
    let Some((server, mut client)) = Watched::start_with_client(&["--requirepass", "pass"]) else { return };
    sign_in(&mut client);
    let refused = get(server.admin, "/metrics");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("www-authenticate"), "Basic realm=\"holdfast\", charset=\"UTF-8\"");
    assert!(!refused.body.contains("redis_up"));
    assert_eq!(status(server.admin, &[DEFAULT]), 200);
    assert_eq!(status(server.admin, &[READER]), 200);
    assert_eq!(status(server.admin, &[WRITER]), 403);
    for wrong in ["Basic cmVhZGVyOndyb25n", "Basic bm9ib2R5OnNlY3JldA==", "Basic ???", "Bearer secret", "Basic"] {
        assert_eq!(status(server.admin, &[&format!("Authorization: {wrong}")]), 401, "{wrong}");
    }
    // Probes have no password.
    assert_eq!(get(server.admin, "/health/live").status, 200);
    assert_eq!(get(server.admin, "/health/ready").status, 200);
    // Wrong passwords are in the log of access control.
    let log = client.run("ACL LOG").to_string();
    assert!(log.contains("cmd=/metrics") && log.contains("\"reader\"") && log.contains("\"nobody\""), "{log}");
    let metrics = request(server.admin, "GET", "/metrics", &[READER]).body;
    assert!(metrics.contains("\nholdfast_acl_denied_total{reason=\"password\"} 2\n"), "{metrics}");
    // Rights are looked at for each request.
    ok(&mut client, "ACL SETUSER reader -info");
    assert_eq!(status(server.admin, &[READER]), 403);
    ok(&mut client, "ACL SETUSER reader +info off");
    assert_eq!(status(server.admin, &[READER]), 401);
}

#[test]
fn without_a_password_the_default_user_reads() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    assert_eq!(status(server.admin, &[]), 200);
    ok(&mut client, "ACL SETUSER default -info");
    assert_eq!(status(server.admin, &[]), 403);
    ok(&mut client, "ACL SETUSER default +info");
    ok(&mut client, "CONFIG SET requirepass pass");
    assert_eq!(status(server.admin, &[]), 401);
    assert_eq!(status(server.admin, &[DEFAULT]), 200);
}

#[test]
fn other_machines_need_a_password_or_an_explicit_setting() {
    if !can_start_holdfast() {
        return;
    }
    let port = free_address().port().to_string();
    for bind in ["0.0.0.0", "*", "::", "127.0.0.1 0.0.0.0", "-192.0.2.1"] {
        let failure = fail_to_start(&["--admin-port", &port, "--admin-bind", bind], &[]);
        assert_eq!(failure.code, Some(1), "{bind}");
        assert!(failure.stderr.contains("opens the metrics to other machines"), "{bind}: {}", failure.stderr);
    }
    let failure = fail_to_start(&["--admin-port", &port, "--admin-bind", "nowhere"], &[]);
    assert!(failure.stderr.contains("admin-bind: 'nowhere' is not an IP address"), "{}", failure.stderr);
    // An address of another machine that may be missing, so that this test is not open to others.
    let bind = "-192.0.2.1 127.0.0.1";
    assert_eq!(fail_to_start(&["--admin-port", &port, "--admin-bind", bind], &[]).code, Some(1));
    for (setting, value, expected) in [("--requirepass", "pass", 401), ("--admin-allow-remote", "yes", 200)] {
        let Some(server) = Watched::start(&["--admin-bind", bind, setting, value]) else { return };
        assert_eq!(status(server.admin, &[]), expected, "{setting}");
    }
}

#[test]
fn a_port_that_is_taken_stops_the_start() {
    if !can_start_holdfast() {
        return;
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let failure = fail_to_start(&["--admin-port", &port], &[]);
    assert!(failure.stderr.contains("(admin-port)"), "{}", failure.stderr);
}
