//! What a field's deadline means to every other hash command: HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME, HPERSIST,
//! and the commands that read, write, copy and count.

use wire::check;

#[test]
fn httl_of_fields_without_a_deadline() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1
        HTTL h FIELDS 2 a nosuch => [:-1, :-2]
        HPTTL h FIELDS 2 a nosuch => [:-1, :-2]
        HEXPIRETIME h FIELDS 2 a nosuch => [:-1, :-2]
        HPEXPIRETIME h FIELDS 2 a nosuch => [:-1, :-2]
        HTTL nosuch FIELDS 2 a b => [:-2, :-2]
        HPTTL nosuch FIELDS 1 a => [:-2]
        HEXPIRETIME nosuch FIELDS 1 a => [:-2]
        HPEXPIRETIME nosuch FIELDS 1 a => [:-2]
        HTTL h FIELDS 2 a a => [:-1, :-1]
        "#,
    );
}

#[test]
fn hpersist() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIRE h 100 FIELDS 1 a
        [:1]
        > HPERSIST h FIELDS 3 a b nosuch
        [:1, :-1, :-2]
        > HTTL h FIELDS 1 a
        [:-1]
        > HPERSIST h FIELDS 1 a
        [:-1]
        > HPERSIST nosuch FIELDS 2 a b
        [:-2, :-2]
        "#,
    );
}

#[test]
fn an_expired_field_is_absent() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2 c 3
        > HPEXPIRE h 20 FIELDS 2 a c
        [:1, :1]
        # eventually
        > HMGET h a c
        [(nil), (nil)]
        HGET h a => (nil)
        HEXISTS h a => :0
        HGETALL h => ["b", "2"]
        HKEYS h => ["b"]
        HVALS h => ["2"]
        HSTRLEN h a => :0
        HTTL h FIELDS 1 a => [:-2]
        > HPERSIST h FIELDS 1 a
        [:-2]
        > HEXPIRE h 100 FIELDS 1 a
        [:-2]
        > HDEL h a
        :0
        > HRANDFIELD h 10
        ["b"]
        > HSCAN h 0
        ["0", ["b", "2"]]
        # eventually
        > HLEN h
        :1
        "#,
    );
}

#[test]
fn a_hash_goes_with_its_last_field() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HPEXPIRE h 20 FIELDS 2 a b
        [:1, :1]
        # eventually
        > EXISTS h
        :0
        > TYPE h
        +none
        > DBSIZE
        :0
        ! HSET h c 3
        > HGETALL h
        ["c", "3"]
        "#,
    );
}

#[test]
fn an_expired_field_counts_as_new_for_writes() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2 c 3 keep 4
        > HPEXPIRE h 20 FIELDS 3 a b c
        [:1, :1, :1]
        # eventually
        > HMGET h a b c
        [(nil), (nil), (nil)]
        > HSETNX h a 5
        :1
        > HINCRBY h b 5
        :5
        > HINCRBYFLOAT h c 0.5
        "0.5"
        > HTTL h FIELDS 3 a b c
        [:-1, :-1, :-1]
        > HPEXPIRE h 20 FIELDS 1 a
        [:1]
        # eventually
        > HGET h a
        (nil)
        ! HSET h a 6
        > HTTL h FIELDS 1 a
        [:-1]
        "#,
    );
}

#[test]
fn hset_takes_the_deadline_away() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2 c 3
        > HEXPIRE h 100 FIELDS 3 a b c
        [:1, :1, :1]
        > HSET h a 9
        :0
        > HTTL h FIELDS 1 a
        [:-1]
        > HMSET h b 9
        +OK
        > HTTL h FIELDS 1 b
        [:-1]
        > HSETNX h c 9
        :0
        > HTTL h FIELDS 1 c
        [:90..100]
        "#,
    );
}

#[test]
fn hincrby_keeps_the_deadline() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIREAT h 33177117420 FIELDS 2 a b
        [:1, :1]
        > HINCRBY h a 1
        :2
        > HINCRBYFLOAT h b 1.5
        "3.5"
        > HEXPIRETIME h FIELDS 2 a b
        [:33177117420, :33177117420]
        "#,
    );
}

#[test]
fn hdel_and_set_take_fields_and_deadlines_away() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIRE h 100 FIELDS 2 a b
        [:1, :1]
        > HDEL h a
        :1
        > HTTL h FIELDS 1 a
        [:-2]
        ! HSET h a 1
        > HTTL h FIELDS 2 a b
        [:-1, :90..100]
        > DEL h
        :1
        ! HSET h b 1
        > HTTL h FIELDS 1 b
        [:-1]
        "#,
    );
}

#[test]
fn copy_rename_and_move_keep_deadlines() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIREAT h 33177117420 FIELDS 1 a
        [:1]
        > COPY h g
        :1
        > HEXPIRETIME g FIELDS 2 a b
        [:33177117420, :-1]
        > RENAME g i
        +OK
        > HEXPIRETIME i FIELDS 2 a b
        [:33177117420, :-1]
        > MOVE i 1
        :1
        > SELECT 1
        +OK
        > HEXPIRETIME i FIELDS 2 a b
        [:33177117420, :-1]
        > HGETALL i
        ~["a", "1", "b", "2"]
        "#,
    );
}

#[test]
fn copied_fields_expire_on_their_own() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIREAT h 33177117420 FIELDS 1 a
        [:1]
        > COPY h g
        :1
        > HPEXPIRE g 20 FIELDS 1 a
        [:1]
        # eventually
        > HGETALL g
        ["b", "2"]
        > HGET h a
        "1"
        > HEXPIRETIME h FIELDS 1 a
        [:33177117420]
        "#,
    );
}

#[test]
fn a_field_deadline_in_a_large_hash() {
    check(
        r#"
        # needs redis >= 7.4
        # config hash-max-listpack-entries 2
        ! HSET h a 1 b 2 c 3 d 4
        > HPEXPIRE h 20 FIELDS 2 a b
        [:1, :1]
        > HEXPIREAT h 33177117420 FIELDS 1 c
        [:1]
        # eventually
        > HMGET h a b c d
        [(nil), (nil), "3", "4"]
        > HGETALL h
        ~["c", "3", "d", "4"]
        > HEXPIRETIME h FIELDS 4 a b c d
        [:-2, :-2, :33177117420, :-1]
        > HPERSIST h FIELDS 1 c
        [:1]
        > HTTL h FIELDS 1 c
        [:-1]
        "#,
    );
}

#[test]
fn the_key_s_own_deadline_is_another() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > EXPIREAT h 33177117420
        :1
        > HEXPIREAT h 33177117421 FIELDS 1 a
        [:1]
        > EXPIRETIME h
        :33177117420
        > HEXPIRETIME h FIELDS 1 a
        [:33177117421]
        > PERSIST h
        :1
        > HEXPIRETIME h FIELDS 1 a
        [:33177117421]
        > HPERSIST h FIELDS 1 a
        [:1]
        > TTL h
        :-1
        "#,
    );
}
