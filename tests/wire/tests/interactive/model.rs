//! A random history of transactions and plain commands of several clients, checked for serializability: every committed
//! transaction answers as if all its commands had run at its commit. The judge is the server itself: whatever took effect
//! in database 0 is repeated in database 1, in the order of the commits, by plain commands one after the other. Then both
//! databases hold the same.

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use wire::{Connection, Random, Reply};

use crate::start;

const CLIENTS: usize = 4;
const KEYS: [&str; 6] = ["k1", "k2", "{t}k3", "{t}k4", "k5", "k6"];

/// One client and the transaction that it has open.
struct Client {
    connection: Connection,
    open: Option<Open>,
}

#[derive(Default)]
struct Open {
    /// Its commands with their replies.
    commands: Vec<(String, Reply)>,
    /// What each key was when it was first touched: how often others had written it, and its value.
    touched: BTreeMap<&'static str, (u64, Reply)>,
    has_failed: bool,
}

/// What the driver knows of database 0.
struct History {
    judge: Connection,
    /// Looks at database 0 from outside.
    observer: Connection,
    /// How often each key was written in it.
    written: BTreeMap<&'static str, u64>,
    committed: usize,
    conflicts: usize,
}

#[test]
fn a_random_history_of_transactions_is_serializable() {
    let Some(session) = start() else { return };
    let mut random = Random::from_env();
    let steps = env::var("HOLDFAST_TEST_STEPS").map_or(6000, |steps| steps.parse().expect("a number of steps"));
    let client = |_| Client { connection: session.connect(), open: None };
    let mut clients: Vec<Client> = (0..CLIENTS).map(client).collect();
    let mut judge = session.connect();
    judge.run("SELECT 1");
    let written = KEYS.map(|key| (key, 0)).into();
    let mut history = History { judge, observer: session.connect(), written, committed: 0, conflicts: 0 };
    for _ in 0..steps {
        let client = &mut clients[random.below(CLIENTS)];
        match &client.open {
            None if random.one_in(3) => {
                assert!(!client.connection.run("TXN.BEGIN").is_error());
                client.open = Some(Open::default());
            }
            None => history.run_plain(client, &mut random),
            Some(_) if random.one_in(6) => history.end(client, &mut random),
            Some(_) => history.run_inside(client, &mut random),
        }
    }
    for client in &mut clients {
        client.connection.run("RESET");
    }
    for key in KEYS {
        assert_eq!(history.value_in_0(key), history.judge.run(&format!("DUMP {key}")), "{key}");
    }
    assert!(history.committed > 0 && history.conflicts > 0, "{} {}", history.committed, history.conflicts);
}

impl History {
    fn value_in_0(&mut self, key: &str) -> Reply {
        self.observer.run(&format!("DUMP {key}"))
    }

    /// A plain command, which takes effect at once.
    fn run_plain(&mut self, client: &mut Client, random: &mut Random) {
        let command = random_command(random);
        let reply = client.connection.run(&command);
        self.took_effect(&command, &reply);
        self.note_written(&command);
    }

    /// A command of an open transaction. It may find that the transaction has lost.
    fn run_inside(&mut self, client: &mut Client, random: &mut Random) {
        let command = random_command(random);
        let keys = keys_of(&command);
        for key in &keys {
            let now = (self.written[key], self.value_in_0(key));
            client.open.as_mut().expect("it is open").touched.entry(key).or_insert(now);
        }
        let reply = client.connection.run(&command);
        let open = client.open.as_mut().expect("it is open");
        match is_conflict(&reply) {
            true if open.has_failed => {}
            true => {
                assert!(self.may_have_changed(open), "{command} conflicts, though nobody else has written its keys");
                open.has_failed = true;
                self.conflicts += 1;
            }
            false => {
                assert!(!open.has_failed, "{command} was answered in a failed transaction: {reply:?}");
                open.commands.push((command, reply));
            }
        }
    }

    fn end(&mut self, client: &mut Client, random: &mut Random) {
        let open = client.open.take().expect("it is open");
        if random.one_in(5) {
            assert!(!client.connection.run("TXN.ROLLBACK").is_error());
            return;
        }
        let (may_have_changed, has_changed) = (self.may_have_changed(&open), self.has_changed(&open));
        let reply = client.connection.run("TXN.COMMIT");
        if is_conflict(&reply) {
            assert!(open.has_failed || may_have_changed, "a conflict, though nobody else has written its keys");
            self.conflicts += usize::from(!open.has_failed);
            return;
        }
        assert!(reply.integer() >= 0);
        assert!(!open.has_failed && !has_changed, "committed, though {:?} have changed", open.touched.keys());
        self.committed += 1;
        // At this point of the history all of it happens at once.
        for (command, reply) in &open.commands {
            self.took_effect(command, reply);
        }
        for (command, _) in &open.commands {
            self.note_written(command);
        }
    }

    /// Repeats in database 1 what took effect in database 0.
    fn took_effect(&mut self, command: &str, reply: &Reply) {
        assert_eq!(self.judge.run(command), *reply, "{command}");
    }

    fn note_written(&mut self, command: &str) {
        if is_write(command) {
            for key in keys_of(command) {
                *self.written.get_mut(key).expect("all keys are known") += 1;
            }
        }
    }

    fn may_have_changed(&self, open: &Open) -> bool {
        open.touched.iter().any(|(key, (written, _))| self.written[key] != *written)
    }

    fn has_changed(&mut self, open: &Open) -> bool {
        open.touched.iter().any(|(key, (_, value))| self.value_in_0(key) != *value)
    }
}

fn is_conflict(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"CONFLICT"))
}

/// The known keys that a command names.
fn keys_of(command: &str) -> BTreeSet<&'static str> {
    command.split(' ').filter_map(|word| KEYS.into_iter().find(|key| *key == word)).collect()
}

const READS: &[&str] = &[
    "GET A",
    "MGET A B C",
    "STRLEN A",
    "EXISTS A B",
    "TYPE A",
    "HGETALL A",
    "HGET A f1",
    "SCARD A",
    "SISMEMBER A 1",
    "SINTERCARD 2 A B",
    "ZCARD A",
    "ZSCORE A m1",
    "ZRANGE A 0 -1 WITHSCORES",
    "BITCOUNT A",
    "SINTER A B",
    "PEXPIRETIME A",
    "HPEXPIRETIME A FIELDS 2 f1 f2",
    "TOUCH A B",
    "DUMP A",
    "GETBIT A 5",
    "EVAL_RO return_{redis.pcall('strlen',KEYS[1])} 1 A",
];

const WRITES: &[&str] = &[
    "SET A N",
    "SET A N",
    "SETNX A N",
    "APPEND A N",
    "INCR A",
    "INCRBY A N",
    "GETSET A N",
    "GETDEL A",
    "SETRANGE A 3 x",
    "MSET A N B N",
    "MSETNX A N B N",
    "SETBIT A 9 1",
    "BITOP OR A B C",
    "BITOP NOT A B",
    "DEL A",
    "DEL A B",
    "UNLINK A",
    "HSET A f1 N f2 N",
    "HDEL A f1",
    "HINCRBY A f1 N",
    "HSETNX A f3 N",
    "HCAS A f1 1 2",
    "HCAS A IF 1 f1 1 SET 1 f2 N DEL 1 f1",
    "HPEXPIREAT A 99999999999999 FIELDS 1 f1",
    "HPERSIST A FIELDS 1 f1",
    "SADD A N 1",
    "SREM A 1",
    "SMOVE A B 1",
    "SPOP A 9",
    "SINTERSTORE A B C",
    "SUNIONSTORE A B C",
    "ZADD A N m1 2 m2",
    "ZINCRBY A N m1",
    "ZREM A m1",
    "ZPOPMIN A",
    "ZUNIONSTORE A 2 B C",
    "ZRANGESTORE A B 0 1",
    "RENAME A B",
    "RENAMENX A B",
    "COPY A B",
    "COPY A B REPLACE",
    "PEXPIREAT A 99999999999999",
    "PERSIST A",
    "ZPOPMAX A",
    "EVAL return_redis.call('incr',KEYS[1]) 1 A",
    "EVAL redis.call('set',KEYS[1],ARGV[1]);return_redis.call('append',KEYS[2],ARGV[1]) 2 A B N",
];

fn is_write(command: &str) -> bool {
    let name = |of: &str| of.split(' ').next().expect("a name").to_owned();
    WRITES.iter().any(|write| name(write) == name(command))
}

/// A random command over random keys. Its reply depends on nothing but the keys.
fn random_command(random: &mut Random) -> String {
    let template = if random.one_in(2) { random.pick(READS) } else { random.pick(WRITES) };
    let words = template.split(' ').map(|word| match word {
        "A" | "B" | "C" => random.pick(&KEYS).to_owned(),
        "N" => random.below(5).to_string(),
        // A script is one word to us, and quoted.
        _ if word.contains("KEYS[") => format!("\"{}\"", word.replace('_', " ")),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
