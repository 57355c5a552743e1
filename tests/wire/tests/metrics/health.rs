//! Probes: a server that is loading, or whose journal has failed, is alive and not ready.

use std::process::{Command, Stdio};

use wire::{Server, free_address};

use crate::faults::Injected;
use crate::http::{Watched, get, send, with_port};
use crate::support::{Home, eventually, ok};

#[test]
fn a_server_is_not_ready_while_it_loads() {
    let Some(home) = Home::fresh() else { return };
    let server = home.start(&["--appendfsync", "no"]);
    let mut client = server.connect();
    for number in 0..2000 {
        client.queue_line(&format!("SET key:{number} 1"));
    }
    (0..2000).for_each(|_| assert_eq!(client.read().to_string(), "+OK"));
    server.kill();
    let (address, admin) = (free_address(), free_address());
    // Microseconds a key: it takes more than a second to start, whatever the machine.
    let _server = home.launch(address, &with_port(admin, &["--key-load-delay", "1000"]));
    eventually("the port is open", || send(admin, b"GET /health/live HTTP/1.0\r\n\r\n").is_ok());
    let ready = get(admin, "/health/ready");
    assert_eq!((ready.status, ready.body.as_str()), (503, "loading: the data is being read\n"));
    let live = get(admin, "/health/live");
    assert_eq!((live.status, live.body.as_str()), (200, "alive\n"));
    let metrics = get(admin, "/metrics").body;
    assert!(metrics.contains("\nredis_up 1\n") && metrics.contains("\nredis_loading_dump_file 1\n"), "{metrics}");
    eventually("it is ready", || get(admin, "/health/ready").status == 200);
    let metrics = get(admin, "/metrics").body;
    assert!(metrics.contains("\nredis_db_keys{db=\"db0\"} 2000\n"), "{metrics}");
    assert!(metrics.contains("\nredis_loading_dump_file 0\n"), "{metrics}");
}

#[test]
fn a_server_whose_journal_has_failed_is_not_ready() {
    let Some((server, mut client)) = Watched::start_with_client(&["--appendfsync", "always"]) else { return };
    ok(&mut client, "SET a 1");
    assert_eq!(get(server.admin, "/health/ready").status, 200);
    let Some(disk) = Injected::into(&server.home, &server, "fdatasync", "error=EIO") else { return };
    assert!(client.run("SET b 1").is_error());
    eventually("it is not ready", || get(server.admin, "/health/ready").status == 503);
    let ready = get(server.admin, "/health/ready").body;
    assert_eq!(ready, "journal: it has failed, and writes are refused\n");
    assert_eq!(get(server.admin, "/health/live").status, 200);
    let metrics = server.metrics();
    assert_eq!(metrics.plain("holdfast_journal_failed"), 1.0);
    assert_eq!(metrics.at("holdfast_journal_state", &[("state", "failed")]), 1.0);
    assert_eq!(metrics.at("holdfast_journal_state", &[("state", "sound")]), 0.0);
    assert_eq!(metrics.plain("redis_aof_last_write_status"), 0.0);
    disk.mend();
    assert!(!server.connect().run("BGREWRITEAOF").is_error());
    eventually("it is ready", || get(server.admin, "/health/ready").status == 200);
    assert_eq!(server.metrics().plain("holdfast_journal_failed"), 0.0);
}

#[test]
fn a_follower_is_ready_and_tells_its_lag() {
    let Some(home) = Home::fresh() else { return };
    let writer = home.start(&[]);
    ok(&mut writer.connect(), "SET a 1");
    let dir = home.data().display().to_string();
    let Some(follower) = Watched::start(&["--follow", &dir]) else { return };
    eventually("it has the key", || follower.connect().run("GET a").to_string() == "\"1\"");
    assert_eq!(get(follower.admin, "/health/ready").status, 200);
    let metrics = follower.metrics();
    assert!(metrics.knows("holdfast_follower_lag_seconds") && metrics.knows("redis_master_link_up"));
    assert_eq!(metrics.at("holdfast_journal_state", &[("state", "following")]), 1.0);
    assert_eq!(metrics.all("redis_instance_info")[0].0["role"], "slave");
}

/// The process that takes the place of another gets its port for operators when the other has ended.
#[test]
fn an_upgrade_keeps_the_port() {
    let Some(home) = Home::fresh() else { return };
    let admin = free_address();
    let mut old = home.start(&with_port(admin, &[]));
    ok(&mut old.connect(), "SET a 1");
    let process = |text: &str| text.lines().find_map(|line| line.strip_prefix("redis_process_id ")).map(str::to_owned);
    assert_eq!(process(&get(admin, "/metrics").body), Some(old.process_id().to_string()));
    let mut next = Command::new(wire::binary());
    next.args(["upgrade", "--dir"]).arg(home.data()).args(with_port(admin, &[]));
    let next = next.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("cannot start the server's binary");
    let next = Server::adopt(next, old.address());
    assert_eq!(old.wait_for_end().code(), Some(0));
    eventually("the port is open", || send(admin, b"GET /health/ready HTTP/1.0\r\n\r\n").is_ok());
    eventually("it is ready", || get(admin, "/health/ready").status == 200);
    let metrics = get(admin, "/metrics").body;
    assert_eq!(process(&metrics), Some(next.process_id().to_string()));
    assert!(metrics.contains("\nredis_db_keys{db=\"db0\"} 1\n"), "{metrics}");
}
