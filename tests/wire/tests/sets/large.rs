//! Large sets, long members, members of any bytes.

use std::collections::BTreeSet;

use wire::{Connection, Reply, Session, check};

const MANY: usize = 30_000;

#[test]
fn many_members() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = numbered(0..MANY);
    assert_eq!(add(&mut connection, "s", &members), MANY);
    assert_eq!(connection.run("SCARD s").integer() as usize, MANY);
    assert_eq!(as_set(&connection.run("SMEMBERS s")), members);
    assert_eq!(connection.run(&format!("SRANDMEMBER s {MANY}")).items().len(), MANY);

    // Half of them, then all that are left.
    let popped = as_set(&connection.run(&format!("SPOP s {}", MANY / 2)));
    assert_eq!(connection.run("SCARD s").integer() as usize, MANY / 2);
    connection.run("HELLO 3");
    let rest = connection.run(&format!("SPOP s {MANY}"));
    assert!(matches!(rest, Reply::Set(_)), "no set");
    let rest = as_set(&rest);
    assert_eq!((popped.len(), rest.len()), (MANY / 2, MANY / 2));
    assert!(popped.is_disjoint(&rest) && members.is_superset(&popped) && members.is_superset(&rest));
    assert_eq!(connection.run("EXISTS s").integer(), 0);
}

#[test]
fn large_sets_are_combined() {
    let session = Session::start();
    let mut connection = session.connect();
    let odd = numbered((0..MANY).filter(|i| i % 2 == 1));
    assert_eq!(add(&mut connection, "odd", &odd), MANY / 2);
    assert_eq!(add(&mut connection, "s", &numbered(0..MANY)), MANY);
    assert_eq!(as_set(&connection.run("SINTER s odd")), odd);
    assert_eq!(connection.run("SINTERCARD 2 odd s").integer() as usize, MANY / 2);
    assert_eq!(connection.run("SINTERCARD 2 odd s LIMIT 777").integer(), 777);
    assert_eq!(connection.run("SDIFFSTORE even s odd").integer() as usize, MANY / 2);
    assert_eq!(connection.run("SINTERCARD 2 odd even").integer(), 0);
    assert_eq!(connection.run("SUNIONSTORE all odd even s").integer() as usize, MANY);
    assert_eq!(connection.run("SUNION odd even").items().len(), MANY);
    assert_eq!(connection.run("SDIFF s all").items().len(), 0);
    let gone: Vec<&[u8]> = odd.iter().map(Vec::as_slice).collect();
    assert_eq!(connection.run_with("SREM s", &gone).integer() as usize, MANY / 2);
    assert_eq!(connection.run("SDIFF even s").items().len(), 0);
    assert_eq!(connection.run("SDIFF s even").items().len(), 0);
}

/// Integers that no longer fit into an intset, and one that is as large as it may be.
#[test]
fn many_integers() {
    let session = Session::start();
    let mut connection = session.connect();
    let integers: BTreeSet<Vec<u8>> = (0..20_000).map(|i| (i * 7 - 50_000).to_string().into_bytes()).collect();
    add(&mut connection, "s", &integers);
    assert_eq!(connection.run("OBJECT ENCODING s").text(), "hashtable");
    assert_eq!(as_set(&connection.run("SMEMBERS s")), integers);
    connection.run("CONFIG SET set-max-intset-entries 20000");
    add(&mut connection, "n", &integers);
    let encoding = connection.run("OBJECT ENCODING n");
    connection.run("CONFIG SET set-max-intset-entries 512");
    assert_eq!(encoding.text(), "intset");
    assert_eq!(as_set(&connection.run("SMEMBERS n")), integers);
    assert_eq!(connection.run("SINTERCARD 2 n s").integer(), 20_000);
    assert_eq!(connection.run("SDIFF n s").items().len(), 0);
    assert_eq!(connection.run("SMISMEMBER n -50000 -49999 89993 90000").to_string(), "[:1, :0, :1, :0]");
}

#[test]
fn members_of_any_bytes() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut members: BTreeSet<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    members.insert(Vec::new());
    members.insert((0..=255).collect());
    members.insert(b"\r\n".to_vec());
    members.insert(b"$3\r\nabc\r\n".to_vec());
    members.insert(vec![0; 1000]);
    assert_eq!(add(&mut connection, "s", &members), members.len());
    assert_eq!(as_set(&connection.run("SMEMBERS s")), members);
    for member in &members {
        assert_eq!(connection.run_with("SISMEMBER s", &[member]).integer(), 1, "{member:?}");
    }
    assert_eq!(connection.run_with("SISMEMBER s", &[&[0; 999]]).integer(), 0);
    assert_eq!(connection.run("SUNIONSTORE t s").integer() as usize, members.len());
    for member in &members {
        assert_eq!(connection.run_with("SMOVE s u", &[member]).integer(), 1, "{member:?}");
    }
    assert_eq!(connection.run("SDIFF t u").items().len(), 0);
    assert_eq!(connection.run("EXISTS s").integer(), 0);
}

#[test]
fn long_members() {
    let session = Session::start();
    let mut connection = session.connect();
    let (long, other) = (vec![b'x'; 1 << 20], [vec![b'x'; (1 << 20) - 1], vec![b'y']].concat());
    assert_eq!(connection.run_with("SADD s", &[&long, &other, b"short"]).integer(), 3);
    assert_eq!(connection.run_with("SMISMEMBER s", &[&long, &other, &long[1..]]).to_string(), "[:1, :1, :0]");
    let digests = connection.run("DEBUG DIGEST-VALUE s");
    assert_eq!(connection.run("SUNIONSTORE t s").integer(), 3);
    assert_eq!(connection.run("DEBUG DIGEST-VALUE t"), digests);
    assert_eq!(connection.run_with("SREM s", &[&long]).integer(), 1);
    assert_eq!(as_set(&connection.run("SMEMBERS s")), BTreeSet::from([b"short".to_vec(), other]));
}

/// The names of keys may be any bytes too, and may be the same as those of members.
#[test]
fn names_of_keys() {
    check(
        r#"
        ! SADD "" ""
        ! SADD "\x00\r\n" ""
        > SINTER "" "\x00\r\n"
        [""]
        > SMOVE "" "\x00" ""
        :1
        > EXISTS ""
        :0
        > SMEMBERS "\x00"
        [""]
        ! SADD a a
        > SMEMBERS a
        ["a"]
        "#,
    );
}

/// A thousand keys in one command, some of them many times.
#[test]
fn many_sources() {
    let session = Session::start();
    let mut connection = session.connect();
    let fill: Vec<String> = (0..1000).map(|i| format!("SADD k{i} all m{i} {}", i / 2)).collect();
    connection.pipeline(&fill);
    let keys: Vec<String> = (0..1000).chain(0..500).map(|i| format!("k{i}")).collect();
    let keys = keys.join(" ");
    assert_eq!(connection.run(&format!("SUNION {keys}")).items().len(), 1501);
    assert_eq!(connection.run(&format!("SINTER {keys}")).to_string(), r#"["all"]"#);
    assert_eq!(connection.run(&format!("SINTERCARD 1500 {keys}")).integer(), 1);
    assert_eq!(connection.run(&format!("SDIFF {keys} nosuch")).items().len(), 0);
    assert_eq!(connection.run(&format!("SUNIONSTORE k0 {keys}")).integer(), 1501);
    assert_eq!(connection.run(&format!("SDIFFSTORE k0 {keys}")).integer(), 0);
}

fn numbered(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<Vec<u8>> {
    numbers.into_iter().map(|i| format!("member:{i}").into_bytes()).collect()
}

/// Adds all members in one command.
fn add(connection: &mut Connection, key: &str, members: &BTreeSet<Vec<u8>>) -> usize {
    let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
    connection.run_with(&format!("SADD {key}"), &members).integer() as usize
}

/// The members of a reply, of which each may come only once.
#[track_caller]
fn as_set(reply: &Reply) -> BTreeSet<Vec<u8>> {
    let members: BTreeSet<Vec<u8>> = reply.items().iter().map(|member| member.bytes().to_vec()).collect();
    assert_eq!(members.len(), reply.items().len(), "a member came twice");
    members
}
