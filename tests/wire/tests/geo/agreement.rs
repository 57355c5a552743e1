//! Random commands about places: every reply must be that of a Redis.

use wire::{Random, agree_with_redis, spoil};

const KEYS: &[&str] = &["a", "b", "c", "dense"];
const MEMBERS: &[&str] = &["m1", "m2", "m3", "m4", "m5", "twin1", "twin2", "twin3", "\"\"", "\"\\x00\\xff\"", "nosuch"];
const UNITS: &[&str] = &["m", "km", "ft", "mi", "KM", "Mi"];
const RADII: &[&str] = &["0", "1", "10", "100.5", "1000", "5000", "20000", "1e5", "1e7", "inf", "0.0001", "3e5"];
/// Corners of the map and places that several members have, so that distances are equal.
const PLACES: &[&str] = &[
    "13.361389 38.115556",
    "15.087269 37.502669",
    "0 0",
    "180 85.05112878",
    "-180 -85.05112878",
    "179.9999 1",
    "2 48",
];
const ODD_WORDS: &[&str] = &[
    "nan",
    "q",
    "\"\"",
    "181",
    "-86",
    "1e400",
    "-1",
    "0",
    "9223372036854775808",
    "NX",
    "XX",
    "CH",
    "ANY",
    "COUNT",
    "ASC",
    "WITHDIST",
    "WITHCOORD",
    "STORE",
    "STOREDIST",
    "FROMMEMBER",
    "FROMLONLAT",
    "BYRADIUS",
    "BYBOX",
    "m",
    "parsec",
];

#[test]
fn random_commands_agree_with_redis() {
    let readings: Vec<String> = KEYS
        .iter()
        .flat_map(|key| [format!("ZRANGE {key} 0 -1 WITHSCORES"), format!("OBJECT ENCODING {key}")])
        .collect();
    agree_with_redis(5_000, next_command, &readings);
}

fn next_command(random: &mut Random) -> String {
    let command = command(random);
    if random.one_in(12) { spoil(random, &command, ODD_WORDS) } else { command }
}

fn command(random: &mut Random) -> String {
    let (key, member, other) = (random.pick(KEYS), random.pick(MEMBERS), random.pick(MEMBERS));
    match random.below(30) {
        0..=4 => {
            let rules = random.pick(&["", "", "", "NX", "XX", "CH", "XX CH", "CH NX"]);
            let members = (0..1 + random.below(5)).map(|_| format!("{} {}", place(random), random.pick(MEMBERS)));
            format!("GEOADD {key} {rules} {}", members.collect::<Vec<_>>().join(" "))
        }
        5..=7 => {
            let from = random.below(300);
            let members = (from..from + 20).map(|number| format!("{} p{number}", near(random)));
            format!("GEOADD dense {}", members.collect::<Vec<_>>().join(" "))
        }
        8 => format!("GEOHASH {key} {member} {other} p{}", random.below(300)),
        9 => format!("GEOPOS {key} {member} {other} p{}", random.below(300)),
        10 | 11 => format!("GEODIST {key} {member} {other} {}", random.pick(&["", "m", "km", "ft", "MI"])),
        12 => format!("GEODIST dense p{} p{} {}", random.below(300), random.below(300), random.pick(UNITS)),
        13..=19 => format!("GEOSEARCH {key} {} {} {}", from(random), by(random), options(random, true)),
        20 | 21 => {
            let distance = if random.one_in(2) { "STOREDIST" } else { "" };
            format!(
                "GEOSEARCHSTORE {} {key} {} {} {} {distance}",
                random.pick(KEYS),
                from(random),
                by(random),
                options(random, false)
            )
        }
        22 => format!("GEORADIUS_RO {key} {} {} {}", place(random), radius(random), options(random, true)),
        23 => format!("GEORADIUSBYMEMBER_RO {key} {member} {} {}", radius(random), options(random, true)),
        24 | 25 => {
            format!("GEORADIUS {key} {} {} {} {}", place(random), radius(random), options(random, false), store(random))
        }
        26 => {
            format!("GEORADIUSBYMEMBER {key} {member} {} {} {}", radius(random), options(random, false), store(random))
        }
        27 => format!("ZREM {key} {member} p{}", random.below(300)),
        28 => {
            // Scores that no place has.
            let score = random.pick(&["1.5", "-1", "4503599627370496", "1e15", "3471579339700058", "9007199254740993"]);
            format!("ZADD {key} {score} {member}")
        }
        _ if random.one_in(8) => format!("DEL {key}"),
        _ => format!("ZCARD {key}"),
    }
}

fn place(random: &mut Random) -> String {
    match random.below(4) {
        0 => random.pick(PLACES).to_owned(),
        1 => near(random),
        _ => {
            let degrees = |random: &mut Random, max: i64| {
                (random.below(max as usize * 2_000_001) as i64 - max * 1_000_000) as f64 / 1e6
            };
            format!("{} {}", degrees(random, 179), degrees(random, 84))
        }
    }
}

/// A place on a small grid, where many have the same distances.
fn near(random: &mut Random) -> String {
    format!("{} {}", 10.0 + random.below(12) as f64 / 8.0, 45.0 + random.below(12) as f64 / 8.0)
}

fn radius(random: &mut Random) -> String {
    format!("{} {}", random.pick(RADII), random.pick(UNITS))
}

fn from(random: &mut Random) -> String {
    match random.below(3) {
        0 => format!("FROMMEMBER {}", random.pick(MEMBERS)),
        1 => format!("FROMMEMBER p{}", random.below(300)),
        _ => format!("FROMLONLAT {}", place(random)),
    }
}

fn by(random: &mut Random) -> String {
    match random.below(2) {
        0 => format!("BYRADIUS {}", radius(random)),
        _ => format!("BYBOX {} {} {}", random.pick(RADII), random.pick(RADII), random.pick(UNITS)),
    }
}

fn options(random: &mut Random, with: bool) -> String {
    let mut options = Vec::new();
    for word in ["WITHDIST", "WITHCOORD", "WITHHASH"] {
        if with && random.one_in(3) {
            options.push(word.to_owned());
        }
    }
    if random.one_in(2) {
        options.push(random.pick(&["ASC", "DESC"]).to_owned());
    }
    if random.one_in(2) {
        let any = random.pick(&["", "", " ANY"]);
        options.push(format!("COUNT {}{any}", random.pick(&[1, 2, 3, 5, 10, 40, 100, 1000])));
    }
    options.join(" ")
}

fn store(random: &mut Random) -> String {
    match random.below(3) {
        0 => String::new(),
        1 => format!("STORE {}", random.pick(KEYS)),
        _ => format!("STOREDIST {}", random.pick(KEYS)),
    }
}
