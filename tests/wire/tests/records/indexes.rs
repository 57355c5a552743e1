//! IDX.CREATE, IDX.DROP, IDX.LIST and IDX.INFO: indexes come, are told of and go.

use crate::support::{check, start};

#[test]
fn an_index_has_the_records_that_it_is_made_for() {
    check(
        r##"
        ! HSET job:1 at 5 state running
        ! HSET job:2 at 3 state done
        ! HSET job:3 at 4
        ! HSET run:1 at 1 state running
        ! HSET other:1 at 0
        ! HSET job:without state running
        // No record, whatever its name.
        ! SET job:text 5
        ! ZADD job:sorted 5 at
        ! IDX.CREATE all PREFIX 1 "" FIELD at
        ! IDX.CREATE jobs PREFIX 1 job: FIELD at
        // Options come in any order, and in small letters too.
        > idx.create both exclude state 2 done failed field at prefix 2 job: run:
        +OK
        ! IDX.CREATE running FIELD at ONLY state 1 running PREFIX 2 job: run:
        ! IDX.CREATE overlapping PREFIX 3 job: job:1 job: FIELD at
        // None of no values is none; all but none is all.
        ! IDX.CREATE none ONLY state 0 PREFIX 1 job: FIELD at
        ! IDX.CREATE everything EXCLUDE state 0 PREFIX 1 job: FIELD at
        // The field itself may be the condition.
        ! IDX.CREATE fives PREFIX 1 "" FIELD at ONLY at 1 5
        ZRANGE all 0 -1 WITHSCORES => ["other:1", "0", "run:1", "1", "job:2", "3", "job:3", "4", "job:1", "5"]
        ZRANGE jobs 0 -1 WITHSCORES => ["job:2", "3", "job:3", "4", "job:1", "5"]
        ZRANGE both 0 -1 WITHSCORES => ["run:1", "1", "job:3", "4", "job:1", "5"]
        ZRANGE running 0 -1 WITHSCORES => ["run:1", "1", "job:1", "5"]
        ZRANGE overlapping 0 -1 WITHSCORES => ["job:2", "3", "job:3", "4", "job:1", "5"]
        ZRANGE none 0 -1 WITHSCORES => []
        ZRANGE everything 0 -1 WITHSCORES => ["job:2", "3", "job:3", "4", "job:1", "5"]
        ZRANGE fives 0 -1 WITHSCORES => ["job:1", "5"]
        IDX.LIST => ["all", "jobs", "both", "running", "overlapping", "none", "everything", "fives"]
        "##,
    );
}

#[test]
fn an_index_tells_what_it_is() {
    check(
        r##"
        ! HSET job:1 at 5 state running
        ! IDX.CREATE plain PREFIX 1 "" FIELD at
        ! IDX.CREATE without PREFIX 2 job: run: FIELD at EXCLUDE state 2 done failed STAMP
        ! IDX.CREATE only PREFIX 1 job: FIELD at ONLY state 1 done
        ! IDX.CREATE none PREFIX 1 job: FIELD at ONLY state 0
        > IDX.INFO plain
        ["prefixes", [""], "field", "at", "only", (nil), "exclude", (nil), "stamp", :0, "entries", :1, "bytes", :1..]
        > IDX.INFO without
        ["prefixes", ["job:", "run:"], "field", "at", "only", (nil), "exclude", ["state", "done", "failed"], "stamp", :1,
         "entries", :1, "bytes", :1..]
        > IDX.INFO only
        ["prefixes", ["job:"], "field", "at", "only", ["state", "done"], "exclude", (nil), "stamp", :0, "entries", :0,
         "bytes", :0..]
        > IDX.INFO none
        ["prefixes", ["job:"], "field", "at", "only", ["state"], "exclude", (nil), "stamp", :0, "entries", :0, "bytes", :0..]
        ! HELLO 3
        > IDX.INFO without
        {"prefixes" => ["job:", "run:"], "field" => "at", "only" => _, "exclude" => ["state", "done", "failed"],
         "stamp" => :1, "entries" => :1, "bytes" => :1..}
        > IDX.INFO only
        {"prefixes" => ["job:"], "field" => "at", "only" => ["state", "done"], "exclude" => _, "stamp" => :0,
         "entries" => :0, "bytes" => :0..}
        IDX.LIST => ["plain", "without", "only", "none"]
        // Each database has its own records.
        ! SELECT 5
        > IDX.INFO plain
        {"prefixes" => [""], "field" => "at", "only" => _, "exclude" => _, "stamp" => :0, "entries" => :0, "bytes" => :0..}
        IDX.INFO nosuch => -ERR there is no index 'nosuch'
        IDX.INFO job:1 => -ERR there is no index 'job:1'
        IDX.INFO "\r\n\xff" => -ERR there is no index '\r\n\xff'
        "##,
    );
}

#[test]
fn an_index_that_is_dropped_is_gone_and_its_name_is_free() {
    check(
        r##"
        ! HSET job:1 at 5
        > IDX.DROP jobs
        :0
        ! IDX.CREATE jobs PREFIX 1 job: FIELD at
        ! IDX.CREATE others PREFIX 1 job: FIELD at
        ! IDX.DROP jobs
        > IDX.DROP jobs
        :0
        IDX.LIST => ["others"]
        TYPE jobs => +none
        ZCARD jobs => :0
        IDX.RANGE jobs 0 9 => -ERR there is no index 'jobs'
        IDX.INFO jobs => -ERR there is no index 'jobs'
        SWEEP jobs BEFORE 9 SET 1 a b => -ERR there is no index 'jobs'
        ! HSET job:2 at 6
        > ZRANGE others 0 -1
        ["job:1", "job:2"]
        ! SET jobs x
        IDX.CREATE jobs PREFIX 1 job: FIELD at => -ERR the name 'jobs' is taken by a key
        > GET jobs
        "x"
        ! DEL jobs
        ! IDX.CREATE jobs PREFIX 1 job: FIELD at
        ZRANGE jobs 0 -1 => ["job:1", "job:2"]
        // A key is no index, and stays.
        IDX.DROP job:1 => :0
        HGETALL job:1 => ["at", "5"]
        "##,
    );
}

#[test]
fn a_name_is_free_in_every_database_or_it_is_taken() {
    check(
        r##"
        ! SELECT 3
        ! SET text x
        ! HSET job:9 at 1
        ! IDX.CREATE jobs PREFIX 1 job: FIELD at
        > ZRANGE jobs 0 -1
        ["job:9"]
        ! SELECT 0
        ZRANGE jobs 0 -1 => []
        IDX.CREATE text PREFIX 1 job: FIELD at => -ERR the name 'text' is taken by a key
        IDX.CREATE jobs PREFIX 1 job: FIELD at => -ERR the name 'jobs' is taken by an index
        IDX.CREATE jobs PREFIX 1 other: FIELD other STAMP => -ERR the name 'jobs' is taken by an index
        IDX.LIST => ["jobs"]
        // One that has expired is none, whether or not anybody has noticed.
        ! DEBUG SET-ACTIVE-EXPIRE 0
        ! SET fading x PX 1
        # sleep 5ms
        ! IDX.CREATE fading PREFIX 1 job: FIELD at
        ! DEBUG SET-ACTIVE-EXPIRE 1
        IDX.LIST => ["jobs", "fading"]
        "##,
    );
}

#[test]
fn an_index_that_is_wrong_is_not_made() {
    check(
        r##"
        IDX.CREATE x PREFIX 1 x FOO at => ~-ERR unknown option 'FOO'. *
        IDX.CREATE x PREFIX 2 x FIELD at => ~-ERR unknown option 'at'. *
        IDX.CREATE x PREFIX 0 FIELD at STAMP => -ERR PREFIX must name at least one prefix; the empty one is all names
        > IDX.CREATE x PREFIX 9223372036854775807 y FIELD at
        ~-ERR PREFIX counts 9223372036854775807 items of 1, but 3 arguments follow. Usage: *
        > IDX.CREATE x PREFIX 1 a STAMP ONLY a 0
        ~-ERR missing: FIELD, which names the field that is the score. Usage: *
        > IDX.CREATE x FIELD at STAMP ONLY a 0
        ~-ERR missing: PREFIX, which says which records are in the index. Usage: *
        IDX.CREATE x PREFIX 1 a FIELD at ONLY s 1 a EXCLUDE s 1 b => -ERR ONLY or EXCLUDE is given twice
        IDX.CREATE x PREFIX 1 a FIELD at more => ~-ERR unknown option 'more'. *
        IDX.LIST => []
        TYPE x => +none
        ! HSET a1 b 1
        HGETALL a1 => ["b", "1"]
        "##,
    );
}

#[test]
fn names_fields_and_values_are_any_bytes() {
    check(
        r##"
        ! HSET "\xff\x00:1" "\r\n" 1 "" "\x80"
        ! HSET "\xff\x00:2" "\r\n" 2 "" x
        ! HSET "\xff\x01:3" "\r\n" 3 "" "\x80"
        ! IDX.CREATE "i\r\n\xfe" PREFIX 1 "\xff\x00" FIELD "\r\n" ONLY "" 1 "\x80"
        ! IDX.CREATE "" PREFIX 1 "\xff" FIELD "\r\n"
        IDX.LIST => ["i\r\n\xfe", ""]
        ZRANGE "i\r\n\xfe" 0 -1 WITHSCORES => ["\xff\x00:1", "1"]
        ZRANGE "" 0 -1 WITHSCORES => ["\xff\x00:1", "1", "\xff\x00:2", "2", "\xff\x01:3", "3"]
        > IDX.INFO "i\r\n\xfe"
        ["prefixes", ["\xff\x00"], "field", "\r\n", "only", ["", "\x80"], "exclude", (nil), "stamp", :0, "entries", :1, "bytes", :1..]
        IDX.RANGE "" 1 2 FIELDS 1 "" => [["\xff\x00:1", "1", ["", "\x80"]], ["\xff\x00:2", "2", ["", "x"]]]
        HFIND "\xff\x01" FILTER "" eq "\x80" FIELDS 1 "\r\n" => ["0", [["\xff\x01:3", ["\r\n", "3"]]]]
        > SWEEP "i\r\n\xfe" BEFORE 9 WHERE "" 1 "\x80" SET 2 "" "\x00" "\r\n" 7
        [["\xff\x00:1", "requeued"]]
        HGETALL "\xff\x00:1" => ["\r\n", "7", "", "\x00"]
        ZADD "i\r\n\xfe" 1 x => ~-ERR * is an index: it changes with its records, and no command changes or watches it
        IDX.CREATE "i\r\n\xfe" PREFIX 1 "" FIELD a => ~-ERR the name * is taken by an index
        ! IDX.DROP "i\r\n\xfe"
        ! IDX.DROP ""
        IDX.LIST => []
        "##,
    );
}

#[test]
fn a_stamped_record_has_the_time_of_its_last_write() {
    check(
        r##"
        ! HSET job:old state new
        ! IDX.CREATE jobs PREFIX 1 job: FIELD at EXCLUDE state 1 done STAMP
        // It stamps what is written from now on, and nothing before.
        > ZCARD jobs
        :0
        ! HSET job:1 state new
        HGET job:1 at => ~"1????????????"
        HSET job:1 at 5 => :0
        ZRANGE jobs 0 -1 WITHSCORES => ["job:1", "5"]
        HSET job:1 state running at 6 => :0
        ZSCORE jobs job:1 => "6"
        // Reading stamps nothing, nor does a command that changes nothing.
        HCAS job:1 state nosuch x => :0
        HSETNX job:1 state x => :0
        > HDEL job:1 nosuch
        :0
        ! EXPIRE job:1 100
        ZSCORE jobs job:1 => "6"
        HCAS job:1 state running stopped => :1
        HGET job:1 at => ~"1????????????"
        HSET job:1 at 5 => :0
        HINCRBY job:1 tries 1 => :1
        HGET job:1 at => ~"1????????????"
        HSET job:1 at 5 => :0
        HDEL job:1 tries => :1
        HGET job:1 at => ~"1????????????"
        HPUT job:1 REPLACE FIELDS 1 state new => :0
        HGET job:1 at => ~"1????????????"
        // Whoever deletes the field does not set it, and writes to the record.
        HDEL job:1 at => :1
        HGET job:1 at => ~"1????????????"
        HSET job:1 state done => :0
        HGET job:1 at => ~"1????????????"
        > ZCARD jobs
        :0
        ! HSET other:1 state new
        HGETALL other:1 => ["state", "new"]
        // The last field takes the record with it.
        ! HSET job:2 a 1 at 2
        HDEL job:2 a at => :2
        > EXISTS job:2
        :0
        ! MULTI
        ! HSET job:3 a 1
        EXEC => [:1]
        HGET job:3 at => ~"1????????????"
        EVAL "return redis.call('HSET', KEYS[1], 'a', 1)" 1 job:4 => :1
        > HGET job:4 at
        ~"1????????????"
        ! IDX.DROP jobs
        ! HSET job:5 a 1
        HGETALL job:5 => ["a", "1"]
        "##,
    );
}

/// Every write looks at every index: nobody makes the server slow with thousands of them.
#[test]
fn there_are_not_too_many() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let create = |number: usize| format!("IDX.CREATE many:{number} PREFIX 1 r: FIELD n");
    let before = connection.run("IDX.LIST").items().len();
    for number in before..64 {
        assert_eq!(connection.run(&create(number)).to_string(), "+OK");
    }
    let refused = "-ERR there are 64 indexes, and every write looks at each: drop one first";
    assert_eq!(connection.run(&create(64)).to_string(), refused);
    assert_eq!(connection.run("IDX.DROP many:63").integer(), 1);
    assert_eq!(connection.run(&create(64)).to_string(), "+OK");
    for number in before..=64 {
        connection.run(&format!("IDX.DROP many:{number}"));
    }
    assert_eq!(connection.run("IDX.LIST").items().len(), before);
}

/// Whether a write sets the stamped field itself is judged for the command, not for each of its changes.
#[test]
fn a_command_that_sets_the_stamped_field_is_not_stamped() {
    check(
        r##"
        ! IDX.CREATE st PREFIX 1 s: FIELD u STAMP
        ! HSET s:1 a 1 b 2 u 1
        HCAS s:1 IF 0 SET 1 u 5 DEL 1 b => :1
        > HGETALL s:1
        ["a", "1", "u", "5"]
        ! HPUT s:1 REPLACE FIELDS 2 u 6 q 1
        HGETALL s:1 => ~["q", "1", "u", "6"]
        SWEEP st BEFORE 7 RETRY tries 3 ELSE 1 u 9 SET 1 u 8 => [["s:1", "requeued"]]
        HGETALL s:1 => ~["q", "1", "u", "8", "tries", "1"]
        // The reply tells of the record as it is after the command.
        HCAS s:1 IF 1 u 8 DEL 1 q WITHCURRENT => [:1, [~"1????????????"]]
        HDEL s:1 tries => :1
        HGET s:1 u => ~"1????????????"
        "##,
    );
}

/// Of all sorted sets only an index can be empty.
#[test]
fn an_empty_index_reads_as_an_absent_sorted_set() {
    const READS: &str = "ZRANDMEMBER @; ZRANDMEMBER @ 5; ZRANDMEMBER @ -5 WITHSCORES; ZCARD @; ZRANGE @ 0 -1; \
        ZREVRANGE @ 0 -1 WITHSCORES; ZRANGEBYSCORE @ -inf +inf; ZRANGEBYLEX @ - +; ZLEXCOUNT @ - +; \
        ZCOUNT @ -inf +inf; ZSCORE @ job:1; ZMSCORE @ job:1; ZRANK @ job:1; ZSCAN @ 0; ZUNION 2 @ other; \
        ZINTERCARD 2 @ other; ZDIFF 2 @ other; ZRANGESTORE copy @ 0 -1; \
        EVAL \"return redis.call('ZRANDMEMBER', KEYS[1], 2)\" 1 @; MULTI; ZRANDMEMBER @; ZRANDMEMBER @ 3; EXEC";
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE none PREFIX 1 job: FIELD at");
    let mut read = |key: &str| connection.pipeline(&READS.replace('@', key).split("; ").collect::<Vec<_>>());
    assert_eq!(read("none"), read("absent"));
}

#[test]
fn an_index_is_made_if_it_is_absent() {
    check(
        r##"
        ! HSET job:1 at 5 state new
        > IDX.CREATE jobs IFABSENT PREFIX 2 job: run: FIELD at ONLY state 2 new 7 GROUP team HELD state 1 7 STAMP
        :1
        ZRANGE jobs 0 -1 => ["job:1"]
        > IDX.CREATE jobs IFABSENT PREFIX 2 job: run: FIELD at ONLY state 2 new 7 GROUP team HELD state 1 7 STAMP
        :0
        // Neither the order of options nor that of prefixes and values has a meaning.
        > idx.create jobs stamp field at held state 1 7 group team only state 3 7 new 7 prefix 2 run: job: ifabsent
        :0
        > IDX.CREATE jobs PREFIX 2 job: run: FIELD at ONLY state 2 new 7 GROUP team HELD state 1 7 STAMP
        -ERR the name 'jobs' is taken by an index
        // Another definition says what differs, and changes nothing.
        > IDX.CREATE jobs IFABSENT PREFIX 1 b: FIELD at ONLY state 2 new 7 GROUP team HELD state 1 7 STAMP
        -ERR the index 'jobs' has another definition: it has PREFIX 2 'job:' 'run:', not PREFIX 1 'b:'
        > IDX.CREATE jobs IFABSENT PREFIX 2 job: run: FIELD due EXCLUDE state 2 new 7
        -ERR the index 'jobs' has another definition: it has FIELD 'at', not FIELD 'due'; it has ONLY 'state' 2 'new' '7', not EXCLUDE 'state' 2 'new' '7'; it has GROUP 'team', not no GROUP; it has HELD 'state' 1 '7', not no HELD; it has STAMP, not no STAMP
        > IDX.CREATE jobs IFABSENT PREFIX 2 job: run: FIELD at ONLY state 1 new GROUP user HELD status 1 7 STAMP
        -ERR the index 'jobs' has another definition: it has ONLY 'state' 2 'new' '7', not ONLY 'state' 1 'new'; it has GROUP 'team', not GROUP 'user'; it has HELD 'state' 1 '7', not HELD 'status' 1 '7'
        IDX.LIST => ["jobs"]
        // A key of the name is in the way as ever.
        > IDX.CREATE job:1 IFABSENT PREFIX 1 job: FIELD at
        -ERR the name 'job:1' is taken by a key
        ! IDX.DROP jobs
        IDX.CREATE jobs IFABSENT PREFIX 1 b: FIELD at => :1
        "##,
    );
}

#[test]
fn a_long_definition_is_told_in_part() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let prefixes =
        |last: &str| (0..99).map(|n| format!("p{n}:")).chain([last.to_owned()]).collect::<Vec<_>>().join(" ");
    let create = |last: &str| format!("IDX.CREATE i IFABSENT PREFIX 100 {} FIELD {}", prefixes(last), "f".repeat(500));
    assert_eq!(connection.run(&create("a:")).integer(), 1);
    assert_eq!(connection.run(&create("a:")).integer(), 0);
    assert_eq!(
        connection.run(&create("b:")).to_string(),
        "-ERR the index 'i' has another definition: it has PREFIX 100 'a:' 'p0:' 'p1:' 'p2:' 'p3:' 'p4:' 'p5:' 'p6:' ..., \
         not PREFIX 100 'b:' 'p0:' 'p1:' 'p2:' 'p3:' 'p4:' 'p5:' 'p6:' ..."
    );
    let other = connection.run("IDX.CREATE i IFABSENT PREFIX 1 a: FIELD f").to_string();
    assert!(other.len() < 400 && other.contains(&format!("FIELD '{}...', not FIELD 'f'", "f".repeat(64))), "{other}");
}

#[test]
fn an_index_is_made_if_it_is_absent_in_transactions_and_scripts() {
    check(
        r##"
        ! HSET job:1 at 5
        ! MULTI
        ! IDX.CREATE jobs IFABSENT PREFIX 1 job: FIELD at
        ! IDX.CREATE jobs IFABSENT PREFIX 1 job: FIELD at
        ! IDX.CREATE jobs IFABSENT PREFIX 1 run: FIELD at
        ! ZCARD jobs
        > EXEC
        [:1, :0, -"ERR the index 'jobs' has another definition: it has PREFIX 1 'job:', not PREFIX 1 'run:'", :1]
        EVAL "return redis.call('IDX.CREATE', 'jobs', 'IFABSENT', 'PREFIX', 1, 'job:', 'FIELD', 'at')" 0 => :0
        EVAL "return redis.call('IDX.CREATE', 'runs', 'IFABSENT', 'PREFIX', 1, 'run:', 'FIELD', 'at')" 0 => :1
        IDX.LIST => ["jobs", "runs"]
        "##,
    );
}
