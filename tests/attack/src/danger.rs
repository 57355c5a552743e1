//! Commands that a random client may not send as they come, with the reason for each. Everything else is sent as drawn.

use wire::Random;

use crate::vocabulary::fast_number;

/// What is done with a request before it is sent.
struct Rule {
    /// The words that it begins with.
    words: &'static [&'static str],
    #[expect(dead_code, reason = "the table is read by people")]
    reason: &'static str,
    treatment: Treatment,
}

enum Treatment {
    /// Not sent.
    Never,
    /// Sent once in so many draws.
    OneIn(usize),
    /// Its arguments are changed.
    Tame(fn(&mut Vec<Vec<u8>>, &mut Random)),
}

const RULES: &[Rule] = &[
    rule(&["shutdown"], "ends the server, which is what a crash looks like", Treatment::Tame(only_abort)),
    rule(&["config", "rewrite"], "with --addr it changes a file that is not ours", Treatment::Never),
    rule(&["config", "set"], "may lock every client out or move the data", Treatment::Tame(harmless_setting)),
    rule(
        &["client", "pause"],
        "a paused server does not answer PING",
        Treatment::Tame(|args, random| short_pause(args, random)),
    ),
    rule(&["client", "kill"], "sessions that end early reach less", Treatment::OneIn(8)),
    rule(&["debug", "sleep"], "a sleeping server does not answer PING", Treatment::Tame(short_sleep)),
    rule(
        &["debug", "populate"],
        "a million keys make everything else slow",
        Treatment::Tame(|args, random| few_keys(args, random)),
    ),
    rule(&["debug", "protocol", "attrib"], "the reader of replies knows no attributes", Treatment::Never),
    rule(
        &["debug", "protocol", "push"],
        "a push inside of a transaction's reply shifts its parts, in Redis too",
        Treatment::Never,
    ),
    rule(&["debug", "set-active-expire"], "expired keys would fill the memory", Treatment::Tame(active_expire)),
    rule(&["debug", "set-disable-deny-scripts"], "scripts could then do what is tamed here", Treatment::Never),
    rule(&["debug", "set-batch-bytes-max"], "what copies values would be refused", Treatment::Never),
    rule(&["debug", "reload"], "makes every key anew", Treatment::OneIn(10)),
    rule(&["flushall"], "an empty server is attacked less", Treatment::OneIn(50)),
    rule(&["flushdb"], "an empty server is attacked less", Treatment::OneIn(20)),
    rule(&["function", "flush"], "FCALL needs functions", Treatment::OneIn(20)),
    rule(&["script", "flush"], "EVALSHA needs scripts", Treatment::OneIn(20)),
    rule(&["save"], "writes everything to disk", Treatment::OneIn(20)),
    rule(&["bgsave"], "writes everything to disk", Treatment::OneIn(10)),
    rule(&["bgrewriteaof"], "writes everything to disk", Treatment::OneIn(10)),
    rule(&["monitor"], "copies the traffic of all connections", Treatment::OneIn(4)),
    rule(
        &["setrange"],
        "a huge offset is a huge string",
        Treatment::Tame(|args, random| small_offset(args, 2, random)),
    ),
    rule(&["setbit"], "a huge offset is a huge string", Treatment::Tame(|args, random| small_offset(args, 2, random))),
    rule(&["bitfield"], "a huge offset is a huge string", Treatment::Tame(|args, random| small_offsets(args, random))),
    rule(
        &["hrandfield"],
        "a negative count is the size of the reply",
        Treatment::Tame(|args, random| small_count(args, 2, random)),
    ),
    rule(
        &["zrandmember"],
        "a negative count is the size of the reply",
        Treatment::Tame(|args, random| small_count(args, 2, random)),
    ),
    rule(
        &["srandmember"],
        "a negative count is the size of the reply",
        Treatment::Tame(|args, random| small_count(args, 2, random)),
    ),
    rule(
        &["idx.create", "idx:updated_at"],
        "the configuration's own definition comes back with the next start",
        Treatment::Never,
    ),
    rule(&["replicaof"], "a replica refuses writes", Treatment::Never),
    rule(&["slaveof"], "a replica refuses writes", Treatment::Never),
    rule(&["failover"], "needs replicas", Treatment::Never),
    rule(&["acl"], "may lock every client out", Treatment::Never),
];

const fn rule(words: &'static [&'static str], reason: &'static str, treatment: Treatment) -> Rule {
    Rule { words, reason, treatment }
}

/// Makes a request fit to be sent, or says that it is not.
pub(crate) fn admit(args: &mut Vec<Vec<u8>>, random: &mut Random) -> bool {
    for rule in RULES {
        let applies = rule.words.len() <= args.len()
            && rule.words.iter().zip(args.iter()).all(|(word, arg)| arg.eq_ignore_ascii_case(word.as_bytes()));
        if !applies {
            continue;
        }
        match rule.treatment {
            Treatment::Never => return false,
            Treatment::OneIn(times) => return random.one_in(times),
            Treatment::Tame(tame) => tame(args, random),
        }
    }
    true
}

/// Whether it has the name of a command in it for which there is a rule. Such a request must not be damaged: one byte makes
/// SHUTDOWN of SHUTDOWN ABORT, and with a smaller count in front, the arguments behind it are inline requests.
pub(crate) fn is_listed(args: &[Vec<u8>]) -> bool {
    let has_rule = |arg: &Vec<u8>| RULES.iter().any(|rule| arg.eq_ignore_ascii_case(rule.words[0].as_bytes()));
    args.iter().any(has_rule)
}

fn only_abort(args: &mut Vec<Vec<u8>>, _: &mut Random) {
    args.truncate(1);
    args.push(b"ABORT".to_vec());
}

/// Settings whose odd values neither lock clients out, nor move or stop the journal, nor forbid all writes. `databases`
/// and the like cannot be set anyway; a name that the server does not know gets an error, which is an answer too.
fn harmless_setting(args: &mut Vec<Vec<u8>>, random: &mut Random) {
    const SETTINGS: &[(&str, &[&str])] = &[
        ("notify-keyspace-events", &["", "KEA", "AKE", "Exg", "z"]),
        ("appendfsync", &["always", "everysec", "no", "sometimes"]),
        ("slowlog-log-slower-than", &["-1", "0", "10000", "x"]),
        ("slowlog-max-len", &["0", "1", "128", "-1"]),
        ("latency-monitor-threshold", &["0", "1", "-1"]),
        ("latency-tracking", &["yes", "no", "maybe"]),
        ("latency-tracking-info-percentiles", &["", "50 99", "101", "0 100"]),
        ("hash-max-listpack-entries", &["0", "1", "8", "32", "512"]),
        ("hash-max-listpack-value", &["0", "1", "64", "1000"]),
        ("zset-max-listpack-entries", &["0", "1", "8", "32", "128"]),
        ("zset-max-listpack-value", &["0", "1", "64", "1000"]),
        ("set-max-intset-entries", &["0", "1", "8", "512"]),
        ("maxmemory-policy", &["noeviction", "allkeys-lru", "volatile-ttl", "none"]),
        ("lfu-log-factor", &["0", "10", "-1"]),
        ("lfu-decay-time", &["0", "1", "9999999999999"]),
        ("tracking-table-max-keys", &["0", "1", "10", "1000000"]),
        ("auto-aof-rewrite-percentage", &["0", "1", "100"]),
        ("loglevel", &["debug", "notice", "warning", "loud"]),
        ("activedefrag", &["yes", "no"]),
        ("no-such-setting", &["1"]),
    ];
    args.truncate(2);
    for _ in 0..1 + random.below(2) {
        let (name, values) = random.pick(SETTINGS);
        args.push(name.into());
        args.push(random.pick(values).into());
    }
}

/// Shorter than any check of whether the server answers.
fn short_pause(args: &mut [Vec<u8>], random: &mut Random) {
    if let Some(timeout) = args.get_mut(2)
        && fast_number(timeout).is_some_and(|ms| ms > 80)
    {
        *timeout = random.below(80).to_string().into_bytes();
    }
}

fn short_sleep(args: &mut Vec<Vec<u8>>, random: &mut Random) {
    args.truncate(2);
    args.push(random.pick(&["0", "0.01", "-1", "nan", "x"]).into());
}

fn few_keys(args: &mut [Vec<u8>], random: &mut Random) {
    if let Some(count) = args.get_mut(2)
        && fast_number(count).is_none_or(|count| count > 50)
    {
        *count = random.below(50).to_string().into_bytes();
    }
    if let Some(size) = args.get_mut(4)
        && fast_number(size).is_none_or(|size| size > 1000)
    {
        *size = random.below(1000).to_string().into_bytes();
    }
}

fn active_expire(args: &mut Vec<Vec<u8>>, _: &mut Random) {
    args.truncate(2);
    args.push(b"1".to_vec());
}

fn small_offset(args: &mut [Vec<u8>], at: usize, random: &mut Random) {
    if let Some(offset) = args.get_mut(at)
        && fast_number(offset).is_some_and(|offset| offset > 4_000)
        && !random.one_in(30)
    {
        *offset = random.below(4_000).to_string().into_bytes();
    }
}

fn small_offsets(args: &mut [Vec<u8>], random: &mut Random) {
    for at in 2..args.len() {
        small_offset(args, at, random);
    }
}

fn small_count(args: &mut [Vec<u8>], at: usize, random: &mut Random) {
    if let Some(count) = args.get_mut(at)
        && fast_number(count).is_some_and(|count| (-1_000_000_000..-1_000).contains(&count))
        && !random.one_in(30)
    {
        *count = format!("-{}", random.below(1_000)).into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(line: &str, random: &mut Random) -> Option<Vec<String>> {
        let mut args: Vec<Vec<u8>> = line.split(' ').map(Into::into).collect();
        admit(&mut args, random).then(|| args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect())
    }

    #[test]
    fn what_would_end_the_run_is_never_sent_as_it_is() {
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            assert_eq!(admitted("shutdown NOSAVE", &mut random).unwrap(), ["shutdown", "ABORT"]);
            assert_eq!(admitted("CONFIG rewrite", &mut random), None);
            let setting = admitted("Config Set requirepass x dir /", &mut random).unwrap().join(" ");
            assert!(!setting.contains("requirepass") && !setting.contains("dir"), "{setting}");
            let pause = admitted("CLIENT PAUSE 9223372036854775807", &mut random).unwrap();
            assert!(pause[2].parse::<u64>().unwrap() < 100, "{pause:?}");
            let sleep = admitted("debug sleep 1000", &mut random).unwrap();
            assert_ne!(sleep[2], "1000");
        }
    }

    #[test]
    fn what_is_rare_is_sent_now_and_then() {
        let mut random = Random::new(1);
        let sent = (0..10_000).filter(|_| admitted("FLUSHALL", &mut random).is_some()).count();
        assert!((100..400).contains(&sent), "{sent}");
    }

    #[test]
    fn all_else_is_sent_as_it_is() {
        let mut random = Random::new(1);
        assert_eq!(admitted("SET shutdown 1", &mut random).unwrap(), ["SET", "shutdown", "1"]);
        assert_eq!(admitted("SETRANGE a 100 x", &mut random).unwrap(), ["SETRANGE", "a", "100", "x"]);
    }
}
