//! Groups of an index and their limits: what is counted, what CLAIM may take, what is refused, and what a restart keeps.

use wire::{Connection, Server};

use crate::support::{Home, check};

const QUEUE: &str =
    "IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 1 running";

#[test]
fn records_are_counted_by_group_with_every_write() {
    check(
        r##"
        ! HSET job:0 at 7 state running tenant a
        ! IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 2 running paused
        > IDX.GROUPS due
        ["0", [["a", ["records", :1, "held", :1, "first_score", "7", "allowed_at", :0, "limits", []]]]]
        ! HSET job:1 at 5 state pending tenant a
        // Held, and not in the index.
        ! HSET job:2 state paused tenant b
        // The group of the empty name.
        ! HSET job:3 at 9 state pending
        > IDX.GROUPS due
        ["0", [["a", ["records", :2, "held", :1, "first_score", "5", "allowed_at", :0, "limits", []]],
               ["b", ["records", :0, "held", :1, "first_score", (nil), "allowed_at", :0, "limits", []]],
               ["", ["records", :1, "held", :0, "first_score", "9", "allowed_at", :0, "limits", []]]]]
        > IDX.INFO due
        ["prefixes", ["job:"], "field", "at", "only", ["state", "pending", "running"], "exclude", (nil), "stamp", :0,
         "group", "tenant", "held", ["state", "running", "paused"], "groups", :3, "entries", :3, "bytes", :1..]
        ! RENAME job:2 gone
        ! HSET job:3 tenant a
        ! DEL job:0
        > IDX.GROUPS due
        ["0", [["a", ["records", :2, "held", :0, "first_score", "5", "allowed_at", :0, "limits", []]]]]
        ! SWAPDB 0 1
        > IDX.GROUPS due
        ["0", []]
        ! SWAPDB 0 1
        ! PEXPIRE job:1 1
        # eventually
        > IDX.GROUPS due
        ["0", [["a", ["records", :1, "held", :0, "first_score", "9", "allowed_at", :0, "limits", []]]]]
        ! MULTI
        ! HSET job:4 at 1 state running tenant c
        ! IDX.GROUPS due LIMIT 1
        EXEC => [:3, [~"*", [["a", *]]]]
        > IDX.GROUPS due CURSOR 1
        ["0", [["c", ["records", :1, "held", :1, "first_score", "1", "allowed_at", :0, "limits", []]]]]
        ! FLUSHDB
        IDX.GROUPS due => ["0", []]
        "##,
    );
}

#[test]
fn a_cap_holds_claims_back_and_nothing_else() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 1 running
        ! HSET job:1 at 1 state pending tenant a
        ! HSET job:2 at 2 state pending tenant a
        ! HSET job:3 at 3 state pending tenant b
        ! IDX.LIMIT due EACH HELD 1
        CLAIM 1 due COUNT 10 SET 2 state running at 100 KEYS => ["job:1", "job:3"]
        CLAIM 1 due MAX 50 SET 2 state running at 100 KEYS => []
        // A lease that has run out is taken again: nothing more is held.
        CLAIM 1 due COUNT 10 SET 2 state running at 200 KEYS => ["job:1", "job:3"]
        // Other writes are never refused.
        > HSET job:2 state running
        :0
        ! IDX.LIMIT due GROUP a HELD 2
        ! HSET job:4 at 4 state pending tenant a
        CLAIM 1 due MAX 50 SET 2 state running at 100 KEYS => ["job:2"]
        HSET job:1 state done => :0
        CLAIM 1 due MAX 50 SET 2 state running at 100 KEYS => ["job:4"]
        // A claim that holds nothing more needs no room.
        ! HSET job:5 at 5 state pending tenant a
        > CLAIM 1 due MAX 50 SET 1 at 60 KEYS
        ["job:5"]
        ! IDX.LIMIT due GROUP a HELD NONE
        > CLAIM 1 due MAX 70 SET 2 state running at 100 KEYS
        ["job:5"]
        ! IDX.LIMIT due GROUP a HELD DEFAULT
        ! IDX.LIMIT due ALL HELD 0
        ! HSET job:6 at 1 state pending tenant z
        CLAIM 1 due MAX 50 SET 2 state running at 100 KEYS => []
        > EVAL "return redis.call('CLAIM', 1, 'due', 'MAX', 50, 'SET', 2, 'state', 'running', 'at', 100, 'KEYS')" 0
        []
        ! IDX.LIMIT due ALL RESET
        > EVAL "return redis.call('CLAIM', 1, 'due', 'MAX', 50, 'SET', 2, 'state', 'running', 'at', 100, 'KEYS')" 0
        ["job:6"]
        "##,
    );
}

#[test]
fn groups_take_turns_or_give_by_score() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at EXCLUDE state 1 taken GROUP tenant
        ! EVAL "for i = 1, 20 do redis.call('HSET', 'job:a' .. i, 'at', i, 'tenant', 'a') redis.call('HSET', 'job:b' .. i, 'at', 100 + i, 'tenant', 'b') end" 0
        CLAIM 1 due COUNT 4 SET 1 state taken KEYS => ["job:a1", "job:b1", "job:a2", "job:b2"]
        > CLAIM 1 due COUNT 3 ORDER score SET 1 state taken KEYS
        ["job:a3", "job:a4", "job:a5"]
        ! IDX.LIMIT due GROUP b WEIGHT 3
        > CLAIM 1 due COUNT 8 WHERE tenant 1 b ORDER fair SET 1 state taken KEYS
        ["job:b3", "job:b4", "job:b5", "job:b6", "job:b7", "job:b8", "job:b9", "job:b10"]
        CLAIM 1 due COUNT 2 MIN 110 ORDER score SET 1 state taken KEYS => ["job:b11", "job:b12"]
        > CLAIM 1 due COUNT 5 MAX (8 SET 1 state taken KEYS
        ["job:a6", "job:a7"]
        ! IDX.LIMIT due GROUP a PAUSE yes
        > CLAIM 1 due SET 1 state taken KEYS
        ["job:b13"]
        ! IDX.LIMIT due EACH PAUSE yes
        > CLAIM 1 due SET 1 state taken KEYS
        []
        ! IDX.LIMIT due GROUP a PAUSE no
        CLAIM 1 due SET 1 state taken KEYS => ["job:a8"]
        // Without groups the order has no meaning.
        ! IDX.CREATE plain PREFIX 1 job: FIELD at
        CLAIM 1 plain ORDER fair SET 1 at 900 KEYS => ["job:a1"]
        "##,
    );
}

#[test]
fn rates_bound_takes_also_of_an_index_without_groups() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at GROUP tenant
        ! IDX.CREATE plain PREFIX 1 job: FIELD at
        ! EVAL "for i = 1, 9 do redis.call('HSET', 'job:' .. i, 'at', i, 'tenant', 'a') end" 0
        ! IDX.LIMIT due EACH RATE 1 100000000 BURST 2
        CLAIM 1 due COUNT 5 SET 1 at 50 KEYS => ["job:1", "job:2"]
        CLAIM 1 due SET 1 at 50 KEYS => []
        > IDX.GROUPS due
        ["0", [["a", ["records", :9, "held", :0, "first_score", "3", "allowed_at", :1000000000000..,
                      "limits", ["rate", [:1, :100000000, :2]]]]]]
        > CLAIM 1 plain SET 1 at 50 KEYS
        ["job:3"]
        ! IDX.LIMIT plain ALL RATE 1 100000000
        CLAIM 1 plain COUNT 3 SET 1 at 50 KEYS => ["job:4"]
        > CLAIM 1 plain SET 1 at 50 KEYS
        []
        ! MULTI
        ! CLAIM 1 plain SET 1 at 50 KEYS
        ! CLAIM 1 due SET 1 at 50 KEYS
        > EXEC
        [[], []]
        ! FLUSHALL
        ! HSET job:1 at 1 tenant a
        > CLAIM 2 due plain SET 1 at 50 KEYS
        []
        ! IDX.LIMIT plain RESET
        > CLAIM 1 plain SET 1 at 50 KEYS
        ["job:1"]
        ! IDX.DROP due
        ! IDX.CREATE due PREFIX 1 job: FIELD at GROUP tenant
        IDX.LIMIT due => []
        CLAIM 1 due SET 1 at 50 KEYS => ["job:1"]
        "##,
    );
}

/// Its field of the group has expired: it is in another group than before, whose rate counts.
#[test]
fn a_record_may_leave_its_group_as_it_is_taken() {
    check(
        r##"
        ! DEBUG SET-ACTIVE-EXPIRE 0
        ! IDX.CREATE due PREFIX 1 job: FIELD at GROUP tenant
        ! IDX.LIMIT due EACH RATE 3 100000000
        ! EVAL "for i = 1, 40 do redis.call('HSET', 'job:' .. i, 'at', 1, 'tenant', 'g' .. i) redis.call('HPEXPIRE', 'job:' .. i, 1, 'FIELDS', 1, 'tenant') end" 0
        # sleep 5ms
        CLAIM 1 due SET 2 at 9 state taken COUNT 100 KEYS => [~"job:*", ~"job:*", ~"job:*"]
        CLAIM 1 due SET 2 at 9 state taken COUNT 100 KEYS => []
        "##,
    );
}

#[test]
fn limits_are_told_and_refused() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at GROUP tenant HELD state 1 running
        ! IDX.CREATE plain PREFIX 1 job: FIELD at
        ! IDX.LIMIT due ALL HELD 100 RATE 5 1000
        ! IDX.LIMIT due EACH WEIGHT 0.5 PAUSE no HELD NONE
        ! IDX.LIMIT due GROUP "a b" RATE 5 1000 BURST 9 HELD 3
        ! IDX.LIMIT due GROUP "a b" RATE NONE
        > IDX.LIMIT due
        [["scope", "all", "held", :100, "rate", [:5, :1000, :5]],
         ["scope", "each", "held", "none", "weight", "0.5", "pause", "no"],
         ["scope", "group", "group", "a b", "held", :3, "rate", "none"]]
        ! IDX.LIMIT due GROUP "a b" RESET
        ! IDX.LIMIT due GROUP c PAUSE yes
        ! IDX.LIMIT due RESET
        > IDX.LIMIT due
        []
        IDX.LIMIT none => -ERR there is no index 'none'
        IDX.LIMIT due EACH => -ERR nothing is set: send HELD, RATE, WEIGHT, PAUSE or RESET
        IDX.LIMIT due HELD 1 => -ERR limits are for GROUP g, for EACH group, or for ALL
        IDX.LIMIT due EACH HELD 1 RESET => -ERR RESET takes everything back: nothing can be set with it
        IDX.LIMIT due EACH ALL HELD 1 => -ERR GROUP, EACH or ALL is given twice
        IDX.LIMIT due EACH HELD -1 => -ERR the maximum behind HELD must be a whole number not below 0, not '-1'
        > IDX.LIMIT due EACH RATE 0 5
        -ERR the number behind RATE must be a whole number from 1 to 1000000000, not '0'
        IDX.LIMIT due EACH RATE 5 => ~-ERR missing: the milliseconds behind RATE. Usage: *
        IDX.LIMIT due EACH BURST 5 => -ERR BURST has no meaning without the numbers of RATE
        IDX.LIMIT due EACH WEIGHT 0 => -ERR WEIGHT must be a number from 0.01 to 1000, not '0'
        IDX.LIMIT due EACH WEIGHT nan => -ERR WEIGHT must be a number from 0.01 to 1000, not 'nan'
        // Regression: a weight was rounded before it was checked.
        IDX.LIMIT due EACH WEIGHT 1000.0001 => -ERR WEIGHT must be a number from 0.01 to 1000, not '1000.0001'
        IDX.LIMIT due EACH WEIGHT 0.0099 => -ERR WEIGHT must be a number from 0.01 to 1000, not '0.0099'
        IDX.LIMIT due ALL WEIGHT 2 => -ERR WEIGHT is for groups, not for ALL
        IDX.LIMIT due EACH PAUSE maybe => ~-ERR unknown option 'maybe'. *
        IDX.LIMIT plain EACH PAUSE yes => -ERR the index 'plain' has no groups: it was created without GROUP
        IDX.LIMIT plain GROUP g PAUSE yes => -ERR the index 'plain' has no groups: it was created without GROUP
        IDX.LIMIT plain ALL HELD 5 => -ERR the index 'plain' does not know what is held: it was created without HELD
        CLAIM 1 due SET 1 tenant b => -ERR the field 'tenant' is that of the group, which CLAIM does not change
        // Regression: it could come into a group whose cap is reached.
        > CLAIM 1 due SET 1 state running COUNTER tries UPTO 1 ELSE 2 state running tenant b
        -ERR the field 'tenant' is that of the group, which CLAIM does not change
        CLAIM 1 due SET 1 at 5 COUNTER state => -ERR the field 'state' says what is held, and cannot be counted
        CLAIM 1 due SET 1 at 5 ORDER last => ~-ERR unknown option 'last'. *
        IDX.GROUPS due CURSOR x => ~-ERR the cursor behind CURSOR must be a whole number*
        IDX.GROUPS plain => ["0", []]
        "##,
    );
}

#[test]
fn waiting_claims_are_served_when_a_limit_allows_it() {
    check(
        r##"
        ! IDX.CREATE due PREFIX 1 job: FIELD at ONLY state 2 pending running GROUP tenant HELD state 1 running
        ! IDX.LIMIT due EACH HELD 1
        ! HSET job:1 at 1 state running tenant a
        ! HSET job:2 at 2 state pending tenant a
        > CLAIM 1 due MIN 2 MAX NOW SET 2 state running at never BLOCK 0 KEYS
        # until blocked_clients:1
        // Room in the group.
        2> HSET job:1 state done
        :0
        > 
        ["job:2"]
        > CLAIM 1 due MAX NOW SET 2 state running at never BLOCK 0 KEYS
        # until blocked_clients:1
        2! HSET job:3 at 3 state pending tenant a
        2! DEL job:2
        > 
        ["job:3"]
        // A limit that changes.
        > CLAIM 1 due MAX NOW SET 2 state running at never BLOCK 0 KEYS
        # until blocked_clients:1
        2! HSET job:4 at 3 state pending tenant a
        2! IDX.LIMIT due GROUP a HELD 2
        > 
        ["job:4"]
        // A pause that ends.
        2! IDX.LIMIT due ALL PAUSE yes
        2! HSET job:5 at 3 state pending tenant b
        > CLAIM 1 due MAX NOW SET 2 state running at never BLOCK 0 KEYS
        # until blocked_clients:1
        2! IDX.LIMIT due ALL PAUSE no
        > 
        ["job:5"]
        // A rate that allows it again.
        2! IDX.LIMIT due GROUP c RATE 1 50 HELD NONE
        2! HSET job:6 at 3 state pending tenant c
        2! HSET job:7 at 4 state pending tenant c
        CLAIM 1 due MAX NOW SET 2 state running at never BLOCK 0 KEYS => ["job:6"]
        CLAIM 1 due MAX NOW SET 2 state running at never BLOCK 0 KEYS => ["job:7"]
        // A record that comes into an empty group whose rate is used up.
        2! IDX.LIMIT due GROUP f RATE 1 200 HELD NONE
        2! HSET job:20 at 3 state pending tenant f
        > CLAIM 1 due MAX NOW SET 2 state running at never BLOCK 0 KEYS
        ["job:20"]
        > CLAIM 1 due MAX NOW SET 2 state running at never BLOCK 0 KEYS
        # until blocked_clients:1
        2! HSET job:21 at 3 state pending tenant f
        > 
        ["job:21"]
        // With a condition, too.
        2! HSET job:8 at 3 state pending tenant c kind x
        2! HSET job:9 at 3 state pending tenant d kind y
        > CLAIM 1 due MAX NOW WHERE kind 1 x SET 2 state running at never BLOCK 0 KEYS
        ["job:8"]
        // A record that comes while the rate is used up.
        > CLAIM 1 due MAX NOW WHERE kind 1 late SET 2 state running at never BLOCK 0 KEYS
        # until blocked_clients:1
        2! IDX.LIMIT due GROUP e RATE 1 300 HELD NONE
        2! HSET job:10 at 3 state pending tenant e kind z
        2> CLAIM 1 due MAX NOW WHERE kind 1 z SET 2 state running at never BLOCK 1000 KEYS
        ["job:10"]
        2! HSET job:11 at 3 state pending tenant e kind late
        > 
        ["job:11"]
        "##,
    );
}

#[test]
fn counts_limits_and_rates_outlive_kill_9() {
    let Some(home) = Home::fresh() else { return };
    let mut server = home.start();
    let mut run = asking(&server);
    assert_eq!(run(QUEUE), "+OK");
    assert_eq!(run("IDX.LIMIT due GROUP a RATE 1 100000000 HELD 5"), "+OK");
    assert_eq!(run("IDX.LIMIT due ALL HELD 7"), "+OK");
    for job in 0..20 {
        run(&format!("HSET job:{job} at {job} state pending tenant {}", if job % 2 == 0 { "a" } else { "b" }));
    }
    let claim = "CLAIM 1 due MAX NOW COUNT 5 SET 2 state running at 9999999999999 KEYS";
    assert_eq!(run(claim), r#"["job:0", "job:1", "job:3", "job:5", "job:7"]"#);
    let before = (groups(&server), run("IDX.LIMIT due"));
    for has_snapshot in [false, true] {
        if has_snapshot {
            assert_eq!(asking(&server)("SAVE"), "+OK");
        }
        server.kill();
        server = home.start();
        let mut run = asking(&server);
        assert_eq!((groups(&server), run("IDX.LIMIT due")), before, "with a snapshot: {has_snapshot}");
        assert_eq!(run("CLAIM 1 due WHERE tenant 1 a SET 1 state running KEYS"), "[]", "the rate is used up");
    }
    assert_eq!(asking(&server)(claim), r#"["job:9", "job:11"]"#, "seven are held");
}

/// All groups, in the order of their names.
fn groups(server: &Server) -> Vec<String> {
    let mut connection = Connection::open(server.address()).expect("it listens");
    let reply = connection.run("IDX.GROUPS due");
    let mut groups: Vec<String> = reply.items()[1].items().iter().map(ToString::to_string).collect();
    groups.sort();
    groups
}

fn asking(server: &Server) -> impl FnMut(&str) -> String + use<> {
    let mut connection = Connection::open(server.address()).expect("it listens");
    move |line| connection.run(line).to_string()
}

#[test]
fn very_many_limits_are_taken_back_and_do_not_come_again() {
    let Some(home) = Home::fresh() else { return };
    let mut server = home.start();
    let mut run = asking(&server);
    assert_eq!(run(QUEUE), "+OK");
    for group in 0..500 {
        assert_eq!(run(&format!("IDX.LIMIT due GROUP g{group} PAUSE yes RATE 1 1000")), "+OK");
        run(&format!("HSET job:{group} at 1 state pending tenant g{group}"));
    }
    assert_eq!(run("IDX.LIMIT due EACH HELD 1"), "+OK");
    // Listed in steps, in a transaction too: that for each, then groups by their names.
    let each = r#"["scope", "each", "held", :1]"#.to_owned();
    let mut names: Vec<String> = (0..500).map(|group| format!("g{group}")).collect();
    names.sort();
    let of_group =
        |name: &String| format!(r#"["scope", "group", "group", "{name}", "rate", [:1, :1000, :1], "pause", "yes"]"#);
    let all = format!("[{}]", [each].into_iter().chain(names.iter().map(of_group)).collect::<Vec<_>>().join(", "));
    assert_eq!(run("IDX.LIMIT due"), all);
    assert_eq!((run("MULTI"), run("IDX.LIMIT due")), ("+OK".into(), "+QUEUED".into()));
    assert_eq!(run("EXEC"), format!("[{all}]"));
    assert_eq!(run("CLAIM 1 due MAX NOW SET 1 state running KEYS"), "[]");
    assert_eq!(run("IDX.LIMIT due RESET"), "+OK");
    assert_eq!(run("IDX.LIMIT due"), "[]");
    assert_eq!(run("CLAIM 1 due MAX NOW COUNT 1000 SET 1 state running KEYS").matches("job:").count(), 500);
    // In a transaction at once.
    assert_eq!(run("IDX.LIMIT due GROUP g1 PAUSE yes"), "+OK");
    assert_eq!(run("MULTI"), "+OK");
    assert_eq!(run("IDX.LIMIT due RESET"), "+QUEUED");
    assert_eq!(run("IDX.LIMIT due"), "+QUEUED");
    assert_eq!(run("EXEC"), "[+OK, []]");
    server.kill();
    server = home.start();
    assert_eq!(asking(&server)("IDX.LIMIT due"), "[]");
}
