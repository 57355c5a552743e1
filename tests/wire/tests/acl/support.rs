//! A server of its own for a test, because users are the server's.

use crate::process::Holdfast;
pub(crate) use crate::process::can_start_holdfast;
use wire::{Connection, Reply};

pub(crate) struct Own {
    pub(crate) server: Holdfast,
    pub(crate) admin: Connection,
}

impl Own {
    /// `None` where there is no holdfast to start.
    pub(crate) fn start(args: &[&str]) -> Option<Own> {
        let server = Holdfast::start(args)?;
        let admin = server.connect();
        Some(Own { server, admin })
    }

    /// The same, with a user and a connection that is it.
    pub(crate) fn start_with_user(name: &str, rules: &str) -> Option<(Own, Connection)> {
        let mut own = Own::start(&[])?;
        let user = own.user(name, rules);
        Some((own, user))
    }

    /// Makes a user, and a connection that is it.
    pub(crate) fn user(&mut self, name: &str, rules: &str) -> Connection {
        self.set(name, rules);
        self.login(name)
    }

    /// Another connection that is this user.
    pub(crate) fn login(&self, name: &str) -> Connection {
        let mut connection = self.server.connect();
        ok(&mut connection, &format!("AUTH {name} pw"));
        connection
    }

    /// Sends a command, and waits until its client waits.
    #[track_caller]
    pub(crate) fn wait_in(&mut self, client: &mut Connection, command: &str) {
        client.queue_line(command);
        client.flush();
        eventually("it waits", || self.admin.run("INFO clients").text().contains("blocked_clients:1"));
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

/// A number of ACL USAGE.
pub(crate) fn usage(admin: &mut Connection, user: &str, field: &str) -> i64 {
    let reply = admin.run(&format!("ACL USAGE {user}"));
    let fields = reply.items()[0].items();
    assert_eq!((fields[0].text(), fields[1].text()), ("user", user));
    let of = |fields: &[Reply], name: &str| {
        let at = fields.iter().step_by(2).position(|field| field.text() == name);
        fields[2 * at.unwrap_or_else(|| panic!("{name} in {reply}")) + 1].clone()
    };
    match field.strip_prefix("refused-") {
        Some(limit) => of(of(fields, "refused").items(), limit).integer(),
        None => of(fields, field).integer(),
    }
}

/// Makes the user of a connection owe more than it can pay back while a test runs.
pub(crate) fn run_into_debt(connection: &mut Connection) {
    let script = "for i = 1, 50000 do redis.call('GET', 'none') end return 1";
    assert_eq!(connection.run_args(&["EVAL", script, "0"]).integer(), 1);
}

/// Sends a request that is not answered yet, and waits until it is delayed.
pub(crate) fn send_delayed(own: &mut Own, connection: &mut Connection, user: &str, line: &str) {
    let before = usage(&mut own.admin, user, "delayed");
    connection.queue_line(line);
    connection.flush();
    eventually("it is delayed", || usage(&mut own.admin, user, "delayed") > before);
}
