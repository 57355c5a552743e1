//! What becomes of the destination of SINTERSTORE, SUNIONSTORE, SDIFFSTORE, ZINTERSTORE, ZUNIONSTORE, ZDIFFSTORE and
//! ZRANGESTORE. What they store is in each family's own `combine_store` and `range_store`.

use wire::Session;

const SOURCES: &[&str] = &["SADD a x y", "SADD b z", "ZADD za 1 x 2 y", "ZADD zb 1 z"];

/// Requests that store two elements, and the type of what they store.
const STORES: &[(&str, &str)] = &[
    ("SINTERSTORE to a", "+set"),
    ("SUNIONSTORE to nosuch a", "+set"),
    ("SDIFFSTORE to a b", "+set"),
    ("ZUNIONSTORE to 2 za a", "+zset"),
    ("ZINTERSTORE to 2 za a", "+zset"),
    ("ZDIFFSTORE to 2 za zb", "+zset"),
    ("ZRANGESTORE to za 0 -1", "+zset"),
];

/// Requests whose result is empty.
const EMPTY: &[&str] = &[
    "SINTERSTORE to a b",
    "SINTERSTORE to a nosuch",
    "SINTERSTORE to nosuch",
    "SUNIONSTORE to nosuch nosuch2",
    "SDIFFSTORE to a a",
    "SDIFFSTORE to nosuch a",
    "ZUNIONSTORE to 1 nosuch",
    "ZINTERSTORE to 2 za zb",
    "ZINTERSTORE to 2 za nosuch",
    "ZDIFFSTORE to 2 za za",
    "ZDIFFSTORE to 2 nosuch za",
    "ZRANGESTORE to za 5 6",
    "ZRANGESTORE to nosuch 0 -1",
    "ZRANGESTORE to za 2 1 BYSCORE",
    "ZRANGESTORE to za 3 4 BYSCORE",
    "ZRANGESTORE to za + - BYLEX",
    "ZRANGESTORE to za -inf inf BYSCORE LIMIT 5 1",
    "ZRANGESTORE to za -inf inf BYSCORE LIMIT 0 0",
    "ZRANGESTORE to za -inf inf BYSCORE LIMIT -1 1",
];

/// What may be at the destination before.
const BEFORE: &[&str] = &["SET to text", "HSET to f v", "RPUSH to x", "SADD to old", "ZADD to 1 old", "DEL to"];

/// A value of any type is replaced, together with its deadline, or deleted.
#[test]
fn the_destination_may_be_anything() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.pipeline(SOURCES);
    for before in BEFORE {
        let mut store = |request: &str| {
            let questions = [*before, "EXPIRE to 500", request, "TYPE to", "TTL to"];
            connection.pipeline(&questions)[2..].iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for (request, kind) in STORES {
            assert_eq!(store(request), [":2", kind, ":-1"], "{request} after {before}");
        }
        for request in EMPTY {
            assert_eq!(store(request), [":0", "+none", ":-2"], "{request} after {before}");
        }
    }
    assert_eq!(connection.run("DBSIZE").integer(), 4);
}

#[test]
fn a_source_keeps_its_deadline_unless_it_is_the_destination() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.pipeline(SOURCES);
    for (request, _) in STORES {
        let source = request.rsplit(' ').find(|word| word.contains('a')).expect("a source");
        let in_place = request.replacen(" to ", &format!(" {source} "), 1);
        connection.run(&format!("PEXPIREAT {source} 33177117420123"));
        connection.run(request);
        assert_eq!(connection.run(&format!("PEXPIRETIME {source}")).integer(), 33_177_117_420_123, "{request}");
        connection.run(&in_place);
        assert_eq!(connection.run(&format!("TTL {source}")).integer(), -1, "{in_place}");
        connection.run("FLUSHALL");
        connection.pipeline(SOURCES);
    }
}
