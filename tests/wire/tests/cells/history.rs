//! CELL.HISTORY, and CELL.GETV of past versions.

use wire::own::{check, run_all, start};
use wire::{Connection, Reply};

#[test]
fn versions_are_there_newest_first() {
    check(
        r#"
        CELL.HISTORY a                  => []
        CELL.SET a one                  => :1
        CELL.HISTORY a                  => [["one", :1, *]]
        CELL.CAS a 1 two                => :2
        CELL.SET a three                => :3
        CELL.HISTORY a                  => [["three", :3, *], ["two", :2, *], ["one", :1, *]]
        CELL.HISTORY a LIMIT 2          => [["three", :3, *], ["two", :2, *]]
        CELL.HISTORY a LIMIT 2 BEFORE 2 => [["one", :1, *]]
        CELL.HISTORY a before 3 limit 1 => [["two", :2, *]]
        CELL.HISTORY a BEFORE 1         => []
        CELL.HISTORY a BEFORE 9223372036854775807 LIMIT 1 => [["three", :3, *]]
        CELL.HISTORY a LIMIT 0          => []
        CELL.GETV a VERSION 2           => ["two", :2, *]
        CELL.GETV a VERSION 4           => (nil)
        CELL.GETV a AFTER 2             => ["three", :3, *]
        CELL.GETV a AFTER 3             => (nil)
        CELL.GETV a AFTER 0             => ["three", :3, *]
        CELL.GETV nosuch AFTER 0        => (nil)
        CELL.GETV nosuch VERSION 1      => (nil)
        CELL.GETV nosuch ASOF 1         => (nil)
        "#,
    );
}

#[test]
fn as_many_versions_are_kept_as_the_setting_says_at_a_write() {
    check(
        r#"
        CONFIG GET cell-max-versions    => ["cell-max-versions", "128"]
        # config cell-max-versions 2
        CELL.SET a 1                    => :1
        CELL.SET a 2                    => :2
        CELL.SET a 3                    => :3
        CELL.SET a 4                    => :4
        CELL.HISTORY a                  => [["4", :4, *], ["3", :3, *]]
        CELL.GETV a VERSION 2           => (nil)
        CELL.GETV a ASOF 1              => (nil)
        // What is there stays until the next write.
        # config cell-max-versions 1
        CELL.GETV a VERSION 3           => ["3", :3, *]
        CELL.SET a 5                    => :5
        CELL.HISTORY a                  => [["5", :5, *]]
        # config cell-max-versions 0
        CELL.SET a 6                    => :6
        CELL.SET a 7                    => :7
        CELL.HISTORY a                  => [["7", :7, *], ["6", :6, *], ["5", :5, *]]
        CONFIG SET cell-max-versions -1 => ~-ERR *
        "#,
    );
}

fn version(reply: &Reply) -> (String, i64, i64) {
    let items = reply.items();
    (items[0].text().to_owned(), items[1].integer(), items[2].integer())
}

fn versions(reply: &Reply) -> Vec<(String, i64, i64)> {
    reply.items().iter().map(version).collect()
}

fn write_many(connection: &mut Connection, name: &str, count: usize) {
    run_all(connection, (1..=count).map(|number| format!("CELL.SET {name} v{number}")));
}

#[test]
fn by_default_128_versions_are_kept() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    write_many(&mut connection, "a", 300);
    let all = versions(&connection.run("CELL.HISTORY a"));
    assert_eq!(all.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), (173..=300).rev().collect::<Vec<_>>());
    assert!(all.iter().all(|(value, number, _)| *value == format!("v{number}")));
    assert!(connection.run("CELL.GETV a VERSION 172").is_nil());
}

#[test]
fn pages_do_not_overlap_and_leave_nothing_out() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("CONFIG SET cell-max-versions 0");
    write_many(&mut connection, "a", 2_500);
    connection.run("CONFIG SET cell-max-versions 128");
    let all = versions(&connection.run("CELL.HISTORY a LIMIT 10000"));
    assert_eq!(all.len(), 2_500);
    assert_eq!(versions(&connection.run("CELL.HISTORY a")), all[..1000], "the default limit");
    for limit in [7, 100, 999] {
        let (mut found, mut before) = (Vec::new(), i64::MAX);
        loop {
            let page = versions(&connection.run(&format!("CELL.HISTORY a LIMIT {limit} BEFORE {before}")));
            let Some((_, last, _)) = page.last() else { break };
            before = *last;
            found.extend(page);
        }
        assert_eq!(found, all, "pages of {limit}");
    }
}

/// At the time of a version it is that version, in the future the newest, before the first none.
#[test]
fn as_of_a_time() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    write_many(&mut connection, "a", 100);
    let all = versions(&connection.run("CELL.HISTORY a"));
    for (at, (_, number, time_us)) in all.iter().enumerate() {
        let as_of = |connection: &mut Connection, us: i64| connection.run(&format!("CELL.GETV a ASOF {us}"));
        assert_eq!(version(&as_of(&mut connection, *time_us)).1, *number);
        match all.get(at + 1) {
            Some((_, before, _)) => assert_eq!(version(&as_of(&mut connection, time_us - 1)).1, *before),
            None => assert!(as_of(&mut connection, time_us - 1).is_nil()),
        }
    }
    assert_eq!(version(&connection.run(&format!("CELL.GETV a ASOF {}", i64::MAX))), all[0]);
    assert!(connection.run("CELL.GETV a ASOF 0").is_nil());
    assert!(all.windows(2).all(|two| two[0].2 > two[1].2), "each is later than the one before");
}

/// Commands of one transaction have one time; versions of one cell do not.
#[test]
fn versions_of_one_transaction_have_times_of_their_own() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.pipeline(&["MULTI", "CELL.SET a 1", "CELL.SET a 2", "CELL.SET a 3", "CELL.SET b 1", "EXEC"]);
    let (a, b) = (versions(&connection.run("CELL.HISTORY a")), versions(&connection.run("CELL.HISTORY b")));
    assert_eq!((a[0].2 - a[1].2, a[1].2 - a[2].2), (1, 1));
    assert_eq!(b[0].2, a[2].2);
}
