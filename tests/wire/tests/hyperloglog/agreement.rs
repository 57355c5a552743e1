//! Random commands on HyperLogLogs: every reply, and every byte of the strings, must be those of a Redis.

use wire::{Random, agree_with_redis, spoil};

const KEYS: &[&str] = &["a", "b", "c", "d", "e"];
/// Its bytes are damaged now and then. One element at a time: of several, Redis keeps those before the one that it refuses.
const DAMAGED: &str = "damaged";
/// The end of a cached count that is stale, and runs that do not make up the registers, or do in an odd way. None is cut short:
/// there Redis reads what happens to lie behind the string.
const DAMAGED_RUNS: &[&str] = &[
    "\\x80\\x7f\\xfe",
    "\\x80\\x7f\\xff\\x00",
    "\\x80\\x7f\\xff\\x83",
    "\\x80\\x80\\x80\\x80\\x80\\x7f\\xfb",
    "\\x80\\x83\\x87\\xff\\x40\\x00\\x00\\x7f\\xf1",
    "\\x80",
    "\\x00\\x7f\\xff",
];
const ODD_WORDS: &[&str] = &["q", "\"\"", "nosuch", "a", "number", "hash", "GETREG", "TODENSE"];

#[test]
fn random_commands_agree_with_redis() {
    let readings: Vec<String> = KEYS
        .iter()
        .flat_map(|key| ["GET", "PFCOUNT", "GET", "OBJECT ENCODING", "TTL"].map(|read| format!("{read} {key}")))
        .collect();
    let restore = "CONFIG SET hll-sparse-max-bytes 3000".to_owned();
    agree_with_redis(2_000, next_command, &[readings, vec![restore]].concat());
}

fn next_command(random: &mut Random) -> String {
    let command = command(random);
    if random.one_in(20) && !command.contains(DAMAGED) { spoil(random, &command, ODD_WORDS) } else { command }
}

fn command(random: &mut Random) -> String {
    let key = random.pick(KEYS);
    match random.below(36) {
        0..=11 => {
            let from = random.below(2_000);
            let elements: Vec<String> = (from..from + random.below(6)).map(|number| format!("e{number}")).collect();
            format!("PFADD {key} {}", elements.join(" "))
        }
        12 => {
            let from = random.below(20_000);
            let elements: Vec<String> = (from..from + 60).map(|number| number.to_string()).collect();
            format!("PFADD {key} {}", elements.join(" "))
        }
        13..=17 => format!("PFCOUNT {key}"),
        18 => format!("PFCOUNT {key} {} {}", random.pick(KEYS), random.pick(KEYS)),
        19 | 20 => format!("PFMERGE {key} {} {}", random.pick(KEYS), random.pick(KEYS)),
        21 => format!("PFMERGE {key}"),
        22..=24 => format!("GET {key}"),
        25 => format!("PFDEBUG ENCODING {key}"),
        26 => format!("PFDEBUG DECODE {key}"),
        27 if random.one_in(8) => format!("PFDEBUG GETREG {key}"),
        28 if random.one_in(4) => format!("PFDEBUG TODENSE {key}"),
        29 => format!("CONFIG SET hll-sparse-max-bytes {}", random.pick(&[0, 30, 100, 300, 3_000, 3_000, 16_000])),
        30 => format!("DEL {key}"),
        31 => match random.below(12) {
            0 | 1 => format!("SET {DAMAGED} \"HYLL\\x01{}{}\"", "\\x00".repeat(10), random.pick(DAMAGED_RUNS)),
            2 => format!("PFCOUNT {key} {DAMAGED}"),
            3 => format!("PFMERGE {key} {DAMAGED}"),
            4 => format!("PFMERGE {DAMAGED} {key}"),
            5 => format!("DEL {DAMAGED}"),
            6 => format!("PFCOUNT {DAMAGED}"),
            7 => format!("PFDEBUG DECODE {DAMAGED}"),
            8 => format!("GET {DAMAGED}"),
            _ => format!("PFADD {DAMAGED} e{}", random.below(2_000)),
        },
        32 => format!("STRLEN {key}"),
        33 => format!("PFADD {key} one{}", random.below(100_000)),
        34 if random.one_in(4) => format!("EXPIRE {key} 1000"),
        34 if random.one_in(20) => "SET number 12345".into(),
        34 if random.one_in(20) => "HSET hash f v".into(),
        _ => format!("OBJECT ENCODING {key}"),
    }
}
