//! Sources of settings, CONFIG REWRITE, and the shipped configuration file.

use super::rewrite::rewrite;
use super::sources::{Loaded, command, command_line, load, without_effect};
use super::tables::ConfiguredUser;
use anyhow::Result;
use engine::Settings;
use engine::settings::{Access, TABLE};
use std::ffi::OsString;
use std::path::Path;

fn load_with(args: &[&str], variables: &[(&str, &str)]) -> Result<Loaded> {
    let matches = command().try_get_matches_from(args)?;
    let variables: Vec<(OsString, OsString)> =
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    load(&[&matches], variables.into_iter())
}

fn error_of(loaded: Result<Loaded>) -> String {
    match loaded {
        Ok(_) => panic!("an error was expected"),
        Err(error) => format!("{error:#}"),
    }
}

/// Settings are flags of some subcommands too: none may have the name of another argument.
#[test]
fn the_command_line_is_sound() {
    command_line().debug_assert();
}

#[test]
fn the_shipped_file_holds_every_setting_at_its_default() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/holdfast.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let loaded = load_with(&["holdfast", "--config", path], &[]).unwrap();
    assert_eq!(loaded.settings.changed_from_defaults(), vec![], "the file only states defaults");
    for row in TABLE.iter().filter(|row| !row.hidden) {
        assert!(table.contains_key(row.name), "config/holdfast.toml lacks {}", row.name);
    }
}

/// A setting in the shipped file: its section, the comment above it, and its name.
struct Shipped {
    section: String,
    comment: String,
    name: String,
}

fn shipped() -> Vec<Shipped> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/holdfast.toml")).unwrap();
    let (mut section, mut comment) = (String::new(), String::new());
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ---- ") {
            section = title.trim_end_matches('-').trim().to_owned();
        } else if let Some(words) = line.strip_prefix('#') {
            comment += words;
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| section != "Indexes and sweepers") {
            found.push(Shipped {
                section: section.clone(),
                comment: std::mem::take(&mut comment),
                name: name.to_owned(),
            });
        } else {
            comment.clear();
        }
    }
    found
}

#[test]
fn the_shipped_file_says_which_settings_have_no_effect_and_which_cannot_change() {
    let shipped = shipped();
    let visible = TABLE.iter().filter(|row| !row.hidden).count();
    assert_eq!(shipped.len(), visible, "each setting is there once");
    for Shipped { section, comment, name } in shipped {
        let row = Settings::find(name.as_bytes()).unwrap();
        assert_eq!(row.name, name, "the file has no aliases");
        assert_eq!(
            section == "Accepted without effect",
            row.is_without_effect,
            "{name} is in the section {section:?}, and the table says otherwise"
        );
        assert!(!comment.trim().is_empty(), "{name} has no comment");
        let is_fixed = comment.contains("Start only");
        match row.access {
            Access::Immutable | Access::Pinned => assert!(is_fixed, "{name} cannot be changed, and no comment says so"),
            Access::Live => assert!(!is_fixed, "{name} can be changed, and its comment says otherwise"),
            // `dir` can only be set to another name of the same directory.
            Access::Protected => assert_eq!(is_fixed, name == "dir", "{name}"),
        }
    }
}

#[test]
fn only_settings_without_effect_are_warned_about() {
    let args = [
        "holdfast",
        "--io-threads",
        "4",
        "--timeout",
        "5",
        "--maxmemory-policy",
        "allkeys-lru",
        "--dbfilename",
        "x.rdb",
    ];
    let given = load_with(&args, &[]).unwrap().settings;
    assert_eq!(without_effect(&given), ["io-threads", "dbfilename"]);
    assert!(without_effect(&Settings::new()).is_empty());
}

#[test]
fn flags_beat_variables_and_variables_beat_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.toml");
    std::fs::write(&path, "port = 1111\nmaxmemory = \"1mb\"\ntimeout = 7\n").unwrap();
    let args = ["holdfast", "--config", path.to_str().unwrap(), "--port", "3333"];
    let loaded = load_with(&args, &[("HOLDFAST_PORT", "2222"), ("HOLDFAST_MAXMEMORY", "2mb"), ("OTHER", "x")]).unwrap();
    let settings = &loaded.settings;
    assert_eq!((settings.port(), settings.maxmemory(), settings.timeout()), (3333, 2 << 20, 7));
}

#[test]
fn an_unknown_setting_names_the_nearest_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.toml");
    std::fs::write(&path, "maxmemry = 5\n").unwrap();
    let error = error_of(load_with(&["holdfast", "--config", path.to_str().unwrap()], &[]));
    assert!(error.contains("unknown setting 'maxmemry'; did you mean 'maxmemory'?"), "{error}");
    let error = error_of(load_with(&["holdfast"], &[("HOLDFAST_PROT", "1")]));
    assert!(error.contains("HOLDFAST_PROT") && error.contains("did you mean 'port'?"), "{error}");
    let error = error_of(load_with(&["holdfast", "--maxmemry", "5"], &[]));
    assert!(error.contains("--maxmemory"), "{error}");
}

#[test]
fn a_bad_value_says_what_would_be_good() {
    let error = error_of(load_with(&["holdfast", "--port", "70000"], &[]));
    assert!(error.contains("port") && error.contains("between 0 and 65535"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.toml");
    std::fs::write(&path, b"bind = \"\xff\"\n").unwrap();
    assert!(error_of(load_with(&["holdfast", "--config", path.to_str().unwrap()], &[])).contains("is not UTF-8"));
    std::fs::write(&path, "port = [1]\n").unwrap();
    assert!(
        error_of(load_with(&["holdfast", "--config", path.to_str().unwrap()], &[])).contains("a setting is a string")
    );
}

#[test]
fn redis_style_lists_may_be_one_word_or_several() {
    for args in [&["holdfast", "--save", "3600 1 300 100"][..], &["holdfast", "--save", "3600", "1", "300", "100"]] {
        assert_eq!(load_with(args, &[]).unwrap().settings.save_points(), vec![(3600, 1), (300, 100)]);
    }
    assert_eq!(load_with(&["holdfast", "--save", ""], &[]).unwrap().settings.save_points(), vec![]);
}

/// Rewrites a file after it was loaded and these settings were changed.
fn load_and_rewrite(path: &Path, changes: &[(&str, &str)]) {
    let loaded = load_with(&["holdfast", "--config", path.to_str().unwrap()], &[]).unwrap();
    for (name, value) in changes {
        loaded.settings.load(name.as_bytes(), value.as_bytes()).unwrap();
    }
    rewrite(path, &loaded.settings.all(), &[]).unwrap();
}

#[test]
fn rewriting_keeps_what_is_still_true() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.toml");
    let text = "# the port\nport = 1111 # keep\ntimeout = 0\nmaxmemory = \"1mb\"\nactiverehashing = true\n\
                [[index]]\nname = \"idx\" # a table\n";
    std::fs::write(&path, text).unwrap();
    let all = load_with(&["holdfast"], &[]).unwrap().settings;
    for (name, value) in [("port", "4444"), ("requirepass", "se\"cret"), ("maxmemory", "1mb")] {
        all.load(name.as_bytes(), value.as_bytes()).unwrap();
    }
    rewrite(&path, &all.all(), &[]).unwrap();
    let expected = text.replace("1111", "4444").replace("= true\n", "= true\nrequirepass = 'se\"cret'\n");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    all.load(b"activerehashing", b"no").unwrap();
    rewrite(&path, &all.all(), &[]).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected.replace("= true", "= false"));
}

#[test]
fn rewriting_the_shipped_file_changes_the_lines_that_are_not_true_any_more() {
    let shipped = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/holdfast.toml")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.toml");
    std::fs::write(&path, &shipped).unwrap();
    load_and_rewrite(&path, &[]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), shipped);
    load_and_rewrite(&path, &[("maxmemory", "5mb")]);
    let text = std::fs::read_to_string(&path).unwrap();
    let differing: Vec<_> = shipped.lines().zip(text.lines()).filter(|(before, after)| before != after).collect();
    assert_eq!(differing, [("maxmemory = 0", "maxmemory = 5242880")]);
    assert_eq!(shipped.lines().count(), text.lines().count());
    load_and_rewrite(&path, &[("maxmemory", "0")]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), shipped);
}

#[test]
fn a_rewritten_file_keeps_its_permissions_and_a_link_stays_one() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("h.toml"), dir.path().join("link.toml"));
    std::fs::write(&path, "timeout = 1\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    load_and_rewrite(&link, &[("timeout", "2")]);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "timeout = 2\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn rewriting_twice_keeps_odd_values_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.toml");
    std::fs::write(&path, "").unwrap();
    let odd = "a\nport = 1\nb\"\"\"'";
    for _ in 0..3 {
        load_and_rewrite(&path, &[("masterauth", odd), ("timeout", "3")]);
    }
    let loaded = load_with(&["holdfast", "--config", path.to_str().unwrap()], &[]).unwrap();
    assert_eq!((loaded.settings.port(), loaded.settings.timeout()), (6379, 3));
    let mut found = Vec::new();
    loaded.settings.get(&[b"masterauth"], &mut found);
    assert_eq!(found, vec![("masterauth".to_owned(), odd.to_owned())]);
}

#[test]
fn users_of_the_command_line_follow_those_of_the_file() {
    let users =
        load_with(&["holdfast", "--user", "alice on nopass ~* +@all -flushdb", "--port", "7", "--user", "bob"], &[]);
    let expected = [("alice", "on nopass ~* +@all -flushdb"), ("bob", "")].map(|(name, rules)| ConfiguredUser {
        name: name.to_owned(),
        rules: rules.to_owned(),
        place: format!("flag --user {name}"),
    });
    assert_eq!(users.unwrap().tables.users, expected);
}
