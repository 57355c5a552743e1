//! INFO commandstats of commands that wait: they count when their wait is over, as in Redis 7.2 and later.

use wire::Connection;

use crate::support::{Holdfast, eventually};

/// The line of BLPOP; empty if it was never called.
fn counted(connection: &mut Connection) -> String {
    let text = connection.run("INFO commandstats").text().to_owned();
    text.lines().find(|line| line.starts_with("cmdstat_blpop:")).unwrap_or_default().to_owned()
}

#[track_caller]
fn has(connection: &mut Connection, calls: u32, rejected: u32, failed: u32) {
    let line = counted(connection);
    for part in [format!(":calls={calls},"), format!("rejected_calls={rejected},"), format!("failed_calls={failed}")] {
        assert!(line.contains(&part), "no {part} in {line}");
    }
}

/// Sends a BLPOP, and waits until it waits.
fn wait(server: &Holdfast, control: &mut Connection, seconds: f64) -> Connection {
    let mut client = server.connect();
    client.queue_line(&format!("BLPOP list {seconds}"));
    client.flush();
    eventually("it waits", || control.run("INFO clients").text().contains("blocked_clients:1"));
    client
}

#[test]
fn a_command_that_waits_counts_when_its_wait_is_over() {
    let Some((server, mut control)) = Holdfast::start_with_client(&[]) else { return };
    let mut client = wait(&server, &mut control, 0.0);
    assert_eq!(counted(&mut control), "");
    control.run("RPUSH list 1");
    assert_eq!(client.read().items().len(), 2);
    has(&mut control, 1, 0, 0);
    assert_eq!(wait(&server, &mut control, 0.05).read().to_string(), "(nil array)");
    has(&mut control, 2, 0, 0);
    let mut client = wait(&server, &mut control, 0.0);
    let clients = control.run("CLIENT LIST").text().to_owned();
    let is_it = |line: &&str| line.contains("cmd=blpop") && line.contains("flags=b");
    let line = clients.lines().find(is_it).unwrap_or_else(|| panic!("it is not in {clients}"));
    let id = line.split(' ').next().and_then(|field| field.strip_prefix("id=")).expect("its id");
    assert_eq!(control.run(&format!("CLIENT UNBLOCK {id} ERROR")).integer(), 1);
    assert!(client.read().to_string().starts_with("-UNBLOCKED"));
    has(&mut control, 3, 0, 1);
    // One that is gone has not been called.
    drop(wait(&server, &mut control, 0.0));
    eventually("it is gone", || control.run("INFO clients").text().contains("blocked_clients:0"));
    has(&mut control, 3, 0, 1);
}

#[test]
fn a_command_that_is_refused_while_it_waits_has_not_been_called() {
    let Some((server, mut control)) = Holdfast::start_with_client(&["--user", "waiter on nopass +@all ~*"]) else {
        return;
    };
    let mut client = server.connect();
    client.run("AUTH waiter x");
    client.queue_line("BLPOP list 0");
    client.flush();
    eventually("it waits", || control.run("INFO clients").text().contains("blocked_clients:1"));
    control.run("ACL SETUSER waiter resetkeys");
    assert!(client.read().to_string().starts_with("-NOPERM"));
    has(&mut control, 0, 1, 0);
}
