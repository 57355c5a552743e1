//! What asks for single members and takes them out: ZREM, ZCARD, ZSCORE, ZMSCORE. And large sets.

use wire::{Session, check};

#[test]
fn zrem() {
    check(
        r#"
        ! ZADD z 1 a 2 b 3 c 4 d
        > ZREM z a
        :1
        > ZREM z a
        :0
        > ZREM z b nosuch b c
        :2
        > ZRANGE z 0 -1
        ["d"]
        > ZREM z d
        :1
        > EXISTS z
        :0
        > ZREM z d
        :0
        > ZREM nosuch a b
        :0
        ! ZADD z 1 a 2 b
        > ZREM z a b c
        :2
        > EXISTS z
        :0
        "#,
    );
}

#[test]
fn zcard_zscore_and_zmscore() {
    check(
        r#"
        ! ZADD z 1 a 2.5 b inf c -inf d
        ZCARD z => :4
        ZCARD nosuch => :0
        ZSCORE z a => "1"
        ZSCORE z b => "2.5"
        ZSCORE z c => "inf"
        ZSCORE z d => "-inf"
        ZSCORE z nosuch => (nil)
        ZSCORE nosuch a => (nil)
        ZMSCORE z a nosuch c a b => ["1", (nil), "inf", "1", "2.5"]
        ZMSCORE z nosuch => [(nil)]
        ZMSCORE nosuch a b => [(nil), (nil)]
        "#,
    );
}

#[test]
fn a_large_set_keeps_its_order() {
    let session = Session::start();
    let mut connection = session.connect();
    // Scores that collide, added in an order that is neither up nor down.
    let mut expected = Vec::new();
    let mut command = String::from("ZADD z");
    for i in 0..2000_u32 {
        let (score, member) = (i * 7919 % 97, format!("m{:04}", i * 6151 % 2000));
        command.push_str(&format!(" {score} {member}"));
        expected.push((score, member));
    }
    assert_eq!(connection.run(&command).integer(), 2000);
    expected.sort();
    let names = |reply: wire::Reply| reply.items().iter().map(|item| item.text().to_owned()).collect::<Vec<_>>();
    let sorted: Vec<String> = expected.iter().map(|(_, member)| member.clone()).collect();
    assert_eq!(names(connection.run("ZRANGE z 0 -1")), sorted);
    for (rank, (score, member)) in expected.iter().enumerate().step_by(37) {
        assert_eq!(connection.run(&format!("ZRANK z {member}")).integer(), rank as i64, "{member}");
        assert_eq!(connection.run(&format!("ZREVRANK z {member}")).integer(), 1999 - rank as i64, "{member}");
        assert_eq!(connection.run(&format!("ZSCORE z {member}")).text(), score.to_string());
        assert_eq!(connection.run(&format!("ZRANGE z {rank} {rank}")).to_string(), format!("[\"{member}\"]"));
    }
    // Every third goes, every other third moves to the front.
    for (at, (_, member)) in expected.iter().enumerate() {
        match at % 3 {
            0 => assert_eq!(connection.run(&format!("ZREM z {member}")).integer(), 1),
            1 => assert_eq!(connection.run(&format!("ZADD z CH -1 {member}")).integer(), 1),
            _ => {}
        }
    }
    let mut moved: Vec<String> = expected.iter().skip(1).step_by(3).map(|(_, member)| member.clone()).collect();
    moved.sort();
    moved.extend(expected.iter().skip(2).step_by(3).map(|(_, member)| member.clone()));
    assert_eq!(names(connection.run("ZRANGE z 0 -1")), moved);
}
