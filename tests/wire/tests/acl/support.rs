//! A server of its own for a test, because users are the server's.

pub(crate) use crate::process::can_start_holdfast;
use wire::{Connection, Server, fresh_dir};

pub(crate) struct Own {
    pub(crate) server: Server,
    pub(crate) admin: Connection,
}

impl Own {
    /// `None` where there is no holdfast to start.
    pub(crate) fn start(args: &[&str]) -> Option<Own> {
        if !can_start_holdfast() {
            return None;
        }
        let server = Server::start(&fresh_dir(), args);
        let admin = server.connect();
        Some(Own { server, admin })
    }

    /// Makes a user, and a connection that is it.
    pub(crate) fn user(&mut self, name: &str, rules: &str) -> Connection {
        self.set(name, rules);
        let mut connection = self.server.connect();
        ok(&mut connection, &format!("AUTH {name} pw"));
        connection
    }

    /// Sets the rules of a user, with the password `pw`.
    pub(crate) fn set(&mut self, name: &str, rules: &str) {
        ok(&mut self.admin, &format!("ACL SETUSER {name} reset on >pw {rules}"));
    }
}

#[track_caller]
pub(crate) fn ok(connection: &mut Connection, line: &str) {
    assert_eq!(connection.run(line).to_string(), "+OK", "{line}");
}

#[track_caller]
pub(crate) fn denied(connection: &mut Connection, line: &str) {
    let reply = connection.run(line).to_string();
    assert!(reply.starts_with("-NOPERM "), "{line}: {reply}");
}

#[track_caller]
pub(crate) fn allowed(connection: &mut Connection, line: &str) {
    let reply = connection.run(line);
    assert!(!reply.is_error(), "{line}: {reply}");
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("never: {what}");
}
