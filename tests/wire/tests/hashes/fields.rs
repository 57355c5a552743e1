//! Fields of a hash: HSET, HSETNX, HMSET, HGET, HMGET, HGETALL, HKEYS, HVALS, HDEL, HEXISTS, HLEN, HSTRLEN.

use wire::{Connection, Session, check};

#[test]
fn hset_and_hget() {
    check(
        r#"
        > HSET h f v
        :1
        > HSET h f w
        :0
        > HGET h f
        "w"
        > HSET h a 1 b 2 c 3
        :3
        > HSET h a 9 d 4
        :1
        HMGET h a b c d f => ["9", "2", "3", "4", "w"]
        HLEN h => :5
        HGET h nosuch => (nil)
        HGET nosuch f => (nil)
        TYPE h => +hash
        > HSET h "" empty
        :1
        > HGET h ""
        "empty"
        > HSET h e ""
        :1
        > HGET h e
        ""
        > hset h lower 1
        :1
        > HSET twice f 1 f 2
        :1
        > HGET twice f
        "2"
        > HLEN twice
        :1
        "#,
    );
}

#[test]
fn hset_refuses_an_odd_number_of_arguments() {
    check(
        r#"
        HSET h a 1 b => -ERR wrong number of arguments for 'hset' command
        HMSET h a 1 b => -ERR wrong number of arguments for 'hmset' command
        EXISTS h => :0
        "#,
    );
}

#[test]
fn hset_of_binary_fields() {
    check(
        r#"
        > HSET h "\x00\xff\r\n" "\x00\x01\xfe"
        :1
        HGET h "\x00\xff\r\n" => "\x00\x01\xfe"
        HGETALL h => ["\x00\xff\r\n", "\x00\x01\xfe"]
        HEXISTS h "\x00" => :0
        HSTRLEN h "\x00\xff\r\n" => :3
        > HSET "\xff\xfe" f v
        :1
        > HGET "\xff\xfe" f
        "v"
        "#,
    );
}

#[test]
fn hsetnx() {
    check(
        r#"
        > HSETNX h f 1
        :1
        > HSETNX h f 2
        :0
        > HGET h f
        "1"
        > HSETNX h g 3
        :1
        > HLEN h
        :2
        "#,
    );
}

#[test]
fn hmset() {
    check(
        r#"
        > HMSET h a 1 b 2
        +OK
        > HMSET h a 3
        +OK
        > HMGET h a b
        ["3", "2"]
        > HMSET h a 1 b
        -ERR wrong number of arguments for 'hmset' command
        "#,
    );
}

#[test]
fn hmget() {
    check(
        r#"
        > HSET h a 1 b 2
        :2
        HMGET h a b nosuch a => ["1", "2", (nil), "1"]
        HMGET h nosuch => [(nil)]
        HMGET nosuch a b => [(nil), (nil)]
        "#,
    );
}

#[test]
fn hgetall_hkeys_hvals() {
    check(
        r#"
        > HSET h a 1 b 2
        :2
        HGETALL h => ~["a", "1", "b", "2"]
        HKEYS h => ~["a", "b"]
        HVALS h => ~["1", "2"]
        HGETALL nosuch => []
        HKEYS nosuch => []
        HVALS nosuch => []
        "#,
    );
}

#[test]
fn small_hashes_answer_in_order_of_insertion() {
    check(
        r#"
        // in order
        > HSET h z 1 y 2 x 3
        :3
        > HSET h w 4
        :1
        > HSET h y 5
        :0
        > HGETALL h
        ["z", "1", "y", "5", "x", "3", "w", "4"]
        > HDEL h z
        :1
        > HSET h z 6
        :1
        > HKEYS h
        ["y", "x", "w", "z"]
        > HVALS h
        ["5", "3", "4", "6"]
        > HINCRBY h x 1
        :4
        > HGETALL h
        ["y", "5", "x", "4", "w", "4", "z", "6"]
        "#,
    );
}

#[test]
fn hdel() {
    check(
        r#"
        > HSET h a 1 b 2 c 3
        :3
        > HDEL h nosuch
        :0
        > HDEL h a
        :1
        > HGET h a
        (nil)
        > HDEL h a b nosuch
        :1
        > HDEL h c c
        :1
        > EXISTS h
        :0
        > HDEL h c
        :0
        > HDEL nosuch a
        :0
        > HSET h a 1
        :1
        > HDEL h a
        :1
        > TYPE h
        +none
        > EXISTS h
        :0
        "#,
    );
}

#[test]
fn hexists() {
    check(
        r#"
        > HSET h a 1
        :1
        HEXISTS h a => :1
        HEXISTS h b => :0
        HEXISTS nosuch a => :0
        "#,
    );
}

#[test]
fn hlen_and_hstrlen() {
    check(
        r#"
        > HLEN nosuch
        :0
        > HSET h a 1 b 12345 e ""
        :3
        HLEN h => :3
        HSTRLEN h a => :1
        HSTRLEN h b => :5
        HSTRLEN h e => :0
        HSTRLEN h nosuch => :0
        HSTRLEN nosuch a => :0
        > HSET h n -9223372036854775808
        :1
        > HSTRLEN h n
        :20
        "#,
    );
}

#[test]
fn hash_commands_refuse_other_types() {
    check(
        r#"
        ! SET s string
        HMGET s f => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s => "string"
        HINCRBY s f x => -ERR value is not an integer or out of range
        HINCRBYFLOAT s f x => -ERR value is not a valid float
        "#,
    );
}

#[test]
fn hashes_in_resp3() {
    check(
        r#"
        > HELLO 3
        {"server" => *, ...}
        > HSET h a 1 b 2
        :2
        HGETALL h => ~{"a" => "1", "b" => "2"}
        HGETALL nosuch => {}
        HKEYS h => ~["a", "b"]
        HVALS h => ~["1", "2"]
        HKEYS nosuch => []
        HGET h nosuch => _
        HMGET h a nosuch => ["1", _]
        HMGET nosuch a => [_]
        > HINCRBYFLOAT h a 1.5
        "2.5"
        > HINCRBY h b 1
        :3
        HSCAN h 0 MATCH a => ["0", ["a", "2.5"]]
        HRANDFIELD nosuch => _
        HRANDFIELD nosuch 5 => []
        HRANDFIELD nosuch 5 WITHVALUES => []
        > DEL h
        :1
        > HSET h a 1
        :1
        HRANDFIELD h => "a"
        HRANDFIELD h 5 => ["a"]
        HRANDFIELD h 5 WITHVALUES => [["a", "1"]]
        HRANDFIELD h -2 WITHVALUES => [["a", "1"], ["a", "1"]]
        "#,
    );
}

fn set(connection: &mut Connection, name: &str, value: &str) {
    assert_eq!(connection.run(&format!("CONFIG SET {name} {value}")).to_string(), "+OK");
}

/// A listpack has its fields in the order in which they were added, however many the settings allow.
#[test]
fn raised_limits_keep_the_order_of_fields() {
    let session = Session::start();
    let mut connection = session.connect();
    let limits = [("hash-max-listpack-entries", "512"), ("hash-max-listpack-value", "64")];
    limits.iter().for_each(|(name, _)| set(&mut connection, name, "1000000000"));
    let mut expected: Vec<String> = (0..3000).map(|number| format!("field:{number}")).collect();
    for name in &expected {
        connection.queue_line(&format!("HSET h {name} 1"));
    }
    connection.flush();
    expected.iter().for_each(|_| drop(connection.read()));
    let long = "x".repeat(10_000);
    connection.run(&format!("HSET h field:5 {long} first {long} second 2"));
    expected.extend(["first".into(), "second".into()]);
    for name in ["field:2999", "field:1000", "field:0"] {
        assert_eq!(connection.run(&format!("HDEL h {name}")).integer(), 1);
        expected.retain(|known| known != name);
    }
    assert_eq!(connection.run("HSET h field:1000 again").integer(), 1);
    expected.push("field:1000".into());
    let names = |connection: &mut Connection, line: &str| -> Vec<String> {
        connection.run(line).items().iter().map(|name| name.text().to_owned()).collect()
    };
    for (line, key) in [("PING", "h"), ("COPY h copy", "copy"), ("DEBUG RELOAD", "h")] {
        assert!(!connection.run(line).is_error(), "{line}");
        assert_eq!(connection.run(&format!("OBJECT ENCODING {key}")).text(), "listpack");
        assert!(names(&mut connection, &format!("HKEYS {key}")) == expected, "after {line}");
        let all = names(&mut connection, &format!("HGETALL {key}"));
        assert!(all.iter().step_by(2).eq(&expected), "after {line}");
        let scanned = connection.run(&format!("HSCAN {key} 0"));
        let [cursor, scanned] = scanned.items() else { panic!("{scanned}") };
        let scanned = scanned.items().iter().step_by(2).map(|name| name.text());
        assert!(cursor.text() == "0" && scanned.eq(expected.iter().map(String::as_str)), "after {line}");
    }
    limits.iter().for_each(|(name, value)| set(&mut connection, name, value));
}
