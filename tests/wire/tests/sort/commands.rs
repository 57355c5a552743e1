//! SORT and SORT_RO.

use wire::check;

#[test]
fn by_numbers_and_texts() {
    check(
        r#"
        RPUSH l 3 1 2 10 -5 1.5 => :6
        SORT l => ["-5", "1", "1.5", "2", "3", "10"]
        SORT l DESC => ["10", "3", "2", "1.5", "1", "-5"]
        SORT l ALPHA => ["-5", "1", "1.5", "10", "2", "3"]
        SORT l ALPHA DESC => ["3", "2", "10", "1.5", "1", "-5"]
        SORT l ASC => ["-5", "1", "1.5", "2", "3", "10"]
        SORT_RO l => ["-5", "1", "1.5", "2", "3", "10"]
        SORT l LIMIT 1 2 => ["1", "1.5"]
        SORT l LIMIT 0 0 => []
        SORT l LIMIT -5 2 => ["-5", "1"]
        SORT l LIMIT 2 -1 => ["1.5", "2", "3", "10"]
        SORT l LIMIT 100 2 => []
        SORT l LIMIT 5 100 DESC => ["-5"]
        SORT l LIMIT 0 9223372036854775807 => ["-5", "1", "1.5", "2", "3", "10"]
        SORT none => []
        SORT none BY w_* GET x_* => []
        SADD s 3 1 2 10 -5 1.5 => :6
        SORT s => ["-5", "1", "1.5", "2", "3", "10"]
        SORT s DESC LIMIT 0 2 => ["10", "3"]
        SORT s ALPHA => ["-5", "1", "1.5", "10", "2", "3"]
        ZADD z 1 3 2 1 3 2 4 10 => :4
        SORT z => ["1", "2", "3", "10"]
        SORT z DESC => ["10", "3", "2", "1"]
        SORT z ALPHA => ["1", "10", "2", "3"]
        RPUSH t b a c "a\x00b" "" B => :6
        SORT t ALPHA => ["", "B", "a", "a\x00b", "b", "c"]
        SORT t ALPHA DESC => ["c", "b", "a", "a\x00b", "B", ""]
        HELLO 3 => *
        SORT s => ["-5", "1", "1.5", "2", "3", "10"]
        "#,
    );
}

#[test]
fn what_numbers_are() {
    check(
        r#"
        RPUSH l "" " 7" 0x10 1e2 inf -inf 5 => :7
        SORT l => ["-inf", "", "5", " 7", "0x10", "1e2", "inf"]
        RPUSH bad 1 x => :2
        SORT bad => -ERR One or more scores can't be converted into double
        SORT bad LIMIT 0 0 => -ERR One or more scores can't be converted into double
        SORT bad BY nosort => ["1", "x"]
        SORT bad BY w_* => ["1", "x"]
        SORT bad ALPHA => ["1", "x"]
        DEL bad => :1
        RPUSH bad nan => :1
        SORT bad => -ERR One or more scores can't be converted into double
        DEL bad => :1
        RPUSH bad "1 " => :1
        SORT bad => -ERR One or more scores can't be converted into double
        DEL bad => :1
        RPUSH bad "1\x00junk" 0 => :2
        SORT bad => ["0", "1\x00junk"]
        SORT bad STORE d => :2
        EXISTS d => :1
        "#,
    );
}

#[test]
fn by_patterns() {
    check(
        r#"
        RPUSH l 1 2 3 4 => :4
        MSET w_1 40 w_2 30 w_3 20 w_4 10 => +OK
        SORT l BY w_* => ["4", "3", "2", "1"]
        SORT l BY w_* DESC => ["1", "2", "3", "4"]
        SORT l BY w_* LIMIT 1 2 => ["3", "2"]
        SORT l BY w_* LIMIT 0 3 DESC => ["1", "2", "3"]
        DEL w_3 => :1
        SORT l BY w_* => ["3", "4", "2", "1"]
        SET w_3 x => +OK
        SORT l BY w_* => -ERR One or more scores can't be converted into double
        SORT l BY w_* ALPHA => ["4", "2", "1", "3"]
        SORT l BY w_* ALPHA DESC => ["3", "1", "2", "4"]
        DEL w_3 => :1
        SORT l BY w_* ALPHA => ["3", "4", "2", "1"]
        HSET h_1 n 4 t d => :2
        HSET h_2 n 3 t c => :2
        HSET h_3 n 2 t b => :2
        HSET h_4 n 1 t a => :2
        SORT l BY h_*->n => ["4", "3", "2", "1"]
        SORT l BY h_*->t ALPHA => ["4", "3", "2", "1"]
        SORT l BY h_*->nosuch => ["1", "2", "3", "4"]
        SORT l BY h_* => ["1", "2", "3", "4"]
        SORT l BY w_*->n => ["1", "2", "3", "4"]
        SORT l BY h_*-> => ["1", "2", "3", "4"]
        SORT l BY * ALPHA => ["1", "2", "3", "4"]
        SET pre1post 9 => +OK
        SORT l BY pre*post => ["2", "3", "4", "1"]
        LPUSH w_2l x => :1
        SORT l BY w_*l => ["1", "2", "3", "4"]
        MSET e_1 1 e_2 1 e_3 1 e_4 1 => +OK
        SORT l BY e_* DESC => ["4", "3", "2", "1"]
        SORT l BY e_* LIMIT 0 2 => ["1", "2"]
        "#,
    );
}

#[test]
fn getting_others() {
    check(
        r#"
        RPUSH l 1 2 3 => :3
        MSET w_1 c w_2 b w_3 a o_1 one o_3 three => +OK
        SORT l GET o_* => ["one", (nil), "three"]
        > SORT l GET # GET o_* GET nothing GET w_*
        ["1", "one", (nil), "c", "2", (nil), (nil), "b", "3", "three", (nil), "a"]
        SORT l BY w_* ALPHA GET # GET w_* => ["3", "a", "2", "b", "1", "c"]
        SORT l GET # => ["1", "2", "3"]
        SORT l GET ## => [(nil), (nil), (nil)]
        HSET h_1 f v1 => :1
        HSET h_2 f v2 => :1
        SORT l GET h_*->f GET h_*->nosuch DESC => [(nil), (nil), "v2", (nil), "v1", (nil)]
        SORT l GET h_* => [(nil), (nil), (nil)]
        SORT l GET l => [(nil), (nil), (nil)]
        SET "o_" empty => +OK
        RPUSH m "" 1 => :2
        SORT m ALPHA GET o_* => ["empty", "one"]
        HELLO 3 => *
        SORT l GET # GET o_* => ["1", "one", "2", _, "3", "three"]
        "#,
    );
}

#[test]
fn no_order() {
    check(
        r#"
        RPUSH l c a d b => :4
        SORT l BY nosort => ["c", "a", "d", "b"]
        SORT l BY nosort DESC => ["b", "d", "a", "c"]
        SORT l BY nosort LIMIT 1 2 => ["a", "d"]
        SORT l BY nosort DESC LIMIT 1 2 => ["d", "a"]
        SORT l BY nosort GET # => ["c", "a", "d", "b"]
        SORT l BY nosort ALPHA => ["c", "a", "d", "b"]
        SORT l BY w_* BY nosort ALPHA => ["c", "a", "d", "b"]
        SORT l BY nosort BY w_* ALPHA => ["c", "a", "d", "b"]
        ZADD z 1 c 5 a 2 d 3 b => :4
        SORT z BY nosort => ["c", "d", "b", "a"]
        SORT z BY nosort DESC => ["a", "b", "d", "c"]
        SORT z BY nosort LIMIT 1 2 => ["d", "b"]
        SORT z BY nosort LIMIT 1 2 DESC => ["b", "d"]
        SORT z BY nosort LIMIT 10 2 => []
        SORT z BY nosort LIMIT 0 0 => []
        SORT z BY nosort STORE d => :4
        LRANGE d 0 -1 => ["c", "d", "b", "a"]
        SADD ints 3 1 2 10 => :4
        SORT ints BY nosort => ["1", "2", "3", "10"]
        SORT ints BY nosort LIMIT 1 2 => ["2", "3"]
        SADD s c a d b => :4
        SORT s BY nosort STORE d => :4
        LRANGE d 0 -1 => ["a", "b", "c", "d"]
        SORT s BY nosort DESC STORE d => :4
        LRANGE d 0 -1 => ["d", "c", "b", "a"]
        EVAL "return redis.call('SORT', KEYS[1], 'BY', 'nosort')" 1 s => ["a", "b", "c", "d"]
        EVAL "return redis.call('SORT', KEYS[1], 'BY', 'nosort')" 1 ints => ["1", "10", "2", "3"]
        EVAL "return redis.call('SORT', KEYS[1], 'BY', 'nosort', 'DESC')" 1 l => ["b", "d", "a", "c"]
        EVAL_RO "return redis.call('SORT_RO', KEYS[1], 'BY', 'nosort', 'GET', '#')" 1 s => ["a", "b", "c", "d"]
        "#,
    );
}

#[test]
fn storing() {
    check(
        r#"
        RPUSH l 3 1 2 => :3
        SORT l STORE d => :3
        LRANGE d 0 -1 => ["1", "2", "3"]
        TYPE d => +list
        SORT l STORE l => :3
        LRANGE l 0 -1 => ["1", "2", "3"]
        SORT l GET # GET nosuch_* STORE d => :6
        LRANGE d 0 -1 => ["1", "", "2", "", "3", ""]
        SORT l LIMIT 0 0 STORE d => :0
        EXISTS d => :0
        SET d x => +OK
        SORT none STORE d => :0
        EXISTS d => :0
        SET d x => +OK
        EXPIRE d 100 => :1
        SORT l DESC STORE d => :3
        TTL d => :-1
        SORT l STORE first STORE second => :3
        EXISTS first second => :1
        RPUSH t b "a\x00b" "a\x00a" => :3
        SORT t ALPHA STORE d => :3
        LRANGE d 0 -1 => ["a\x00a", "a\x00b", "b"]
        COMMAND GETKEYS SORT l BY w_* LIMIT 0 1 GET # STORE d => ["l", "d"]
        COMMAND GETKEYS SORT l BY store STORE d => ["l", "d"]
        COMMAND GETKEYS SORT l => ["l"]
        COMMAND GETKEYSANDFLAGS SORT l STORE d => [["l", [+RO, +access]], ["d", [+OW, +update]]]
        COMMAND GETKEYS SORT_RO l BY w_* => ["l"]
        "#,
    );
}

#[test]
fn what_is_refused() {
    check(
        r#"
        RPUSH l 1 => :1
        -ERR syntax error
            SORT l x
            SORT l BY
            SORT l GET
            SORT l STORE
            SORT l LIMIT 0
        -ERR value is not an integer or out of range
            SORT l LIMIT x 0
            SORT l LIMIT 0 x
            SORT l LIMIT 0 9223372036854775808
        SORT_RO l STORE d => -ERR syntax error
        SET str 1 => +OK
        SORT str x => -ERR syntax error
        "#,
    );
}

#[test]
fn in_transactions() {
    check(
        r#"
        RPUSH l 2 1 3 => :3
        MSET w_1 c w_2 b w_3 a => +OK
        MULTI => +OK
        SORT l => +QUEUED
        SORT l BY w_* ALPHA GET # GET w_* => +QUEUED
        SORT l BY w_* ALPHA STORE d => +QUEUED
        SORT_RO d BY nosort => +QUEUED
        EXEC => [["1", "2", "3"], ["3", "a", "2", "b", "1", "c"], :3, ["3", "2", "1"]]
        "#,
    );
}
