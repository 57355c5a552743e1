//! Random users and random commands, on the server and on a Redis beside it: both allow the same.

use wire::{Connection, Random, Redis, Reply, skip};

use crate::support::Own;

const USERS: usize = 60;
const REQUESTS: usize = 60;
const KEYS: &[&str] = &["a:1", "a:2", "b1", "k1", "k3", "x", "y", "0"];
const CHANNELS: &[&str] = &["ch1", "news", "nx", "zz", "n?", "ch*"];

/// A command, its arity and its categories. Where Redis has changed these since 7.0, the two servers differ (WAIT).
type Row = (String, i64, String);

fn names(connection: &mut Connection) -> Vec<Row> {
    let row = |row: &Reply| {
        let mut categories: Vec<String> = row.items()[6].items().iter().map(Reply::to_string).collect();
        categories.sort_unstable();
        (row.items()[0].text().to_owned(), row.items()[1].integer(), categories.join(" "))
    };
    let mut all = Vec::new();
    for command in connection.run("COMMAND").items() {
        let subcommands = command.items()[9].items();
        if subcommands.is_empty() {
            all.push(row(command));
        }
        all.extend(subcommands.iter().map(row));
    }
    all
}

fn rules(random: &mut Random, names: &[Row], categories: &[String], may_nest: bool) -> Vec<String> {
    let count = 1 + random.below(8);
    (0..count)
        .map(|_| {
            let sign = random.pick(&["+", "-"]);
            match random.below(if may_nest { 12 } else { 11 }) {
                0 | 1 => format!("{sign}@{}", categories[random.below(categories.len())]),
                2..5 => format!("{sign}{}", names[random.below(names.len())].0),
                5 => format!("+{}|{}", random.pick(&["get", "set", "select", "del"]), random.pick(&["a:1", "0", "b"])),
                6 | 7 => format!(
                    "{}{}",
                    random.pick(&["~", "%R~", "%W~", "%RW~"]),
                    random.pick(&["a:*", "b?", "*", "k[12]", "x"])
                ),
                8 | 9 => format!("&{}", random.pick(&["ch*", "*", "news", "n?"])),
                10 => random
                    .pick(&["allkeys", "resetkeys", "allchannels", "resetchannels", "allcommands", "nocommands"])
                    .to_owned(),
                _ => format!("({})", rules(random, names, categories, false).join(" ")),
            }
        })
        .collect()
}

#[test]
fn both_servers_allow_the_same() {
    let Some(redis) = Redis::start() else { return skip("there is no redis-server") };
    let Some(mut own) = Own::start(&[]) else { return };
    let (mut judge, ours) = (redis.connect(), &mut own.admin);
    let mut random = Random::from_env();
    let known = names(ours);
    let names: Vec<Row> = names(&mut judge).into_iter().filter(|row| known.contains(row)).collect();
    let listed = judge.run("ACL CAT");
    let categories: Vec<String> =
        listed.items().iter().map(|name| name.text().to_owned()).chain(["all".to_owned()]).collect();
    let (mut allowed, mut refused) = (0, 0);
    for number in 0..USERS {
        let rules = rules(&mut random, &names, &categories, true);
        let words: Vec<String> = ["ACL", "SETUSER", &format!("u{number}")]
            .iter()
            .map(|word| (*word).to_owned())
            .chain(rules.clone())
            .collect();
        let made = (judge.run_args(&words).to_string(), ours.run_args(&words).to_string());
        assert_eq!(made.0, made.1, "{rules:?}");
        for _ in 0..REQUESTS {
            let (name, arity, _) = &names[random.below(names.len())];
            let mut request: Vec<String> = name.split('|').map(str::to_owned).collect();
            let missing = (arity.unsigned_abs() as usize).saturating_sub(request.len());
            let more = missing + if *arity < 0 { random.below(3) } else { 0 };
            let pool = if name.contains("subscribe") || name.contains("publish") { CHANNELS } else { KEYS };
            request.extend((0..more).map(|_| random.pick(pool).to_owned()));
            // A count of keys that is none: Redis then sees no keys, and would fail later.
            if name.ends_with("store") && name.starts_with('z') || *name == "pfmerge" && request.len() < 3 {
                continue;
            }
            let words: Vec<String> = ["ACL", "DRYRUN", &format!("u{number}")]
                .iter()
                .map(|word| (*word).to_owned())
                .chain(request.clone())
                .collect();
            let replies = (judge.run_args(&words).to_string(), ours.run_args(&words).to_string());
            if replies.0.starts_with('-') || replies.1.starts_with('-') {
                continue;
            }
            assert_eq!(replies.0 == "+OK", replies.1 == "+OK", "{rules:?} {request:?}: {replies:?}");
            if replies.0 == "+OK" { allowed += 1 } else { refused += 1 }
        }
    }
    assert!(allowed > 100 && refused > 100, "{allowed} {refused}");
}
