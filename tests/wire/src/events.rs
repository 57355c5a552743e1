//! Keyspace events of commands, checked line by line. Knows how events are subscribed to; refuses to know which there are.

use crate::{Connection, Reply, Session};

/// Runs commands and compares the events that each publishes on `__keyevent@0__`: `SADD s a => new s, sadd s`.
#[track_caller]
pub fn check_events(lines: &str) {
    let session = Session::start();
    let (mut client, mut listener) = (session.connect(), session.connect());
    client.run("CONFIG SET notify-keyspace-events EAnm");
    listener.run("PSUBSCRIBE __keyevent@0__:*");
    let mut wrong = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (command, expected) = line.split_once("=>").expect("a command and its events");
        let reply = client.run(command);
        assert!(!reply.is_error(), "{command}: {reply}");
        let received = received(&mut listener).join(", ");
        if received != expected.trim() {
            wrong.push(format!("{} => {received}, not {}", command.trim(), expected.trim()));
        }
    }
    client.run("CONFIG SET notify-keyspace-events ''");
    assert!(wrong.is_empty(), "{} published:\n{}", session.product(), wrong.join("\n"));
}

/// All events that the listener has received up to now.
fn received(listener: &mut Connection) -> Vec<String> {
    listener.queue_line("PING");
    let mut events = Vec::new();
    loop {
        match listener.read() {
            Reply::Array(parts) if parts.len() == 4 => {
                let event = parts[2].text().strip_prefix("__keyevent@0__:").expect("a channel of events").to_owned();
                events.push(format!("{event} {}", parts[3].text()));
            }
            _ => return events,
        }
    }
}
