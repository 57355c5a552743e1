//! Replies turned into the caller's own types by the crate's generic commands.

use std::collections::BTreeMap;

use redis::Commands;
use redis_crate_suite::both;

#[test]
fn typed_conversions() {
    both(|con| {
        let _: () = con.set("n", 42).unwrap();
        assert_eq!(con.get::<_, u8>("n").unwrap(), 42);
        assert_eq!(con.get::<_, f64>("n").unwrap(), 42.0);
        assert_eq!(con.get::<_, String>("n").unwrap(), "42");
        assert_eq!(con.get::<_, Option<i64>>("absent").unwrap(), None);
        assert!(con.get::<_, i64>("absent").is_err());
        let _: () = con.set("flag", true).unwrap();
        assert!(con.get::<_, bool>("flag").unwrap());
        let _: () = con.set("ratio", 0.1).unwrap();
        assert_eq!(con.get::<_, f64>("ratio").unwrap(), 0.1);
        let (n, flag): (i64, bool) = con.mget(&["n", "flag"]).unwrap();
        assert_eq!((n, flag), (42, true));
    });
}

#[test]
fn bytes_of_any_kind_and_size() {
    both(|con| {
        let every_byte: Vec<u8> = (0..=255).collect();
        let _: () = con.set(&every_byte, &every_byte).unwrap();
        assert_eq!(con.get::<_, Vec<u8>>(&every_byte).unwrap(), every_byte);
        let big = every_byte.repeat(40_960);
        let _: () = con.set("big", &big).unwrap();
        assert!(con.get::<_, Vec<u8>>("big").unwrap() == big);
    });
}

#[test]
fn hgetall_into_other_maps() {
    both(|con| {
        let _: usize = con.hset("h", "one", 1).unwrap();
        let _: usize = con.hset("h", "two", 2).unwrap();
        let ordered: BTreeMap<String, u32> = con.hgetall("h").unwrap();
        assert_eq!(ordered.into_iter().collect::<Vec<_>>(), [("one".into(), 1), ("two".into(), 2)]);
        let pairs: Vec<(String, u32)> = con.hgetall("h").unwrap();
        assert_eq!(pairs.len(), 2);
        let some: Vec<Option<u32>> = con.hmget("h", &["two", "absent"]).unwrap();
        assert_eq!(some, [Some(2), None]);
    });
}
