//! Sweepers of the configuration that have a user: they may do what it may do at each sweep, and no more.

use crate::process::{Dir, Holdfast};
use crate::support::{Own, eventually, ok};
use wire::Connection;

const CONFIG: &str = "
    [[index]]
    name = 'jobs'
    prefixes = ['job:']
    field = 'at'
    [[user]]
    name = 'sweeper'
    rules = 'on nopass ~job:* ~jobs &swept +sweep'
    [[sweeper]]
    index = 'jobs'
    every-ms = 5
    older-than-ms = 0
    where = { field = 'state', values = ['running'] }
    set = { state = 'pending' }
    publish = 'swept'
    user = 'sweeper'
";

fn start() -> Option<Own> {
    let dir = Dir::fresh();
    let server = Holdfast::start(&["--config", &dir.write("holdfast.toml", CONFIG)])?;
    let admin = server.connect();
    Some(Own { server, admin })
}

/// The line of the sweeper in INFO.
fn status(admin: &mut Connection) -> String {
    let info = admin.run("INFO sweepers");
    let line = info.text().lines().find_map(|line| line.strip_prefix("sweeper0:")).expect("there is one").to_owned();
    assert!(line.starts_with("index=jobs,db=0,user=sweeper,status="), "{line}");
    line
}

/// A number of that line.
fn number(status: &str, name: &str) -> u64 {
    let field = status.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    field.and_then(|field| field.parse().ok()).unwrap_or_else(|| panic!("{name} in {status}"))
}

fn put_job(own: &mut Own) {
    own.admin.run("HSET job:1 at 1 state running");
}

fn state(own: &mut Own) -> String {
    own.admin.run("HGET job:1 state").text().to_owned()
}

/// Waits for two sweeps that begin from now on, and checks that they have failed and changed nothing.
fn does_nothing(own: &mut Own, why: &str) {
    put_job(own);
    let before = number(&status(&mut own.admin), "sweeps");
    eventually("it has tried", || number(&status(&mut own.admin), "sweeps") >= before + 2);
    let line = status(&mut own.admin);
    assert!(line.contains("status=failing") && line.contains(why), "{line}");
    assert_eq!(state(own), "running");
}

fn sweeps(own: &mut Own) {
    put_job(own);
    eventually("it is swept", || state(own) == "pending");
    eventually("it says so", || status(&mut own.admin).contains("status=ok"));
}

#[test]
fn a_sweeper_has_the_rights_of_its_user_at_each_sweep() {
    let Some(mut own) = start() else { return };
    sweeps(&mut own);
    for (rules, why) in [
        ("-sweep", "User sweeper has no permissions to run the 'sweep' command"),
        ("+sweep resetkeys ~other:* ~jobs", "No permissions to access all keys of a prefix"),
        ("resetkeys ~job:* ~jobs resetchannels", "No permissions to access a channel"),
    ] {
        ok(&mut own.admin, &format!("ACL SETUSER sweeper {rules}"));
        does_nothing(&mut own, why);
    }
    // A right that is given counts at once too.
    ok(&mut own.admin, "ACL SETUSER sweeper &swept");
    sweeps(&mut own);
    // What it does is counted.
    let usage = own.admin.run("ACL USAGE sweeper");
    let fields = usage.items()[0].items();
    let ops = fields.iter().position(|field| matches!(field, wire::Reply::Bulk(name) if name == b"ops"));
    assert!(fields[ops.expect("it is there") + 1].integer() > 0, "{usage}");
}

#[test]
fn a_sweeper_without_its_user_does_nothing() {
    let Some(mut own) = start() else { return };
    sweeps(&mut own);
    ok(&mut own.admin, "ACL SETUSER sweeper off");
    does_nothing(&mut own, "error=its user sweeper is off");
    assert_eq!(own.admin.run("ACL DELUSER sweeper").integer(), 1);
    does_nothing(&mut own, "error=its user sweeper does not exist");
    ok(&mut own.admin, "ACL SETUSER sweeper on nopass ~* &* +sweep");
    sweeps(&mut own);
}

/// SWEEP and the commands of indexes ask for the rights of the client, as all do.
#[test]
fn a_client_sweeps_with_its_own_rights() {
    let Some(mut own) = Own::start(&[]) else { return };
    ok(&mut own.admin, "IDX.CREATE jobs PREFIX 1 job: FIELD at");
    let sweep = "SWEEP jobs BEFORE 9 SET 1 state pending";
    let mut bob = own.user("bob", "~job:1* ~jobs +sweep +idx.range");
    put_job(&mut own);
    for line in [sweep, "IDX.RANGE jobs -inf +inf", "IDX.DROP jobs", "IDX.CREATE more PREFIX 1 job: FIELD at"] {
        let reply = bob.run(line).to_string();
        assert!(reply.starts_with("-NOPERM"), "{line}: {reply}");
    }
    assert_eq!(state(&mut own), "running");
    own.set("bob", "~job:* ~jobs +sweep +idx.range");
    assert!(!bob.run(sweep).is_error());
    assert_eq!(state(&mut own), "pending");
}
