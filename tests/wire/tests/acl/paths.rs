//! The paths by which a command can run: each of them asks for the right, and a right that is taken away is gone at once.

use wire::Reply;

use crate::support::{Own, allowed, denied, ok};

#[test]
fn transactions_ask_when_a_command_is_queued_and_when_it_runs() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~a +@all") else { return };
    ok(&mut bob, "MULTI");
    assert_eq!(bob.run("SET a 1").to_string(), "+QUEUED");
    denied(&mut bob, "SET b 1");
    assert!(bob.run("EXEC").to_string().starts_with("-EXECABORT"));
    ok(&mut bob, "MULTI");
    assert_eq!(bob.run("SET a 1").to_string(), "+QUEUED");
    assert_eq!(bob.run("INCR a").to_string(), "+QUEUED");
    own.set("bob", "~a +@all -incr");
    let replies = bob.run("EXEC");
    assert_eq!(replies.items()[0].to_string(), "+OK");
    assert_eq!(
        replies.items()[1].to_string(),
        "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no \
         longer allowed for the following reason: User bob has no permissions to run the 'incr' command"
    );
    // An interactive transaction goes on without it.
    ok(&mut bob, "TXN.BEGIN");
    denied(&mut bob, "SET b 1");
    ok(&mut bob, "SET a 5");
    allowed(&mut bob, "TXN.COMMIT");
    assert!(own.admin.run("GET b").is_nil());
    // What it has written is not committed with rights that it has lost.
    ok(&mut bob, "TXN.BEGIN");
    ok(&mut bob, "SET a 6");
    own.set("bob", "~a +get");
    assert_eq!(bob.read_until_killed(), Reply::Closed);
    assert_eq!(own.admin.run("GET a").text(), "5");
}

#[test]
fn scripts_and_functions_have_the_rights_of_their_caller() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~a +@all -set -publish &x") else { return };
    for (script, why) in [
        ("return redis.call('SET','a','1')", "User bob has no permissions to run the 'set' command"),
        ("return redis.call('GET','b')", "No permissions to access a key"),
    ] {
        let reply = bob.run_args(&["EVAL", script, "1", "a"]).to_string();
        assert!(reply.starts_with(&format!("-ERR ACL failure in script: {why}")), "{script}: {reply}");
    }
    denied(&mut bob, "EVAL \"return 1\" 1 b");
    let check =
        "return {redis.acl_check_cmd('get','a'), redis.acl_check_cmd('set','a','1'), redis.acl_check_cmd('get','b')}";
    assert_eq!(bob.run_args(&["EVAL", check, "0"]).to_string(), "[:1, (nil), (nil)]");
    let library =
        "#!lua name=l\nredis.register_function('f', function(keys) return redis.call('SET', keys[1], 'x') end)";
    allowed(&mut own.admin, &format!("FUNCTION LOAD {}", wire::quote(library.as_bytes())));
    let reply = bob.run("FCALL f 1 a").to_string();
    assert!(reply.contains("ACL failure in script"), "{reply}");
    assert!(own.admin.run("GET a").is_nil());
}

#[test]
fn calls_in_sessions_ask_for_what_they_run() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~s:* ~a +@session +get") else { return };
    allowed(&mut bob, "SESSION.OPEN ID s:1");
    denied(&mut bob, "SESSION.CALL s:1 1 LOW 1 SET a 1");
    denied(&mut bob, "SESSION.CALL s:1 1 LOW 1 GET b");
    allowed(&mut bob, "SESSION.CALL s:1 1 LOW 1 GET a");
    denied(&mut bob, "SESSION.CALL other 1 LOW 1 GET a");
    // The stored reply is no way around.
    own.set("bob", "~s:* ~a +@session -@admin");
    denied(&mut bob, "SESSION.CALL s:1 1 LOW 1 GET a");
    denied(&mut bob, "SESSION.OPEN");
    denied(&mut bob, "SESSION.LIST");
    denied(&mut bob, "SESSION.RETRY 99999999999999");
    denied(&mut bob, "SESSION.HOOK CREATED f");
    denied(&mut bob, "SESSION.ATTACH other");
}

#[test]
fn a_search_needs_the_right_to_all_that_it_may_find() {
    let Some(mut own) = Own::start(&[]) else { return };
    let admin = &mut own.admin;
    ok(admin, "IDX.CREATE idx:one PREFIX 1 one: FIELD due");
    ok(admin, "IDX.CREATE idx:all PREFIX 1 \"\" FIELD due");
    for line in
        ["HSET one:1 due 5 state ready", "HSET two:1 due 5 state ready", "CELL.SET one:c/x 1", "REG.PUT one:r 1 v"]
    {
        allowed(admin, line);
    }
    ok(admin, "IDX.CREATE idx:hidden PREFIX 1 two: FIELD due");
    let mut tenant = own.user("one", "~one:* ~idx:one ~idx:hidden &one* +@all");
    allowed(&mut tenant, "IDX.CREATE idx:one IFABSENT PREFIX 1 one: FIELD due");
    for line in [
        "CLAIM 1 idx:one MAX 10 SET 1 state taken",
        "IDX.RANGE idx:one 0 10",
        "IDX.INFO idx:one",
        "ZRANGE idx:one 0 -1",
        "ZCARD idx:one",
        "HFIND one:",
        "HFIND one:a",
        "CELL.LIST PREFIX one:",
        "RUN.LIST PREFIX one:",
        "REG.SNAPSHOT PREFIX one:",
        "REG.SNAPSHOT KEYS 1 one:r STORE one:blob",
        "REG.RESTORE FROM one:blob INTO one:x:",
        "CELL.FORK one:c/ one:d/",
        "CELL.DROP one:d/",
        "SWEEP idx:one BEFORE 10 SET 1 state ready PUBLISH one.swept",
        "CLIENT TRACKING ON BCAST PREFIX one:",
        "CLIENT TRACKING OFF",
        "IDX.CREATE idx:one2 PREFIX 1 two: FIELD due",
    ] {
        match line {
            // INTO needs a snapshot of a prefix; and the name of an index is a key.
            line if line.starts_with("REG.RESTORE") => {
                let reply = tenant.run(line).to_string();
                assert!(!reply.starts_with("-NOPERM"), "{line}: {reply}");
            }
            line if line.starts_with("IDX.CREATE") => denied(&mut tenant, line),
            line => allowed(&mut tenant, line),
        }
    }
    for line in [
        "CLAIM 1 idx:all MAX 10 SET 1 state taken",
        "CLAIM 2 idx:one idx:all MAX 10 SET 1 state taken",
        "IDX.RANGE idx:all 0 10",
        "IDX.INFO idx:all",
        "ZRANGE idx:all 0 -1",
        "HFIND two:",
        "HFIND on",
        "HFIND \"\"",
        "CELL.LIST",
        "CELL.LIST PREFIX o",
        "RUN.LIST",
        "REG.SNAPSHOT",
        "REG.SNAPSHOT PREFIX two:",
        "REG.SNAPSHOT KEYS 1 two:r",
        "REG.SNAPSHOT PREFIX one: STORE two:blob",
        "REG.RESTORE FROM one:blob",
        "REG.RESTORE FROM two:blob INTO one:",
        "CELL.FORK one:c/ two:c/",
        "CELL.FORK two:c/ one:c2/",
        "CELL.DROP two:c/",
        "IDX.DROP idx:all",
        "SWEEP idx:all BEFORE 10 SET 1 state ready",
        "SWEEP idx:one BEFORE 10 SET 1 state ready PUBLISH other",
        "CLIENT TRACKING ON BCAST",
        "CLIENT TRACKING ON BCAST PREFIX two:",
        // A word that is a value hides no option.
        "SWEEP idx:one BEFORE 10 SET 1 PUBLISH one.swept PUBLISH other",
        "IDX.CREATE idx:one FIELD due PREFIX 1 two:",
        // It would tell what the index has.
        "IDX.CREATE idx:hidden IFABSENT FIELD due PREFIX 1 one:",
        "CELL.LIST PREFIX one: PREFIX two:",
        "REG.RESTORE FROM one:blob INTO one: INTO two:",
        "SESSION.OPEN CAP 1 ID one:s ID two:s",
        "SESSION.OPEN CAP 1 ID one:s",
    ] {
        denied(&mut tenant, line);
    }
    assert_eq!(
        tenant.run("SORT one:l BY w_*").to_string(),
        "-ERR BY option of SORT denied due to insufficient ACL permissions."
    );
    assert_eq!(
        tenant.run("SORT one:l BY nosort BY w_*").to_string(),
        "-ERR BY option of SORT denied due to insufficient ACL permissions."
    );
    allowed(&mut tenant, "SESSION.OPEN ID one:s");
    assert_eq!(
        tenant.run("SORT one:l GET w_*").to_string(),
        "-ERR GET option of SORT denied due to insufficient ACL permissions."
    );
    allowed(&mut tenant, "SORT one:l BY nosort GET #");
}

#[test]
fn a_client_that_waits_is_not_served_what_it_may_no_longer_have() {
    let Some(mut own) = Own::start(&[]) else { return };
    ok(&mut own.admin, "IDX.CREATE idx PREFIX 1 job: FIELD due");
    for (wait, serve) in [
        ("BLPOP list 0", "RPUSH list secret"),
        ("CLAIM 1 idx MAX NOW SET 1 state taken BLOCK 0", "HSET job:1 due 1"),
        ("CELL.GETV cell AFTER 0 BLOCK 0", "CELL.SET cell secret"),
    ] {
        let mut bob = own.user("bob", "~* +@all");
        own.wait_in(&mut bob, wait);
        own.set("bob", "~* +ping");
        allowed(&mut own.admin, serve);
        let reply = bob.read().to_string();
        let command = wait.split(' ').next().expect("it has a name").to_lowercase();
        assert_eq!(reply, format!("-NOPERM User bob has no permissions to run the '{command}' command"));
        let stats = own.admin.run("INFO commandstats").text().to_owned();
        let line = stats.lines().find(|line| line.contains(&format!("cmdstat_{command}:"))).expect("it was called");
        assert!(line.contains("rejected_calls=1,failed_calls=0"), "{line}");
        denied(&mut bob, wait);
        own.admin.run("FLUSHALL");
    }
    assert_eq!(own.admin.run("INFO stats").text().matches("acl_access_denied_cmd:6").count(), 1);
    // The command that waits is still allowed: the client may send it again.
    let mut bob = own.user("bob", "~* +@all");
    own.wait_in(&mut bob, "BLPOP list 0");
    own.set("bob", "~* +@list");
    assert!(bob.read().to_string().starts_with("-UNBLOCKED"));
}

#[test]
fn who_listens_is_closed_when_the_right_is_gone() {
    let Some(mut own) = Own::start(&[]) else { return };
    for begin in ["SUBSCRIBE ch1", "PSUBSCRIBE ch*", "SSUBSCRIBE ch1", "MONITOR", "CLIENT TRACKING ON BCAST"] {
        let mut bob = own.user("bob", "~* &ch* +@all");
        if begin.starts_with("CLIENT") {
            bob.run("HELLO 3");
        }
        allowed(&mut bob, begin);
        // The same rights and more: it stays.
        ok(&mut own.admin, "ACL SETUSER bob &other");
        assert_eq!(own.admin.run("CLIENT KILL USER nobody").to_string(), "-ERR No such user 'nobody'");
        own.set("bob", "~x +get");
        loop {
            match bob.read_until_killed() {
                Reply::Closed => break,
                _ => continue,
            }
        }
    }
    // A user that is removed is gone with all its connections.
    let mut bob = own.user("bob", "~* +@all");
    assert_eq!(own.admin.run("ACL DELUSER bob").integer(), 1);
    assert_eq!(bob.read_until_killed(), Reply::Closed);
}
