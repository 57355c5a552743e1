//! Random SORTs: every reply must be that of a Redis.

use wire::{Random, agree_with_redis, spoil};

const KEYS: &[&str] = &["l1", "l2", "long", "z1", "z2", "s1", "s2"];
const NUMBERS: &[&str] = &["0", "1", "2", "3", "10", "-1", "1.5", "1e2", "0x1f", "inf", "7", "42", "007"];
const TEXTS: &[&str] = &["a", "b", "B", "ab", "\"\"", "\"a\\x00b\"", "\"a\\x00c\"", "\"\\xff\"", "10", "9", "x"];
const PATTERNS: &[&str] = &["w_*", "w_*", "h_*->n", "h_*->t", "h_*->nosuch", "*", "nothing_*", "w_*_"];
const ODD_WORDS: &[&str] = &[
    "q",
    "\"\"",
    "LIMIT",
    "BY",
    "GET",
    "STORE",
    "ALPHA",
    "-1",
    "9223372036854775808",
    "#",
    "nosort",
    "hash",
    "->",
    "*->f",
];

#[test]
fn random_commands_agree_with_redis() {
    let readings: Vec<String> = ["l1", "l2", "long", "d1", "d2"].map(|key| format!("LRANGE {key} 0 -1")).to_vec();
    agree_with_redis(5_000, next_command, &readings);
}

fn next_command(random: &mut Random) -> String {
    let command = command(random);
    // Spoiled, it may keep the order in which a set is read, which is each server's own.
    let is_of_set = [" s1", " s2", " z1", " z2"].iter().any(|key| command.contains(key));
    if random.one_in(15) && !is_of_set { spoil(random, &command, ODD_WORDS) } else { command }
}

fn command(random: &mut Random) -> String {
    // Texts that differ behind a NUL are equal to SORT: in a set, their order is each server's own.
    let element = if random.one_in(12) { random.pick(&["a", "b", "B", "x", "\"\""]) } else { random.pick(NUMBERS) };
    match random.below(30) {
        0 => format!("RPUSH {} {element} {}", random.pick(&["l1", "l2"]), random.pick(NUMBERS)),
        1 => format!("RPUSH l2 {}", random.pick(TEXTS)),
        2 => format!("RPUSH long {}", (0..20).map(|_| random.below(60).to_string()).collect::<Vec<_>>().join(" ")),
        3 => format!("LTRIM {} 0 {}", random.pick(&["l1", "l2", "long"]), random.below(120)),
        4 => format!("ZADD {} {} {element}", random.pick(&["z1", "z2"]), random.below(5)),
        5 => format!("SADD s1 {element}"),
        6 => format!("SADD s2 {}", random.below(50)),
        7 => format!("SET w_{element} {}", random.pick(NUMBERS)),
        8 => format!("SET w_{} {}", random.below(60), random.below(6)),
        9 => format!("HSET h_{} n {} t {}", random.below(60), random.below(6), random.pick(TEXTS)),
        10 => format!("DEL w_{} h_{}", random.below(60), random.below(60)),
        11 if random.one_in(6) => format!("DEL {}", random.pick(KEYS)),
        12 => format!("LRANGE {} 0 -1", random.pick(&["d1", "d2"])),
        13 if random.one_in(6) => "HSET hash f v".into(),
        _ => sort(random),
    }
}

fn sort(random: &mut Random) -> String {
    let key = random.pick(KEYS);
    let mut options = Vec::new();
    let by = random.pick(&["", "", "pattern", "pattern", "nosort"]);
    let stores = random.one_in(4);
    match by {
        "pattern" => options.push(format!("BY {}", random.pick(PATTERNS))),
        // What a set's own order is, each server says for itself.
        "nosort" if stores || !key.starts_with('s') => options.push("BY nosort".into()),
        _ => {}
    }
    // Sorted by equal texts, elements of a set are in the order in which they were.
    let is_tied = by == "pattern" && !key.starts_with('l');
    if random.one_in(3) && !is_tied {
        options.push("ALPHA".into());
    }
    if random.one_in(2) {
        options.push(random.pick(&["ASC", "DESC"]).into());
    }
    if random.one_in(3) {
        options.push(format!("LIMIT {} {}", random.below(12) as i64 - 2, random.below(14) as i64 - 2));
    }
    for _ in 0..random.below(3) {
        options.push(format!("GET {}", random.pick(&["#", "w_*", "h_*->t", "h_*", "nothing", "*"])));
    }
    let name = if stores { "SORT" } else { random.pick(&["SORT", "SORT", "SORT_RO"]) };
    if stores {
        options.push(format!("STORE {}", random.pick(&["d1", "d2", "d2", "l1"])));
    }
    format!("{name} {key} {}", options.join(" "))
}
