//! Integers as members: which texts an intset takes for integers, and how wide its integers are.

use wire::{Session, check};

#[test]
fn only_the_plain_spelling_is_an_integer() {
    let session = Session::start();
    let mut connection = session.connect();
    let integers = [
        "0",
        "1",
        "-1",
        "9",
        "10",
        "32767",
        "-32768",
        "32768",
        "-32769",
        "2147483647",
        "-2147483648",
        "2147483648",
        "-2147483649",
        "9223372036854775807",
        "-9223372036854775808",
    ];
    let others = [
        "00",
        "01",
        "-0",
        "-01",
        "+0",
        "+1",
        "1.0",
        "1e3",
        "0x10",
        "1 ",
        " 1",
        "",
        "-",
        "+",
        "--1",
        "1-",
        "1\0",
        "\n1",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "99999999999999999999999",
        "１",
    ];
    for member in integers.iter().chain(&others) {
        connection.run("DEL s");
        assert_eq!(connection.run_args(&["SADD", "s", member]).integer(), 1, "{member:?}");
        let encoding = connection.run("OBJECT ENCODING s").text().to_owned();
        assert_eq!(encoding == "intset", integers.contains(member), "{member:?} is kept as {encoding}");
        // It comes back as it was sent.
        let [only] = connection.run("SMEMBERS s").items().to_vec().try_into().expect("one member");
        assert_eq!(only.bytes(), member.as_bytes());
        assert_eq!(connection.run_args(&["SISMEMBER", "s", member]).integer(), 1, "{member:?}");
    }
}

#[test]
fn different_spellings_are_different_members() {
    check(
        r#"
        > SADD s 1
        :1
        SISMEMBER s 01 => :0
        SISMEMBER s +1 => :0
        SISMEMBER s 1.0 => :0
        SISMEMBER s " 1" => :0
        > SREM s 01 +1 1.0
        :0
        > OBJECT ENCODING s
        "intset"
        > SADD s 01 +1 1.0 -0 0
        :5
        > SMEMBERS s
        ~["+1", "1.0", "0", "1", "-0", "01"]
        > SREM s 1
        :1
        > SISMEMBER s 01
        :1
        > SADD n 0
        :1
        > SADD n -0
        :1
        > SCARD n
        :2
        "#,
    );
}

/// Members of an intset are returned in their order, also those below 0 and across widths.
#[test]
fn an_intset_is_in_order() {
    check(
        r#"
        > SADD s 3 1 2
        :3
        > SMEMBERS s
        ["1", "2", "3"]
        > SADD s -1 10 -20 0
        :4
        > SMEMBERS s
        ["-20", "-1", "0", "1", "2", "3", "10"]
        > SADD s 70000 -70000
        :2
        > SMEMBERS s
        ["-70000", "-20", "-1", "0", "1", "2", "3", "10", "70000"]
        > SADD s 9223372036854775807 -9223372036854775808 5000000000
        :3
        > SMEMBERS s
        ["-9223372036854775808", "-70000", "-20", "-1", "0", "1", "2", "3", "10", "70000", "5000000000", "9223372036854775807"]
        > SSCAN s 0 COUNT 1
        ["0", ["-9223372036854775808", "-70000", "-20", "-1", "0", "1", "2", "3", "10", "70000", "5000000000", "9223372036854775807"]]
        > SREM s 9223372036854775807 -9223372036854775808 5000000000 70000 -70000
        :5
        > SMEMBERS s
        ["-20", "-1", "0", "1", "2", "3", "10"]
        "#,
    );
}

/// Each new member needs more bytes than those before it, at either end.
#[test]
fn integers_grow_wider() {
    check(
        r#"
        > SADD s 1
        :1
        > SADD s 32767 -32768
        :2
        > SISMEMBER s 32768
        :0
        > SADD s 32768
        :1
        > SMISMEMBER s 1 32767 -32768 32768 -32769
        [:1, :1, :1, :1, :0]
        > SADD s -2147483648
        :1
        > SADD s 2147483648
        :1
        > SMISMEMBER s 1 32767 -32768 32768 -2147483648 2147483648 -2147483649
        [:1, :1, :1, :1, :1, :1, :0]
        > SADD s -9223372036854775808
        :1
        > SMISMEMBER s 1 32767 -32768 32768 -2147483648 2147483648 -9223372036854775808 9223372036854775807
        [:1, :1, :1, :1, :1, :1, :1, :0]
        > SCARD s
        :7
        > OBJECT ENCODING s
        "intset"
        > SADD low -5
        :1
        > SADD low -40000
        :1
        > SMEMBERS low
        ["-40000", "-5"]
        > SADD low -3000000000
        :1
        > SMEMBERS low
        ["-3000000000", "-40000", "-5"]
        // What is too wide for the set is not in it.
        > SREM low 9223372036854775807 40000 -40000
        :1
        > SMEMBERS low
        ["-3000000000", "-5"]
        "#,
    );
}
