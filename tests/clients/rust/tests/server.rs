//! Connecting, pipelining, errors, and what the server tells about itself, through the blocking connection.

use std::collections::HashMap;

use redis::{Commands, Connection, ErrorKind, InfoDict, ProtocolVersion, ServerErrorKind, Value};
use redis_crate_suite::{PROTOCOLS, both, client, connection_info, turn};

#[test]
fn the_protocol_is_the_one_asked_for() {
    let _turn = turn();
    for protocol in PROTOCOLS {
        let mut con = client(protocol, 0).get_connection().unwrap();
        let hello: HashMap<String, Value> = redis::cmd("HELLO").query(&mut con).unwrap();
        let number = if protocol == ProtocolVersion::RESP3 { 3 } else { 2 };
        assert_eq!(hello["proto"], Value::Int(number));
        let reply: Value = con.hgetall("absent").unwrap();
        assert_eq!(matches!(reply, Value::Map(_)), number == 3);
    }
}

#[test]
fn a_password_where_none_is_set() {
    let _turn = turn();
    for protocol in PROTOCOLS {
        let info = connection_info(protocol, 0);
        let settings = info.redis_settings().clone().set_password("secret");
        let result = redis::Client::open(info.set_redis_settings(settings)).unwrap().get_connection();
        match protocol {
            ProtocolVersion::RESP2 => assert_eq!(result.err().unwrap().kind(), ErrorKind::AuthenticationFailed),
            // HELLO 3 AUTH default secret: the default user needs no password, so any will do.
            _ => assert!(result.is_ok()),
        }
    }
}

#[test]
fn a_database_that_is_not_there() {
    let _turn = turn();
    for protocol in PROTOCOLS {
        assert!(client(protocol, 100_000).get_connection().is_err());
    }
}

#[test]
fn pipelines() {
    both(|con| {
        let (first, second): (i64, HashMap<String, i64>) = redis::pipe()
            .cmd("SET")
            .arg("n")
            .arg(1)
            .ignore()
            .incr("n", 41)
            .hset("h", "f", 7)
            .ignore()
            .hgetall("h")
            .query(con)
            .unwrap();
        assert_eq!((first, second), (42, HashMap::from([("f".into(), 7)])));
    });
}

#[test]
fn a_long_pipeline() {
    both(|con| {
        let mut pipe = redis::pipe();
        for i in 0..5000 {
            pipe.incr("n", 1).set(format!("k{i}"), i).ignore();
        }
        let counted: Vec<i64> = pipe.query(con).unwrap();
        assert!(counted.into_iter().eq(1..=5000));
    });
}

#[test]
fn an_error_in_a_pipeline_hurts_only_its_command() {
    both(|con| {
        let result: redis::RedisResult<Vec<Value>> =
            redis::pipe().set("text", "abc").incr("text", 1).set("after", "x").query(con);
        assert!(result.is_err());
        assert_eq!(con.mget::<_, Vec<String>>(&["text", "after"]).unwrap(), ["abc", "x"]);
    });
}

#[test]
fn errors() {
    both(|con| {
        let _: () = con.set("k", "v").unwrap();
        let refusal = con.hget::<_, _, String>("k", "f").unwrap_err();
        assert_eq!(refusal.code(), Some("WRONGTYPE"));
        let refusal = redis::cmd("NOSUCH").exec(con).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
        assert!(refusal.detail().unwrap().starts_with("unknown command 'NOSUCH'"));
        let refusal = redis::cmd("GET").exec(con).unwrap_err();
        assert_eq!(refusal.detail(), Some("wrong number of arguments for 'get' command"));
        assert_eq!(con.get::<_, String>("k").unwrap(), "v");
    });
}

#[test]
fn client_commands() {
    both(|con| {
        let id: i64 = con.client_id().unwrap();
        assert_eq!(con.client_getname::<Option<String>>().unwrap(), None);
        let _: () = con.client_setname("worker-1").unwrap();
        assert_eq!(con.client_getname::<String>().unwrap(), "worker-1");
        let list: String = redis::cmd("CLIENT").arg("LIST").query(con).unwrap();
        let mine = list.lines().find(|line| line.starts_with(&format!("id={id} "))).unwrap();
        assert!(mine.contains(" name=worker-1 ") && mine.contains(" cmd=client|list "));
    });
}

#[test]
fn client_kill() {
    both(|con| {
        let mut other = client(ProtocolVersion::RESP3, 0).get_connection().unwrap();
        let id: i64 = other.client_id().unwrap();
        let killed: i64 = redis::cmd("CLIENT").arg("KILL").arg("ID").arg(id).query(con).unwrap();
        assert_eq!(killed, 1);
        assert!(other.ping::<String>().unwrap_err().is_io_error());
    });
}

#[test]
fn config() {
    both(|con| {
        let get = |con: &mut Connection| -> HashMap<String, String> {
            redis::cmd("CONFIG").arg("GET").arg("slowlog-max-len").query(con).unwrap()
        };
        let set = |con: &mut Connection, value: &str| {
            redis::cmd("CONFIG").arg("SET").arg("slowlog-max-len").arg(value).exec(con).unwrap();
        };
        let before = get(con);
        set(con, "77");
        assert_eq!(get(con)["slowlog-max-len"], "77");
        set(con, &before["slowlog-max-len"]);
    });
}

#[test]
fn info() {
    both(|con| {
        let _: () = con.set("k", "v").unwrap();
        let info: InfoDict = redis::cmd("INFO").query(con).unwrap();
        assert_eq!(info.get::<String>("redis_mode").as_deref(), Some("standalone"));
        assert_eq!(info.get::<String>("role").as_deref(), Some("master"));
        assert!(info.get::<u64>("used_memory").unwrap() > 0);
        assert!(info.get::<u64>("connected_clients").unwrap() >= 1);
        assert!(info.get::<String>("db0").unwrap().starts_with("keys=1,expires=0"));
    });
}

#[test]
fn command_info() {
    both(|con| {
        type Row = (String, i64, Vec<String>, i64, i64, i64);
        let (get, missing): (Vec<Value>, Value) =
            redis::cmd("COMMAND").arg("INFO").arg("get").arg("nosuch").query(con).unwrap();
        let row: Row = redis::from_redis_value(Value::Array(get[..6].to_vec())).unwrap();
        assert_eq!((row.0.as_str(), row.1, row.3, row.4, row.5), ("get", 2, 1, 1, 1));
        assert!(row.2.iter().any(|flag| flag == "readonly"));
        assert_eq!(missing, Value::Nil);
    });
}
