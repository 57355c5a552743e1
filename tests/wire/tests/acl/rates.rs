//! Requests that are delayed because their user owes: what becomes of them when the user changes meanwhile, and by which ways
//! a connection could come not to be delayed. A debt is so large that it is never paid back while a test runs.

use wire::{Connection, Reply};

use crate::process::Holdfast;
use crate::support::{Own, allowed, eventually, ok, run_into_debt, send_delayed, usage};

/// A server with a user who owes, and a connection of that user whose request is delayed.
fn with_delayed(line: &str) -> Option<(Own, Connection)> {
    let mut own = Own::start(&[])?;
    let mut bob = own.user("bob", "~* +@all limit:ops=1");
    run_into_debt(&mut bob);
    send_delayed(&mut own, &mut bob, "bob", line);
    Some((own, bob))
}

/// RESET makes a client the default user: requests behind it, in the same packet, are delayed if that user owes.
#[test]
fn requests_behind_reset_do_not_escape_the_rate() {
    let Some(mut own) = Own::start(&[]) else { return };
    own.set("operator", "~* +@all");
    ok(&mut own.admin, "AUTH operator pw");
    let mut bob = own.user("bob", "~* +@all");
    let mut default = own.server.connect();
    ok(&mut own.admin, "ACL SETUSER default limit:ops=1");
    run_into_debt(&mut default);
    let before = usage(&mut own.admin, "default", "delayed");
    bob.queue_line("RESET");
    (0..20).for_each(|_| bob.queue_line("INCR n"));
    bob.flush();
    eventually("it is delayed", || usage(&mut own.admin, "default", "delayed") > before);
    assert!(own.admin.run("GET n").is_nil(), "nothing has run");
    ok(&mut own.admin, "ACL SETUSER default resetlimits");
    assert_eq!(bob.read().to_string(), "+RESET");
    for number in 1..=20 {
        assert_eq!(bob.read().integer(), number);
    }
}

#[test]
fn a_delayed_request_of_a_user_that_is_removed_is_not_executed() {
    let Some((mut own, mut bob)) = with_delayed("SET a 1") else { return };
    assert_eq!(own.admin.run("ACL DELUSER bob").integer(), 1);
    assert_eq!(bob.read_until_killed(), Reply::Closed);
    // One of the same name is another user, and owes nothing.
    let mut again = own.user("bob", "~* +@all limit:ops=1");
    assert_eq!(again.run("EXISTS a").integer(), 0);
    assert_eq!(usage(&mut own.admin, "bob", "clients"), 1);
}

/// As in Redis: nobody becomes a user that is off, and those who are it stay. The debt stays as well.
#[test]
fn a_delayed_request_of_a_user_that_is_turned_off_stays_delayed() {
    let Some((mut own, mut bob)) = with_delayed("SET a 1") else { return };
    ok(&mut own.admin, "ACL SETUSER bob off");
    assert!(own.server.connect().run("AUTH bob pw").to_string().starts_with("-WRONGPASS"));
    assert_eq!(own.admin.run("EXISTS a").integer(), 0);
    ok(&mut own.admin, "ACL SETUSER bob resetlimits");
    assert_eq!(bob.read().to_string(), "+OK");
    assert_eq!(own.admin.run("EXISTS a").integer(), 1);
}

#[test]
fn a_delayed_request_is_checked_when_it_runs() {
    let Some((mut own, mut bob)) = with_delayed("SET a 1") else { return };
    ok(&mut own.admin, "ACL SETUSER bob -set");
    ok(&mut own.admin, "ACL SETUSER bob resetlimits");
    assert!(bob.read().to_string().starts_with("-NOPERM "));
    assert_eq!(own.admin.run("EXISTS a").integer(), 0);
}

/// Commands of a script that are refused are operations as well: otherwise they would be free.
#[test]
fn refused_commands_of_scripts_are_counted() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~mine:* +@all -flushall") else { return };
    for call in ["'GET', 'other'", "'FLUSHALL'", "'NOSUCH'", "'GET'", "'SUBSCRIBE', 'a'"] {
        ok(&mut own.admin, "ACL RESETUSAGE bob");
        let script = format!("for i = 1, 100 do redis.pcall({call}) end return 1");
        assert_eq!(bob.run_args(&["EVAL", &script, "0"]).integer(), 1);
        assert_eq!(usage(&mut own.admin, "bob", "ops"), 101, "{call}");
    }
}

/// A follower has the users of its own settings, and their limits.
#[test]
fn limits_hold_on_a_follower() {
    let Some(mut own) = Own::start(&[]) else { return };
    let dir = own.admin.run("CONFIG GET dir").items()[1].text().to_owned();
    allowed(&mut own.admin, "SETRANGE long 4000 x");
    let follower = Holdfast::start(&["--follow", &format!("file:{dir}")]).expect("the writer could be started");
    let mut writer = std::mem::replace(&mut own, Own { admin: follower.connect(), server: follower });
    eventually("it follows", || own.admin.run("STRLEN long").integer() == 4001);
    assert_eq!(writer.admin.run("ACL USERS").items().len(), 1);
    let mut bob = own.user("bob", "~* +@all limit:ops=1 limit:reply=2kb limit:clients=1");
    assert!(own.server.connect().run("AUTH bob pw").to_string().starts_with("-LIMIT "));
    assert!(bob.run("GET long").to_string().starts_with("-LIMIT the reply is longer"));
    run_into_debt(&mut bob);
    send_delayed(&mut own, &mut bob, "bob", "SET a 1");
    ok(&mut own.admin, "ACL SETUSER bob resetlimits");
    assert!(bob.read().to_string().starts_with("-READONLY "));
    // The users of the writer are its own.
    assert_eq!(writer.admin.run("ACL USERS").items().len(), 1);
}
