//! Checks for settings that are kept as text; each returns the form in which CONFIG GET prints it.
//! Knows no setting but through its check.

type Checked = Result<String, &'static str>;

pub(super) fn any(text: &str) -> Checked {
    Ok(text.to_owned())
}

/// Pairs of seconds and changes: `3600 1 300 100`. Nothing means never.
pub(super) fn save_points(text: &str) -> Checked {
    let wrong = "Invalid save parameters";
    if text.is_empty() {
        return Ok(String::new());
    }
    let numbers: Vec<i64> = numbers(text).ok_or(wrong)?;
    let (pairs, []) = numbers.as_chunks::<2>() else {
        return Err(wrong);
    };
    if pairs.iter().any(|&[seconds, changes]| seconds < 1 || changes < 0) {
        return Err(wrong);
    }
    Ok(joined(&numbers))
}

/// Parses what `save_points` has accepted, as (seconds, changes).
pub(super) fn read_save_points(text: &str) -> Vec<(u64, u64)> {
    let numbers: Vec<u64> = numbers(text).unwrap_or_default();
    let (pairs, _) = numbers.as_chunks::<2>();
    pairs.iter().map(|&[seconds, changes]| (seconds, changes)).collect()
}

pub(super) fn oom_score_values(text: &str) -> Checked {
    if text.split(' ').count() != 3 {
        return Err("wrong number of arguments");
    }
    match numbers::<i64>(text) {
        Some(scores) if scores.iter().all(|score| (-2000..=2000).contains(score)) => Ok(joined(&scores)),
        _ => Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000."),
    }
}

pub(super) fn percentiles(text: &str) -> Checked {
    if text.is_empty() {
        return Ok(String::new());
    }
    let percentiles: Vec<f64> = numbers(text)
        .filter(|all: &Vec<f64>| !all.iter().any(|p| p.is_nan()))
        .ok_or("Invalid latency-tracking-info-percentiles parameters")?;
    if !percentiles.iter().all(|p| (0.0..=100.0).contains(p)) {
        return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    }
    Ok(joined(&percentiles))
}

/// Parses what `percentiles` has accepted.
pub(super) fn read_percentiles(text: &str) -> Vec<f64> {
    numbers(text).unwrap_or_default()
}

pub(super) fn addresses(text: &str) -> Checked {
    const ADDRESSES_MAX: usize = 16;
    if text.split(' ').count() > ADDRESSES_MAX {
        return Err("Too many bind addresses specified.");
    }
    any(text)
}

pub(super) fn dump_file_name(text: &str) -> Checked {
    if is_path(text) {
        return Err("dbfilename can't be a path, just a filename");
    }
    any(text)
}

pub(super) fn append_file_name(text: &str) -> Checked {
    match text {
        "" => Err("appendfilename can't be empty"),
        _ if is_path(text) => Err("appendfilename can't be a path, just a filename"),
        _ => any(text),
    }
}

pub(super) fn append_dir_name(text: &str) -> Checked {
    match text {
        "" => Err("appenddirname can't be empty"),
        _ if is_path(text) => Err("appenddirname can't be a path, just a dirname"),
        _ => any(text),
    }
}

pub(super) fn host_name(text: &str) -> Checked {
    if text.len() >= 256 {
        return Err("Hostnames must be less than 256 characters");
    }
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.') {
        return Err("Hostnames may only contain alphanumeric characters, hyphens or dots");
    }
    any(text)
}

pub(super) fn node_name(text: &str) -> Checked {
    if text.bytes().any(|b| b"!#$%&()*+:;<>?@[]^{|}~".contains(&b)) {
        return Err("Announced human node name contained invalid character");
    }
    any(text)
}

/// An address that others are told. The servers of a log tell each other in lines of a limited length.
pub(super) fn announced_host(text: &str) -> Checked {
    const LEN_MAX: usize = 100;
    if text.len() > LEN_MAX {
        return Err("An announced address has at most 100 characters");
    }
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("An announced address has no spaces and no special characters");
    }
    any(text)
}

/// The name of a group of servers, as Sentinels check it.
pub(super) fn master_name(text: &str) -> Checked {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b)) {
        return Err("The name of a master has only letters, digits, dots, hyphens and underscores");
    }
    any(text)
}

/// The origin of a web page, as browsers write it: a scheme, a host, and a port that is not the usual one.
pub(super) fn web_origin(text: &str) -> Checked {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_host = |host: &str| {
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_:[]".contains(&b))
    };
    if !text.is_empty() && !host.is_some_and(is_host) {
        return Err("An origin is https:// or http:// and a host in lower case, without a path");
    }
    any(text)
}

/// Accepts only locales that order texts by their bytes, as this server does.
pub(super) fn locale(text: &str) -> Checked {
    match text {
        "" | "C" | "POSIX" | "C.UTF-8" => any(text),
        _ => Err("Invalid locale name"),
    }
}

pub(super) fn title_template(text: &str) -> Checked {
    const VARIABLES: &[&str] =
        &["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];
    let wrong = "template format is invalid or contains unknown variables";
    if text.is_empty() {
        return Err(wrong);
    }
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        // `{{` is a literal brace.
        if let Some(after) = after.strip_prefix('{') {
            rest = after;
            continue;
        }
        let (name, after) = after.split_once('}').ok_or(wrong)?;
        if !VARIABLES.contains(&name) {
            return Err(wrong);
        }
        rest = after;
    }
    any(text)
}

fn is_path(text: &str) -> bool {
    text.contains(['/', '\\'])
}

/// Parses numbers separated by single spaces; `None` if there is anything else.
fn numbers<N: std::str::FromStr>(text: &str) -> Option<Vec<N>> {
    text.split(' ').map(|word| word.parse().ok()).collect()
}

fn joined<N: ToString>(numbers: &[N]) -> String {
    let words: Vec<String> = numbers.iter().map(N::to_string).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(check: fn(&str) -> Checked, good: &[(&str, &str)], reason: &str, bad: &[&str]) {
        for (input, printed) in good {
            assert_eq!(check(input).as_deref(), Ok(*printed), "{input}");
        }
        for input in bad {
            assert_eq!(check(input), Err(reason), "{input}");
        }
    }

    #[test]
    fn save_points_come_in_pairs() {
        check(
            save_points,
            &[("", ""), ("100 1", "100 1"), ("200 2 100 0", "200 2 100 0"), ("+5 +5", "5 5")],
            "Invalid save parameters",
            &["100", "100 1 200", "0 1", "100 -1", "100  1", " ", "100 1 ", "5a 1", "\"\"", "zzz"],
        );
        assert_eq!(read_save_points("200 2 100 0"), [(200, 2), (100, 0)]);
        assert_eq!(read_save_points(""), []);
    }

    #[test]
    fn oom_scores_are_three() {
        check(
            oom_score_values,
            &[("1 2 3", "1 2 3"), ("+1 -2000 2000", "1 -2000 2000")],
            "wrong number of arguments",
            &["", "1 2", "1 2 3 4", "1  2 3"],
        );
        check(
            oom_score_values,
            &[],
            "Invalid oom-score-adj-values, elements must be between -2000 and 2000.",
            &["2001 0 0", "-2001 0 0", "a b c"],
        );
    }

    #[test]
    fn percentiles_are_between_zero_and_a_hundred() {
        check(
            percentiles,
            &[("", ""), ("50 99 99.9", "50 99 99.9"), ("1e1 50.0", "10 50"), ("99.999999", "99.999999")],
            "Invalid latency-tracking-info-percentiles parameters",
            &["zzz", "50  99", " 50", "nan"],
        );
        check(
            percentiles,
            &[],
            "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
            &["100.1", "-1", "inf"],
        );
        assert_eq!(read_percentiles("50 99.9"), [50.0, 99.9]);
    }

    #[test]
    fn names_of_files_are_no_paths() {
        let path = "dbfilename can't be a path, just a filename";
        check(dump_file_name, &[("a.rdb", "a.rdb"), ("", "")], path, &["a/b", "/a", "a\\b"]);
        let path = "appendfilename can't be a path, just a filename";
        check(append_file_name, &[("a.aof", "a.aof")], path, &["a/b"]);
        check(append_file_name, &[], "appendfilename can't be empty", &[""]);
        let path = "appenddirname can't be a path, just a dirname";
        check(append_dir_name, &[("a", "a")], path, &["a/b"]);
        check(append_dir_name, &[], "appenddirname can't be empty", &[""]);
    }

    #[test]
    fn hosts_nodes_locales_and_titles() {
        let chars = "Hostnames may only contain alphanumeric characters, hyphens or dots";
        check(host_name, &[("a-1.b", "a-1.b"), ("", "")], chars, &["a b", "a_b"]);
        let long = "a".repeat(256);
        check(host_name, &[], "Hostnames must be less than 256 characters", &[&long]);
        let chars = "Announced human node name contained invalid character";
        check(node_name, &[("a b", "a b")], chars, &["a$"]);
        let origin = "An origin is https:// or http:// and a host in lower case, without a path";
        let origins = ["", "https://ops.example", "http://10.0.0.1:8080", "https://[::1]:1"].map(|text| (text, text));
        check(
            web_origin,
            &origins,
            origin,
            &["ops.example", "https://", "https://a/b", "https://A", "ftp://a", "https://a b"],
        );
        check(locale, &[("", ""), ("C", "C")], "Invalid locale name", &["zzz", "en_US.UTF-8"]);
        check(
            title_template,
            &[("{title} {port}", "{title} {port}"), ("title}", "title}"), ("{{x", "{{x")],
            "template format is invalid or contains unknown variables",
            &["", "{foo}", "{title"],
        );
        let many = "::1 ".repeat(17);
        let (sixteen, many) = (many[..16 * 4 - 1].to_owned(), &many[..17 * 4 - 1]);
        let text = "Too many bind addresses specified.";
        check(addresses, &[(&sixteen, &sixteen), ("", "")], text, &[many]);
    }
}
