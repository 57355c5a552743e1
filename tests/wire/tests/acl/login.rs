//! Who a client is: passwords, AUTH and HELLO, the default user, and what is logged when something is refused.

use crate::support::{Own, allowed, denied, ok};

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn a_client_is_whoever_it_proves_to_be() {
    let Some(mut own) = Own::start(&[]) else { return };
    own.set("bob", "~* +@all");
    let mut client = own.server.connect();
    assert_eq!(client.run("ACL WHOAMI").text(), "default");
    assert_eq!(client.run("AUTH bob wrong").to_string(), WRONG);
    assert_eq!(client.run("AUTH nobody pw").to_string(), WRONG);
    assert_eq!(client.run("ACL WHOAMI").text(), "default");
    ok(&mut client, "AUTH bob pw");
    assert_eq!(client.run("ACL WHOAMI").text(), "bob");
    assert!(own.admin.run("CLIENT LIST").text().contains(" user=bob "));
    assert_eq!(client.run("HELLO 3 AUTH bob nope").to_string(), WRONG);
    ok(&mut client, "AUTH default any");
    allowed(&mut client, "HELLO 2 AUTH bob pw");
    assert_eq!(client.run("ACL WHOAMI").text(), "bob");
    assert_eq!(client.run("RESET").to_string(), "+RESET");
    assert!(!own.admin.run("CLIENT LIST").text().contains(" user=bob "));
    assert_eq!(client.run("ACL WHOAMI").text(), "default");
    assert!(client.run("AUTH any").to_string().starts_with("-ERR AUTH <password> called without any password"));
    // Several passwords, and none of them twice.
    ok(&mut own.admin, "ACL SETUSER bob >second");
    ok(&mut client, "AUTH bob second");
    ok(&mut own.admin, "ACL SETUSER bob <second");
    assert_eq!(client.run("AUTH bob second").to_string(), WRONG);
    ok(&mut own.admin, "ACL SETUSER bob nopass");
    ok(&mut client, "AUTH bob whatever");
    ok(&mut own.admin, "ACL SETUSER bob resetpass");
    assert_eq!(client.run("AUTH bob whatever").to_string(), WRONG);
}

/// Regression: the error for a wrong password cannot be late in a transaction, and guesses there were as fast as any request.
#[test]
fn a_transaction_has_one_guess() {
    let Some(mut own) = Own::start(&[]) else { return };
    own.set("boss", "~* +@all");
    let mut client = own.user("bob", "~* +@all");
    for guesses in
        [["AUTH boss 1", "AUTH boss 2", "AUTH boss pw"], ["HELLO 2 AUTH boss 1", "AUTH boss 2", "HELLO 2 AUTH boss pw"]]
    {
        ok(&mut client, "MULTI");
        guesses.iter().for_each(|guess| assert_eq!(client.run(guess).to_string(), "+QUEUED"));
        let replies = client.run("EXEC");
        let replies: Vec<String> = replies.items().iter().map(ToString::to_string).collect();
        assert_eq!(replies[0], WRONG);
        for unlooked in &replies[1..] {
            assert!(unlooked.starts_with("-ERR a password was wrong in a transaction"), "{unlooked}");
        }
        assert_eq!(client.run("ACL WHOAMI").text(), "bob");
        // The right one is not refused.
        ok(&mut client, "AUTH boss pw");
        ok(&mut client, "AUTH bob pw");
        // The time of the guess is over, at the latest.
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    ok(&mut client, "MULTI");
    client.run("AUTH boss pw");
    assert_eq!(client.run("EXEC").to_string(), "[+OK]");
}

#[test]
fn requirepass_is_the_password_of_the_default_user() {
    let Some(mut own) = Own::start(&[]) else { return };
    ok(&mut own.admin, "CONFIG SET requirepass secret");
    own.admin = own.server.connect();
    let admin = &mut own.admin;
    assert_eq!(admin.run("GET x").to_string(), "-NOAUTH Authentication required.");
    assert!(admin.run("HELLO 3").to_string().starts_with("-NOAUTH HELLO must be called"));
    ok(admin, "AUTH secret");
    assert!(admin.run("ACL LIST").items()[0].text().starts_with("user default on sanitize-payload #2bb80d53"));
    ok(admin, "CONFIG SET requirepass other");
    let mut client = own.server.connect();
    assert_eq!(client.run("AUTH secret").to_string(), WRONG);
    ok(&mut client, "AUTH default other");
    ok(&mut own.admin, "CONFIG SET requirepass \"\"");
    allowed(&mut own.server.connect(), "GET x");
    // A default user without rights, and another with all.
    own.set("root", "~* &* +@all");
    ok(&mut own.admin, "ACL SETUSER default off");
    let mut client = own.server.connect();
    assert_eq!(client.run("GET x").to_string(), "-NOAUTH Authentication required.");
    ok(&mut client, "AUTH root pw");
    allowed(&mut client, "GET x");
}

#[test]
fn what_is_refused_is_logged() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~a &x +@all -set") else { return };
    for _ in 0..3 {
        denied(&mut bob, "SET a 1");
    }
    denied(&mut bob, "GET b");
    denied(&mut bob, "PUBLISH y 1");
    bob.run("AUTH bob wrong");
    bob.run("MULTI");
    denied(&mut bob, "GET c");
    bob.run("DISCARD");
    bob.run("EVAL \"return redis.call('SET','a','1')\" 0");
    let log = own.admin.run("ACL LOG");
    let entries: Vec<String> = log
        .items()
        .iter()
        .map(|entry| {
            let field = |name: &str| {
                let at =
                    entry.items().iter().position(|item| item.to_string() == format!("\"{name}\"")).expect("a field");
                entry.items()[at + 1].to_string().trim_matches('"').to_owned()
            };
            assert!(field("client-info").contains(" user=bob ") || field("reason") == "auth");
            format!(
                "{} {} {} {} {}",
                field("count"),
                field("reason"),
                field("context"),
                field("object"),
                field("username")
            )
        })
        .collect();
    assert_eq!(
        entries,
        [
            ":1 command lua set bob",
            ":1 key multi c bob",
            ":1 auth toplevel AUTH bob",
            ":1 channel toplevel y bob",
            ":1 key toplevel b bob",
            ":3 command toplevel set bob",
        ]
    );
    assert_eq!(own.admin.run("ACL LOG 2").items().len(), 2);
    let info = own.admin.run("INFO stats").text().to_owned();
    for line in [
        "acl_access_denied_auth:1",
        "acl_access_denied_cmd:4",
        "acl_access_denied_key:2",
        "acl_access_denied_channel:1",
    ] {
        assert!(info.contains(line), "{line}: {info}");
    }
    ok(&mut own.admin, "CONFIG SET acllog-max-len 1");
    assert_eq!(own.admin.run("ACL LOG").items().len(), 6, "until there is a new entry");
    denied(&mut bob, "GET other");
    assert_eq!(own.admin.run("ACL LOG").items().len(), 1);
    // However long a name is, the log keeps little of it.
    let long = "n".repeat(100_000);
    bob.run_args(&["GET", long.as_str()]);
    bob.run_args(&["AUTH", long.as_str(), "x"]);
    assert!(own.admin.run("ACL LOG").to_string().len() < 10_000);
    ok(&mut own.admin, "ACL LOG RESET");
    assert_eq!(own.admin.run("ACL LOG").items().len(), 0);
}

/// Only the connection that guesses waits, longer each time; one that knows the password does not.
#[test]
fn guessing_is_slow_and_holds_up_nobody_else() {
    let Some(mut own) = Own::start(&[]) else { return };
    own.set("bob", "~* +@all");
    let mut guesser = own.server.connect();
    for _ in 0..20 {
        guesser.queue_line("AUTH bob guess");
        guesser.queue_line("HELLO 2 AUTH bob guess");
    }
    guesser.flush();
    let mut other = own.login("bob");
    assert_eq!(other.run("PING").to_string(), "+PONG");
    assert_eq!(guesser.read().to_string(), WRONG);
    let waits = own.admin.run("INFO clients").text().contains("blocked_clients:1");
    assert!(waits, "the guesser waits for its next answer");
    // The right password ends the waiting for good.
    drop(guesser);
    let mut late = own.server.connect();
    assert_eq!(late.run("AUTH bob guess").to_string(), WRONG);
    ok(&mut late, "AUTH bob pw");
}
