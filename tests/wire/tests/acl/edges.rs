//! Rights that could be had by a detour: hooks, other users on the same connection, files that are read as something
//! else than what was written.

use crate::process::{Dir, Holdfast};
use crate::support::{Own, allowed, denied, eventually, ok};
use wire::quote;

fn library(name: &str, function: &str, body: &str) -> String {
    let code = format!("#!lua name={name}\nredis.register_function('{function}', function() {body} end)");
    quote(code.as_bytes())
}

/// Regressions: XREADGROUP needed the right to write, and `%R~*` gave a right to the empty key.
#[test]
fn rights_to_groups_and_to_the_empty_key_are_those_of_redis() {
    let Some(mut own) = Own::start(&[]) else { return };
    ok(&mut own.admin, "XGROUP CREATE s g $ MKSTREAM");
    let mut reader = own.user("reader", "%R~s* +@all");
    allowed(&mut reader, "XREADGROUP GROUP g c STREAMS s >");
    denied(&mut reader, "XACK s g 1-1");
    for (rules, may_read) in [("%R~*", false), ("%RW~*", false), ("~**", false), ("~* ", true)] {
        let mut user = own.user(&format!("u{}", rules.trim().len()), &format!("resetkeys {rules} +@all"));
        match may_read {
            true => allowed(&mut user, "GET \"\""),
            false => denied(&mut user, "GET \"\""),
        }
        allowed(&mut user, "GET a");
    }
}

/// The hook of a session that expires runs with all rights.
#[test]
fn functions_that_hooks_call_are_changed_only_by_who_may_set_hooks() {
    let Some(mut own) = Own::start(&[]) else { return };
    allowed(&mut own.admin, &format!("FUNCTION LOAD {}", library("hooks", "on_expired", "return 1")));
    ok(&mut own.admin, "SESSION.HOOK EXPIRED on_expired");
    ok(&mut own.admin, "SET secret s");
    let mut bob = own.user("bob", "~bob:* +@all -@admin -@dangerous");
    let steal = "redis.call('SET', 'bob:stolen', redis.call('GET', 'secret'))";
    denied(&mut bob, &format!("FUNCTION LOAD REPLACE {}", library("hooks", "on_expired", steal)));
    denied(&mut bob, "FUNCTION DELETE hooks");
    denied(&mut bob, "FUNCTION FLUSH");
    let dump = bob.run("FUNCTION DUMP").bytes().to_vec();
    let restore = [b"FUNCTION".as_slice(), b"RESTORE", &dump, b"REPLACE"];
    assert!(bob.run_args(&restore).to_string().starts_with("-NOPERM "));
    let logged = own.admin.run("ACL LOG 1").to_string();
    assert!(logged.contains("session.hook") && logged.contains("bob"), "{logged}");
    // Libraries of its own are its own business.
    allowed(&mut bob, &format!("FUNCTION LOAD {}", library("bobs", "f", "return 1")));
    allowed(&mut bob, "FUNCTION DELETE bobs");
    // And so is this one, once no hook needs it.
    ok(&mut own.admin, "SESSION.HOOK EXPIRED NONE");
    allowed(&mut bob, &format!("FUNCTION LOAD REPLACE {}", library("hooks", "on_expired", "return 2")));
}

#[test]
fn what_a_user_has_begun_is_not_finished_by_another() {
    let Some(mut own) = Own::start(&[]) else { return };
    own.set("bob", "~bob:* +@all");
    let mut rich = own.user("rich", "~* +@all");
    ok(&mut rich, "TXN.BEGIN");
    ok(&mut rich, "SET secret 1");
    for change in ["AUTH bob pw", "HELLO 3 AUTH bob pw"] {
        let reply = rich.run(change).to_string();
        assert!(reply.starts_with("-ERR the user cannot change in a transaction"), "{change}: {reply}");
    }
    allowed(&mut rich, "TXN.ROLLBACK");
    ok(&mut rich, "AUTH bob pw");
    let mut rich = own.user("rich", "~* +@all");
    allowed(&mut rich, "HELLO 3");
    allowed(&mut rich, "SESSION.OPEN ID s TTL 60000");
    ok(&mut rich, "SESSION.ATTACH s");
    let reply = rich.run("AUTH bob pw").to_string();
    assert!(reply.starts_with("-ERR the client is attached to a session"), "{reply}");
    allowed(&mut rich, "SESSION.DETACH s");
    ok(&mut rich, "AUTH bob pw");
}

#[test]
fn a_session_is_taken_over_only_by_who_may_change_it() {
    let Some(mut own) = Own::start(&[]) else { return };
    allowed(&mut own.admin, "SESSION.OPEN ID s TTL 60000");
    let mut bob = own.user("bob", "%R~s +@all");
    allowed(&mut bob, "HELLO 3");
    denied(&mut bob, "SESSION.ATTACH s");
    allowed(&mut bob, "SESSION.INFO s");
}

#[test]
fn commands_that_read_and_write_are_in_those_categories() {
    let Some(mut own) = Own::start(&[]) else { return };
    let index = "IDX.CREATE due PREFIX 1 job: FIELD at";
    ok(&mut own.admin, index);
    allowed(&mut own.admin, "HSET job:1 at 1");
    let mut bob = own.user("bob", "~job:* ~due ~s +@all -@read");
    denied(&mut bob, "IDX.RANGE due -inf +inf");
    denied(&mut bob, "IDX.INFO due");
    let mut bob = own.user("bob", "~s +@all -@write");
    denied(&mut bob, "SESSION.CALL s 1 LOW 1 PING");
}

#[test]
fn passwords_of_requests_that_are_refused_are_not_shown() {
    let Some(mut own) = Own::start(&[]) else { return };
    ok(&mut own.admin, "CONFIG SET slowlog-log-slower-than 0");
    let mut bob = own.server.connect();
    for request in ["HELLO bogus AUTH default hidden", "SESSION.CALL s 1 LOW 1 AUTH hidden"] {
        assert!(bob.run(request).is_error(), "{request}");
    }
    let shown = own.admin.run("SLOWLOG GET 10").to_string();
    assert!(shown.contains("HELLO") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn a_file_without_the_default_user_leaves_its_password() {
    let dir = Dir::fresh();
    let file = dir.write("users.acl", "user other on >p ~o:* +get\n");
    let Some(server) = Holdfast::start(&["--aclfile", &file]) else { return };
    let mut admin = server.connect();
    ok(&mut admin, "CONFIG SET requirepass pw");
    let mut stranger = server.connect();
    assert!(stranger.run("GET a").to_string().starts_with("-NOAUTH"));
    ok(&mut admin, "ACL LOAD");
    assert!(stranger.run("GET a").to_string().starts_with("-NOAUTH"));
    assert!(server.connect().run("GET a").to_string().starts_with("-NOAUTH"));
    ok(&mut server.connect(), "AUTH pw");
}

/// Whoever listens keeps listening when the user gets more rights, and with thousands of patterns too.
#[test]
fn more_rights_disturb_nobody() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~a +get +subscribe &news (~b +set)") else { return };
    allowed(&mut bob, "SUBSCRIBE news");
    let patterns: Vec<String> = (0..4000).map(|number| format!("~k{number}:*")).collect();
    ok(&mut own.admin, &format!("ACL SETUSER bob {}", patterns.join(" ")));
    for rule in ["+set", "&more", "(~c +get)", "+@read"] {
        ok(&mut own.admin, &format!("ACL SETUSER bob {rule}"));
    }
    eventually("the message comes", || own.admin.run("PUBLISH news hello").to_string() == ":1");
    ok(&mut own.admin, "ACL SETUSER bob clearselectors");
    assert_eq!(own.admin.run("PUBLISH news hello").to_string(), ":0", "it has lost something");
}
