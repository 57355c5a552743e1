//! Strings, hashes and keys through the blocking connection, with the crate's typed commands.

use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::Duration;

use redis::{
    CopyOptions, ExistenceCheck, ExpireOption, Expiry, FieldExistenceCheck, HashFieldExpirationOptions,
    IntegerReplyOrNoOp as Reply, ProtocolVersion, ScanOptions, SetExpiry, SetOptions, TypedCommands, ValueType,
};
use redis_crate_suite::{FAR, both, client, lacks};

#[test]
fn strings() {
    both(|con| {
        con.set("k", "v").unwrap();
        assert_eq!(con.get("k").unwrap().as_deref(), Some("v"));
        assert_eq!(con.get("absent").unwrap(), None);
        assert_eq!(con.append("k", "alue").unwrap(), 5);
        assert_eq!(con.getrange("k", -4, -1).unwrap(), "alue");
        assert_eq!(con.strlen("k").unwrap(), 5);
        assert!(!con.set_nx("k", "x").unwrap());
        assert_eq!(con.getset("k", "w").unwrap().as_deref(), Some("value"));
        assert_eq!(con.get_del("k").unwrap().as_deref(), Some("w"));
        assert!(!con.exists("k").unwrap());
    });
}

#[test]
fn several_keys() {
    both(|con| {
        con.mset(&[("a", 1), ("b", 2)]).unwrap();
        assert_eq!(con.mget(&["a", "absent", "b"]).unwrap(), [Some("1".into()), None, Some("2".into())]);
        assert!(!con.mset_nx(&[("b", 3), ("c", 3)]).unwrap());
        assert_eq!(con.del(&["a", "b", "c"]).unwrap(), 2);
    });
}

#[test]
fn set_options() {
    both(|con| {
        let only_known = SetOptions::default().conditional_set(ExistenceCheck::XX);
        let only_new = SetOptions::default().conditional_set(ExistenceCheck::NX);
        assert_eq!(con.set_options("k", "1", only_known.clone()).unwrap(), None);
        assert_eq!(con.set_options("k", "1", only_new.clone()).unwrap().as_deref(), Some("OK"));
        assert_eq!(con.set_options("k", "2", only_new.get(true)).unwrap().as_deref(), Some("1"));
        let lasting = only_known.get(true).with_expiration(SetExpiry::EXAT(FAR));
        assert_eq!(con.set_options("k", "2", lasting).unwrap().as_deref(), Some("1"));
        con.set_options("k", "3", SetOptions::default().with_expiration(SetExpiry::KEEPTTL)).unwrap();
        assert_eq!(con.expire_time("k").unwrap(), Reply::IntegerReply(FAR as usize));
        for expiry in [SetExpiry::EX(100), SetExpiry::PX(100_000), SetExpiry::PXAT(FAR * 1000)] {
            con.set_options("k", "4", SetOptions::default().with_expiration(expiry)).unwrap();
            assert!(con.ttl("k").unwrap().raw() > 0);
        }
        con.set("k", "5").unwrap();
        assert_eq!(con.ttl("k").unwrap(), Reply::ExistsButNotRelevant);
    });
}

#[test]
fn counters() {
    both(|con| {
        assert_eq!(con.incr("n", 41).unwrap(), 41);
        assert_eq!(con.decr("n", 42).unwrap(), -1);
        assert_eq!(redis::Commands::incr::<_, _, f64>(con, "n", 0.5).unwrap(), -0.5);
        con.set("n", i64::MAX).unwrap();
        let refusal = con.incr("n", 1).unwrap_err();
        assert_eq!(refusal.detail(), Some("increment or decrement would overflow"));
        assert_eq!(con.get_int("n").unwrap(), Some(i64::MAX as isize));
    });
}

#[test]
fn bits() {
    both(|con| {
        assert!(!con.setbit("k", 7, true).unwrap());
        assert!(con.getbit("k", 7).unwrap());
        assert_eq!(con.bitcount("k").unwrap(), 1);
        con.set("other", &[0xf0_u8]).unwrap();
        assert_eq!(con.bit_or("to", &["k", "other"]).unwrap(), 1);
        assert_eq!(redis::Commands::get::<_, Vec<u8>>(con, "to").unwrap(), [0xf1]);
    });
}

#[test]
fn hashes() {
    both(|con| {
        assert_eq!(con.hset("h", "a", 1).unwrap(), 1);
        con.hset_multiple("h", &[("b", "2"), ("c", "3")]).unwrap();
        assert_eq!(con.hget("h", "a").unwrap().as_deref(), Some("1"));
        assert_eq!(con.hget("h", "absent").unwrap(), None);
        let all: HashMap<String, String> = con.hgetall("h").unwrap();
        assert_eq!(all, HashMap::from([("a", "1"), ("b", "2"), ("c", "3")].map(|(f, v)| (f.into(), v.into()))));
        assert_eq!(con.hincr("h", "a", 1.5).unwrap(), 2.5);
        assert!(!con.hset_nx("h", "a", 9).unwrap());
        assert!(con.hexists("h", "b").unwrap());
        assert_eq!(con.hlen("h").unwrap(), 3);
        assert_eq!(con.hdel("h", &["a", "b", "c"]).unwrap(), 3);
        assert!(con.hgetall("h").unwrap().is_empty());
    });
}

#[test]
fn field_expiry() {
    both(|con| {
        if lacks(con, "hexpire") {
            return;
        }
        let (far, none) = (FAR as i64, ExpireOption::NONE);
        con.hset_multiple("h", &[("a", 1), ("b", 2), ("c", 3)]).unwrap();
        assert_eq!(
            con.hexpire_at("h", far, none, &["a", "absent"]).unwrap(),
            [Reply::IntegerReply(1), Reply::NotExists]
        );
        assert_eq!(
            con.hexpire_time("h", &["a", "b"]).unwrap(),
            [Reply::IntegerReply(FAR as usize), Reply::ExistsButNotRelevant]
        );
        assert_eq!(con.hexpire("h", 100, ExpireOption::GT, "a").unwrap(), [Reply::IntegerReply(0)]);
        assert_eq!(con.hpersist("h", &["a", "b"]).unwrap(), [Reply::IntegerReply(1), Reply::ExistsButNotRelevant]);
        assert_eq!(con.hpexpire("h", 100_000, ExpireOption::NX, "b").unwrap(), [Reply::IntegerReply(1)]);
        assert!((1..=100).contains(&con.httl("h", "b").unwrap()[0].raw()));
        assert_eq!(con.hexpire("h", 0, ExpireOption::NONE, "a").unwrap(), [Reply::IntegerReply(2)]);
        con.hpexpire("h", 1, ExpireOption::NONE, "b").unwrap();
        sleep(Duration::from_millis(50));
        assert_eq!(con.hgetall("h").unwrap(), HashMap::from([("c".into(), "3".into())]));
    });
}

#[test]
fn hsetex_hgetex_hgetdel() {
    both(|con| {
        if lacks(con, "hsetex") {
            return;
        }
        let options = HashFieldExpirationOptions::default;
        assert!(con.hset_ex("h", &options().set_expiration(SetExpiry::EXAT(FAR)), &[("a", 1), ("b", 2)]).unwrap());
        assert!(!con.hset_ex("h", &options().set_existence_check(FieldExistenceCheck::FNX), &[("a", 9)]).unwrap());
        assert!(con.hset_ex("h", &options().set_expiration(SetExpiry::KEEPTTL), &[("a", 3)]).unwrap());
        assert_eq!(con.hexpire_time("h", "a").unwrap(), [Reply::IntegerReply(FAR as usize)]);
        assert_eq!(con.hget_ex("h", "a", Expiry::PERSIST).unwrap(), ["3"]);
        assert_eq!(con.httl("h", "a").unwrap(), [Reply::ExistsButNotRelevant]);
        assert_eq!(con.hget_del("h", &["a", "absent"]).unwrap(), [Some("3".into()), None]);
        assert_eq!(con.hget_del("h", "b").unwrap(), [Some("2".into())]);
        assert!(!con.exists("h").unwrap());
    });
}

#[test]
fn expiry_of_keys() {
    both(|con| {
        con.set("k", "v").unwrap();
        assert_eq!(con.ttl("absent").unwrap(), Reply::NotExists);
        assert!(con.expire("k", 100).unwrap());
        assert!((1..=100).contains(&con.ttl("k").unwrap().raw()));
        assert!(con.pexpire_at("k", FAR as i64 * 1000 + 7).unwrap());
        assert_eq!(con.pexpire_time("k").unwrap(), Reply::IntegerReply(FAR as usize * 1000 + 7));
        assert_eq!(con.get_ex("k", Expiry::PERSIST).unwrap().as_deref(), Some("v"));
        assert!(!con.persist("k").unwrap());
        con.set_ex("k", "v", 100).unwrap();
        con.pexpire("k", 1).unwrap();
        sleep(Duration::from_millis(50));
        assert_eq!(con.get("k").unwrap(), None);
    });
}

#[test]
fn keys() {
    both(|con| {
        con.hset("h", "f", "v").unwrap();
        assert_eq!(con.key_type("h").unwrap(), ValueType::Hash);
        assert_eq!(con.key_type("absent").unwrap(), ValueType::None);
        assert!(con.copy("h", "twin", CopyOptions::default()).unwrap());
        assert!(!con.copy("h", "twin", CopyOptions::default()).unwrap());
        assert!(con.copy("h", "twin", CopyOptions::default().replace(true)).unwrap());
        con.rename("twin", "moved").unwrap();
        assert!(!con.rename_nx("moved", "h").unwrap());
        assert_eq!(con.object_encoding("h").unwrap().as_deref(), Some("listpack"));
        assert_eq!(con.unlink(&["h", "moved"]).unwrap(), 2);
    });
}

#[test]
fn dump_and_restore() {
    both(|con| {
        con.hset_multiple("h", &[("a", "1"), ("b", "two")]).unwrap();
        let payload: Vec<u8> = redis::cmd("DUMP").arg("h").query(con).unwrap();
        redis::cmd("RESTORE").arg("twin").arg(0).arg(&payload).exec(con).unwrap();
        assert_eq!(con.hgetall("twin").unwrap(), con.hgetall("h").unwrap());
        let refusal = redis::cmd("RESTORE").arg("twin").arg(0).arg(&payload).exec(con).unwrap_err();
        assert_eq!(refusal.code(), Some("BUSYKEY"));
    });
}

#[test]
fn databases() {
    both(|con| {
        let mut three = client(ProtocolVersion::RESP3, 3).get_connection().unwrap();
        three.set("k", "three").unwrap();
        assert_eq!(con.get("k").unwrap(), None);
        redis::cmd("SWAPDB").arg(0).arg(3).exec(con).unwrap();
        assert_eq!(con.get("k").unwrap().as_deref(), Some("three"));
    });
}

#[test]
fn scan_iterators() {
    both(|con| {
        let keys: HashSet<String> = (0..1000).map(|i| format!("key:{i}")).collect();
        con.mset(&keys.iter().map(|key| (key, "v")).collect::<Vec<_>>()).unwrap();
        con.hset_multiple("h", &keys.iter().map(|key| (key, "v")).collect::<Vec<_>>()).unwrap();
        let seen: HashSet<String> = con.scan_match("key:*").unwrap().map(Result::unwrap).collect();
        assert_eq!(seen, keys);
        let options = ScanOptions::default().with_type("hash").with_count(100);
        let hashes: Vec<String> = con.scan_options(options).unwrap().map(Result::unwrap).collect();
        assert_eq!(hashes, ["h"]);
        let fields: HashMap<String, String> = con.hscan("h").unwrap().map(Result::unwrap).collect();
        assert_eq!(fields.into_keys().collect::<HashSet<_>>(), keys);
    });
}
