//! Rules for databases, as Valkey 9.1 has them: `db=0,1`, `alldbs`, `resetdbs`. Without one, a user has all databases, and
//! nothing is shown that Redis would not show.

use wire::Reply;

use crate::support::{Own, allowed, denied, ok};

const DENIED: &str = "-NOPERM No permissions to access database";

#[test]
fn rules_for_databases_are_shown_as_they_are() {
    let Some(mut own) = Own::start(&[]) else { return };
    let mut shown = |rules: &[&str]| {
        let words: Vec<&str> = ["ACL", "SETUSER", "bob"].iter().chain(rules).copied().collect();
        let reply = own.admin.run_args(&words).to_string();
        let list = own.admin.run("ACL LIST");
        let line = list.items().iter().find(|line| line.text().starts_with("user bob ")).expect("it is there");
        (reply, line.text().strip_prefix("user bob off sanitize-payload ").expect("it is off").to_owned())
    };
    for (rules, line) in [
        (&["~*", "&*", "+@all"][..], "~* &* +@all"),
        (&["db=1,0,1"], "~* &* db=0,1 +@all"),
        (&["DB=3"], "~* &* db=3 +@all"),
        (&["db=4", "db=05"], "~* &* db=5 +@all"),
        (&["resetdbs"], "~* &* resetdbs +@all"),
        (&["db=2147483647"], "~* &* db=2147483647 +@all"),
        (&["alldbs"], "~* &* +@all"),
        (
            &["(db=2 ~a* +get)", "(~b* +get)"],
            "~* &* +@all (~a* resetchannels db=2 -@all +get) (~b* resetchannels -@all +get)",
        ),
        (&["reset"], "resetchannels -@all"),
    ] {
        assert_eq!(shown(rules), ("+OK".to_owned(), line.to_owned()));
    }
    for (rule, why) in [
        ("db=", "Syntax error"),
        ("db=x", "Syntax error"),
        ("db=1,", "Syntax error"),
        ("db=,1", "Syntax error"),
        ("db=1-3", "Syntax error"),
        ("db=1x", "Syntax error"),
        ("db=-1", "The provided database ID is out of range"),
        ("db=2147483648", "The provided database ID is out of range"),
    ] {
        let (reply, line) = shown(&[rule]);
        assert_eq!(reply, format!("-ERR Error in ACL SETUSER modifier '{rule}': {why}"));
        assert_eq!(line, "resetchannels -@all");
    }
    shown(&["db=0,7", "(db=2 ~a* +get)"]);
    let user = own.admin.run("ACL GETUSER bob").to_string();
    assert!(user.contains("\"databases\", \"db=0,7\", \"selectors\", [["), "{user}");
    assert!(user.contains("\"databases\", \"db=2\"]"), "{user}");
}

#[test]
fn a_command_runs_in_databases_that_its_user_has() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* &* +@all db=0,1") else { return };
    ok(&mut bob, "SET a 1");
    ok(&mut bob, "SELECT 1");
    ok(&mut bob, "SELECT 0");
    for line in [
        "SELECT 2",
        "MOVE a 2",
        "COPY a b DB 2",
        "COPY a b REPLACE DB 2",
        "COPY a b DB 1 DB 2",
        "SWAPDB 0 2",
        "SWAPDB 2 0",
        "FLUSHALL",
    ] {
        assert_eq!(bob.run(line).to_string(), DENIED, "{line}");
    }
    // What is no database is refused for that.
    assert_eq!(bob.run("SELECT x").to_string(), "-ERR value is not an integer or out of range");
    assert_eq!(bob.run("SELECT 99").to_string(), "-ERR DB index is out of range");
    assert_eq!(bob.run("MOVE a 1").integer(), 1);
    ok(&mut bob, "SWAPDB 0 1");
    assert_eq!(bob.run("COPY a b DB 1").integer(), 1);
    allowed(&mut bob, "FLUSHDB");
    // In a script and in a transaction too.
    let reply = bob.run_args(&["EVAL", "redis.call('SELECT', '2') return 1", "0"]).to_string();
    assert!(reply.starts_with("-ERR ACL failure in script: No permissions to access database"), "{reply}");
    ok(&mut bob, "MULTI");
    assert_eq!(bob.run("SELECT 2").to_string(), DENIED);
    assert!(bob.run("EXEC").to_string().starts_with("-EXECABORT"));
    // All databases, by name.
    ok(&mut own.admin, "ACL SETUSER bob db=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15");
    ok(&mut bob, "FLUSHALL");
}

#[test]
fn a_connection_in_a_database_that_it_has_not_reaches_no_data() {
    let Some(mut own) = Own::start(&[]) else { return };
    ok(&mut own.admin, "SET a 1");
    let mut bob = own.user("bob", "~* &* +@all db=1");
    for line in [
        "GET a",
        "SET a 2",
        "DEL a",
        "EXISTS a",
        "KEYS *",
        "SCAN 0",
        "DBSIZE",
        "RANDOMKEY",
        "FLUSHDB",
        "WATCH a",
        "MOVE a 1",
        "COPY a b DB 1",
        "EVAL \"return redis.call('GET', 'a')\" 1 a",
        "SORT a",
        "HGETALL a",
        "BLPOP a 0",
        "CELL.SET a 1",
        "IDX.CREATE idx PREFIX 1 a FIELD f",
        "IDX.DROP idx",
        "IDX.RANGE idx -inf +inf",
        "HFIND a",
        "HCAS a f 1 2",
        "HPUT a FIELDS 1 f v",
        "CLAIM 1 idx SET 1 a b",
        "SWEEP idx BEFORE 1 SET 1 a b",
        "CELL.GET a",
        "CELL.LIST",
        "RUN.APPEND a key Started 1",
        "RUN.LIST",
        "REG.PUT a 1 2",
        "REG.SNAPSHOT",
        "SESSION.OPEN ID a",
        "SESSION.CALL a 1 SET a 2",
        "SESSION.LIST",
        "SESSION.RETRY 1",
    ] {
        assert_eq!(bob.run(line).to_string(), DENIED, "{line}");
    }
    // What has no database is as before.
    for line in ["PING", "ECHO a", "TIME", "INFO server", "PUBLISH a b", "CLIENT ID", "ACL WHOAMI", "COMMAND COUNT"] {
        allowed(&mut bob, line);
    }
    ok(&mut bob, "MULTI");
    denied(&mut bob, "GET a");
    assert!(bob.run("EXEC").to_string().starts_with("-EXECABORT"));
    ok(&mut bob, "TXN.BEGIN");
    denied(&mut bob, "GET a");
    allowed(&mut bob, "TXN.ROLLBACK");
    ok(&mut bob, "SELECT 1");
    ok(&mut bob, "SET a 2");
    assert_eq!(own.admin.run("GET a").text(), "1");
    // Each selector is enough by itself.
    ok(&mut own.admin, "ACL SETUSER bob (db=0 ~a +get)");
    denied(&mut bob, "SELECT 0");
    ok(&mut own.admin, "ACL SETUSER bob clearselectors (db=0 ~a +get +select)");
    ok(&mut bob, "SELECT 0");
    assert_eq!(bob.run("GET a").text(), "1");
    assert_eq!(bob.run("GET b").to_string(), "-NOPERM No permissions to access a key");
    denied(&mut bob, "SET a 1");
}

#[test]
fn a_database_that_is_taken_away_is_gone_at_once() {
    let Some((mut own, mut bob)) = Own::start_with_user("bob", "~* &* +@all db=0,1") else { return };
    ok(&mut bob, "MULTI");
    assert_eq!(bob.run("SET a 1").to_string(), "+QUEUED");
    let mut waiter = own.login("bob");
    own.wait_in(&mut waiter, "BLPOP list 0");
    let mut writer = own.login("bob");
    ok(&mut writer, "TXN.BEGIN");
    ok(&mut writer, "SET b 1");
    ok(&mut own.admin, "ACL SETUSER bob db=1");
    let reply = bob.run("EXEC").to_string();
    assert!(reply.contains("NOPERM") && reply.contains("No permissions to access database"), "{reply}");
    assert!(waiter.read().to_string().starts_with("-NOPERM"));
    assert_eq!(writer.read_until_killed(), Reply::Closed);
    assert_eq!(own.admin.run("EXISTS a b").integer(), 0);
    // It is logged as such.
    assert_eq!(bob.run("GET a").to_string(), DENIED);
    assert_eq!(bob.run("SELECT 5").to_string(), DENIED);
    let log = own.admin.run("ACL LOG 2").to_string();
    for part in ["\"reason\", \"database\"", "\"object\", \"5\"", "\"object\", \"GET\""] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(own.admin.run("INFO stats").text().contains("acl_access_denied_db:4"));
    let dry = own.admin.run("ACL DRYRUN bob SELECT 5");
    assert_eq!(dry.text(), "User bob has no permissions to access database 5");
    // One that is given closes nobody.
    ok(&mut bob, "SELECT 1");
    ok(&mut bob, "TXN.BEGIN");
    ok(&mut own.admin, "ACL SETUSER bob db=1,2");
    ok(&mut own.admin, "ACL SETUSER bob alldbs");
    ok(&mut bob, "SET c 1");
    allowed(&mut bob, "TXN.COMMIT");
}
