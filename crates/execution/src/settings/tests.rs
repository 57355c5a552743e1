//! CONFIG SET and CONFIG GET as Redis 7.0 answers them.

use super::events::Events;
use super::*;

fn set(settings: &Settings, words: &[&str]) -> Result<Vec<&'static str>, String> {
    let pairs: Vec<(&[u8], &[u8])> = words.chunks(2).map(|pair| (pair[0].as_bytes(), pair[1].as_bytes())).collect();
    let changed = settings.set(&pairs)?;
    Ok(changed.into_iter().map(|index| TABLE[index].name).collect())
}

fn get(settings: &Settings, patterns: &[&str]) -> Vec<(String, String)> {
    let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
    let mut out = Vec::new();
    settings.get(&patterns, &mut out);
    out
}

fn value(settings: &Settings, name: &str) -> String {
    let [(_, value)] = get(settings, &[name]).try_into().expect("one setting");
    value
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    list.iter().map(owned).collect()
}

#[test]
fn defaults_print_as_they_are_written() {
    let settings = Settings::new();
    for row in TABLE {
        assert_eq!(value(&settings, row.name), row.default, "{}", row.name);
    }
    assert_eq!(settings.changed_from_defaults(), []);
}

#[test]
fn every_value_can_be_written_back() {
    let settings = Settings::new();
    for row in TABLE {
        let got = set(&settings, &[row.name, row.default]);
        match row.access {
            Access::Live | Access::Pinned if row.names_file => assert_eq!(got, Ok(vec![row.name])),
            Access::Live | Access::Pinned => assert_eq!(got, Ok(vec![]), "{}", row.name),
            Access::Protected | Access::Immutable => assert!(got.is_err(), "{}", row.name),
        }
    }
}

/// A tool that writes back what CONFIG GET * has listed leaves out what it knows to be fixed in Redis. It cannot know
/// our own settings, nor names that are newer than itself (`server_cpulist` until 7.0).
#[test]
fn settings_unknown_to_redis_accept_only_their_current_value() {
    let settings = Settings::new();
    for (name, other) in [("threads", "3"), ("shards", "64"), ("log-format", "json"), ("server-cpulist", "0-1")] {
        assert_eq!(set(&settings, &[name, &value(&settings, name)]), Ok(vec![]), "{name}");
        let refused = set(&settings, &[name, other]).unwrap_err();
        assert!(refused.ends_with("can't set immutable config"), "{refused}");
    }
}

#[test]
fn errors_have_redis_texts() {
    let settings = Settings::new();
    let cases: &[(&[&str], &str)] = &[
        (&["foo", "5"], "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"),
        (&["foo\0bar", "5"], "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"),
        (
            &["DATABASES", "5"],
            "ERR CONFIG SET failed (possibly related to argument 'DATABASES') - can't set immutable config",
        ),
        (&["dir", "/tmp"], "ERR CONFIG SET failed (possibly related to argument 'dir') - can't set protected config"),
        (
            &["MaxMemory", "abc"],
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value",
        ),
        (
            &["HASH-MAX-ZIPLIST-ENTRIES", "abc"],
            "ERR CONFIG SET failed (possibly related to argument 'hash-max-ziplist-entries') - \
             argument couldn't be parsed into an integer",
        ),
        (
            &["timeout", "-1"],
            "ERR CONFIG SET failed (possibly related to argument 'timeout') - \
             argument must be between 0 and 2147483647 inclusive",
        ),
        (
            &["maxmemory", "1", "MAXMEMORY", "2"],
            "ERR CONFIG SET failed (possibly related to argument 'MAXMEMORY') - duplicate parameter",
        ),
        // Names are checked before any value is.
        (&["maxmemory", "abc", "foo", "2"], "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"),
        (
            &["maxmemory", "abc", "databases", "2"],
            "ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config",
        ),
        (
            &["databases", "2", "foo", "2"],
            "ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config",
        ),
        (
            &["appendfsync", "sometimes"],
            "ERR CONFIG SET failed (possibly related to argument 'appendfsync') - \
             argument(s) must be one of the following: everysec, always, no",
        ),
    ];
    for (words, error) in cases {
        assert_eq!(set(&settings, words), Err((*error).to_owned()), "{words:?}");
    }
    assert_eq!(settings.changed_from_defaults(), []);
}

#[test]
fn one_bad_pair_leaves_all_settings_alone() {
    let settings = Settings::new();
    let words = ["timeout", "7", "requirepass", "secret", "hz", "many"];
    let got = set(&settings, &words);
    assert!(got.unwrap_err().contains("'hz'"));
    assert_eq!(settings.timeout(), 0);
    assert_eq!(&*settings.requirepass(), "");
    assert_eq!(settings.changed_from_defaults(), []);
}

#[test]
fn only_rows_with_another_value_count_as_changed() {
    let settings = Settings::new();
    let words = ["hz", "10", "timeout", "7", "maxmemory", "1kb"];
    assert_eq!(set(&settings, &words), Ok(vec!["timeout", "maxmemory"]));
    assert_eq!(set(&settings, &words), Ok(vec![]));
    let changed = settings.changed_from_defaults();
    assert_eq!(changed, [("timeout", "7".to_owned()), ("maxmemory", "1024".to_owned())]);
}

#[test]
fn of_two_names_of_one_setting_the_later_wins() {
    let settings = Settings::new();
    let words = ["hash-max-listpack-entries", "6", "hash-max-ziplist-entries", "5"];
    assert_eq!(set(&settings, &words), Ok(vec!["hash-max-listpack-entries"]));
    assert_eq!(settings.hash_max_listpack_entries(), 5);
    let words = ["hash-max-ziplist-entries", "8", "hash-max-listpack-entries", "5"];
    assert_eq!(set(&settings, &words), Ok(vec![]));
}

#[test]
fn pinned_settings_accept_their_current_value() {
    let settings = Settings::new();
    settings.load(b"threads", b"7").unwrap();
    assert_eq!(set(&settings, &["threads", "7"]), Ok(vec![]));
    let failed = |reason| Err(format!("ERR CONFIG SET failed (possibly related to argument 'threads') - {reason}"));
    assert_eq!(set(&settings, &["threads", "8"]), failed("can't set immutable config"));
    let range = "argument must be between 0 and 512 inclusive";
    assert_eq!(set(&settings, &["threads", "513"]), failed(range));
}

#[test]
fn a_setting_that_names_a_file_is_applied_again() {
    let settings = Settings::new();
    assert_eq!(set(&settings, &["tls-cert-file", "a.crt"]), Ok(vec!["tls-cert-file"]));
    assert_eq!(set(&settings, &["tls-cert-file", "a.crt"]), Ok(vec!["tls-cert-file"]));
    assert_eq!(set(&settings, &["tls-port", "0"]), Ok(vec![]));
}

#[test]
fn settings_that_cannot_be_applied_are_restored() {
    let settings = Settings::new();
    let pairs: &[(&[u8], &[u8])] = &[(b"timeout", b"7"), (b"PORT", b"7001"), (b"bind", b"127.0.0.1"), (b"hz", b"20")];
    let refused = settings.set_and_follow(Origin::Remote, pairs, |names| {
        assert_eq!((names, settings.port(), settings.timeout()), (&["timeout", "port", "hz"][..], 7001, 7));
        Err(("port", "no".into()))
    });
    assert_eq!(refused, Err("ERR CONFIG SET failed (possibly related to argument 'port') - no".into()));
    assert_eq!((settings.port(), settings.timeout(), settings.hz()), (6379, 0, 10));
    assert_eq!(settings.set_and_follow(Origin::Remote, pairs, |_| Ok(())).map(|changed| changed.len()), Ok(3));
    assert_eq!((settings.port(), settings.timeout(), settings.hz()), (7001, 7, 20));
}

#[test]
fn protected_settings_depend_on_the_clients_address() {
    let settings = Settings::new();
    let pairs: &[(&[u8], &[u8])] = &[(b"dbfilename", b"a.rdb")];
    assert!(settings.set_from(Origin::Local, pairs).is_err());
    settings.load(b"enable-protected-configs", b"local").unwrap();
    assert!(settings.set_from(Origin::Remote, pairs).is_err());
    assert!(settings.set_from(Origin::Local, pairs).is_ok());
    settings.load(b"enable-protected-configs", b"yes").unwrap();
    assert!(settings.set(pairs).is_ok());
    assert_eq!(&*settings.dbfilename(), "a.rdb");
}

#[test]
fn loading_gives_the_reason_alone() {
    let settings = Settings::new();
    let got = settings.load(b"databases", b"0");
    assert_eq!(got.unwrap_err(), "argument must be between 16 and 16 inclusive");
    let got = settings.load(b"nonsense", b"0");
    assert_eq!(got.unwrap_err(), "Bad directive or wrong number of arguments");
    settings.load(b"TIMEOUT", b"4").unwrap();
    assert_eq!(settings.timeout(), 4);
}

#[test]
fn get_lists_each_name_once_in_the_case_first_asked_for() {
    let settings = Settings::new();
    let got = get(&settings, &["MAXMEMORY", "maxmemory", "MAXMEM*Y", "nosuch", ""]);
    assert_eq!(
        got,
        pairs(&[("MAXMEMORY", "0"), ("maxmemory-policy", "noeviction"), ("maxmemory-eviction-tenacity", "10"),]),
    );
    let got = get(&settings, &["*-ziplist-entries", "hash-max-ziplist-entries"]);
    assert_eq!(got, pairs(&[("hash-max-ziplist-entries", "512"), ("zset-max-ziplist-entries", "128")]),);
}

#[test]
fn hidden_settings_answer_to_their_exact_name_only() {
    let settings = Settings::new();
    assert_eq!(get(&settings, &["key-load-dela?"]), []);
    assert_eq!(get(&settings, &["key-load-delay"]), pairs(&[("key-load-delay", "0")]));
    assert!(get(&settings, &["*"]).iter().all(|(name, _)| name != "key-load-delay"));
}

/// Redis 7.0 prints 192 names.
#[test]
fn a_star_lists_at_least_what_redis_lists() {
    assert!(get(&Settings::new(), &["*"]).len() >= 192);
}

#[test]
fn accessors_read_what_was_set() {
    let settings = Settings::new();
    let changes = [
        ("maxmemory", "18446744073709551615"),
        ("maxmemory-policy", "allkeys-lfu"),
        ("appendfsync", "always"),
        ("slowlog-log-slower-than", "-1"),
        ("lua-time-limit", "250"),
        ("list-max-ziplist-size", "-5"),
        ("notify-keyspace-events", "KEA"),
        ("loglevel", "nothing"),
        ("latency-tracking", "no"),
        ("save", "60 5 10 0"),
        ("latency-tracking-info-percentiles", "50 99.9"),
        ("requirepass", "a\0b"),
        ("client-output-buffer-limit", "replica 1kb 2kb 3"),
    ];
    for (name, value) in changes {
        set(&settings, &[name, value]).unwrap();
    }
    assert_eq!(settings.maxmemory(), u64::MAX);
    assert_eq!(settings.maxmemory_policy(), MaxmemoryPolicy::AllkeysLfu);
    assert_eq!(settings.appendfsync(), AppendFsync::Always);
    assert_eq!(settings.slowlog_log_slower_than(), -1);
    assert_eq!(settings.busy_reply_threshold(), 250);
    assert_eq!(settings.list_max_listpack_size(), -5);
    let all = Events::KEYSPACE | Events::KEYEVENT | Events::ALL;
    assert_eq!(settings.notify_keyspace_events(), all);
    assert_eq!(settings.loglevel(), LogLevel::Nothing);
    assert!(!settings.latency_tracking());
    assert_eq!(settings.save_points(), [(60, 5), (10, 0)]);
    assert_eq!(settings.latency_tracking_info_percentiles(), [50.0, 99.9]);
    assert_eq!(&*settings.requirepass(), "a\0b");
    let limit = settings.client_output_buffer_limit(ClientClass::Replica);
    let expected = BufferLimit { hard_bytes: 1024, soft_bytes: 2048, soft_seconds: 3 };
    assert_eq!(limit, expected);
    assert_eq!(settings.enable_debug_command(), AllowedFor::None);
    assert_eq!(settings.printed(row::LOGLEVEL), "nothing");
}

#[test]
fn a_password_is_seen_without_a_lock() {
    let settings = Settings::new();
    assert!(!settings.requires_password());
    set(&settings, &["requirepass", "secret"]).unwrap();
    assert!(settings.requires_password());
    set(&settings, &["requirepass", ""]).unwrap();
    assert!(!settings.requires_password());
}

#[test]
fn a_share_of_memory_follows_maxmemory() {
    let settings = Settings::new();
    set(&settings, &["maxmemory-clients", "5%"]).unwrap();
    assert_eq!(settings.maxmemory_clients(), 0);
    set(&settings, &["maxmemory", "1000"]).unwrap();
    assert_eq!(settings.maxmemory_clients(), 50);
    set(&settings, &["maxmemory-clients", "1kb"]).unwrap();
    assert_eq!(settings.maxmemory_clients(), 1024);
}

#[test]
fn writers_on_many_threads_never_mix_their_pairs() {
    let settings = Settings::new();
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let settings = &settings;
            scope.spawn(move || {
                for _ in 0..200 {
                    let n = thread.to_string();
                    set(settings, &["timeout", &n, "tcp-keepalive", &n, "requirepass", &n]).unwrap();
                    let got = get(settings, &["timeout", "tcp-keepalive", "requirepass"]);
                    assert!(got.iter().all(|(_, value)| *value == got[0].1), "{got:?}");
                }
            });
        }
    });
}
