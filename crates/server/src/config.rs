//! Where settings come from: the built-in defaults, then the configuration file, then `HOLDFAST_*` variables, then
//! flags; the later wins. Knows files and names; refuses to know what a setting does.

use crate::tables::Tables;
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::Settings;
use engine::settings::TABLE;
use std::path::{Path, PathBuf};
use toml_edit::DocumentMut;

const VARIABLE_PREFIX: &str = "HOLDFAST_";

/// Names that are shown in `--help`; every other setting is a flag too.
const SHOWN: &[(&str, &str)] = &[
    ("port", "TCP port to listen on"),
    ("bind", "Addresses to listen on, separated by spaces"),
    ("dir", "Directory for the server's data"),
    ("appendonly", "Keep a journal of every write: yes or no"),
    ("appendfsync", "When the journal is forced to disk: always, everysec or no"),
    ("threads", "Worker threads; 0 = one a core"),
    ("requirepass", "Password that clients must give with AUTH"),
    ("maxmemory", "Most memory to use, such as 2gb; 0 = no limit"),
    ("maxclients", "Most clients at once"),
    ("loglevel", "debug, verbose, notice, warning or nothing"),
    ("log-format", "text or json"),
    ("enable-debug-command", "Allow DEBUG: no, yes or local"),
];

/// Settings whose value may be given as several arguments.
const SEVERAL_WORDS: &[&str] = &["bind", "save", "client-output-buffer-limit", "oom-score-adj-values"];

/// Settings that are kept and reported but that this version does nothing for, although a value other than the
/// default asks for something that a user would miss.
const WITHOUT_EFFECT: &[&str] =
    &["aclfile", "cluster-enabled", "io-threads", "logfile", "maxmemory-policy", "replicaof", "tls-port", "unixsocket"];

/// Which settings were given that have no effect.
pub(crate) fn without_effect(settings: &Settings) -> Vec<&'static str> {
    let changed = settings.changed_from_defaults();
    changed.iter().map(|(name, _)| *name).filter(|name| WITHOUT_EFFECT.contains(name)).collect()
}

/// What the command line asked for.
pub(crate) enum Invocation {
    Serve(Loaded),
    Use(Tool, Loaded),
}

/// Something else to do with a data directory than to serve it.
pub(crate) enum Tool {
    Check { dir: PathBuf },
    Export { dir: PathBuf, output: Option<PathBuf> },
    Import { file: PathBuf, dir: PathBuf },
}

/// The settings to start with.
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    pub(crate) file: Option<PathBuf>,
    pub(crate) tables: Tables,
}

/// Reads the command line and everything it refers to. Prints help or an error and exits when that is asked for.
pub(crate) fn from_command_line() -> Result<Invocation> {
    let matches = command().subcommands(tools()).get_matches();
    let loaded = load(&matches, std::env::vars_os())?;
    let Some((name, given)) = matches.subcommand() else { return Ok(Invocation::Serve(loaded)) };
    let path = |name: &str| given.get_one::<PathBuf>(name).cloned();
    let dir = path("DIR").unwrap_or_else(|| PathBuf::from(&*loaded.settings.dir()));
    let tool = match name {
        "check" => Tool::Check { dir },
        "export" => Tool::Export { dir, output: path("output") },
        _ => Tool::Import { file: path("FILE").context("import needs a file")?, dir },
    };
    Ok(Invocation::Use(tool, loaded))
}

/// What can be done beside serving.
fn tools() -> [Command; 3] {
    let path = |name: &'static str| Arg::new(name).value_parser(clap::value_parser!(PathBuf));
    let dir = || path("DIR").help("The data directory; without it, the one that the server would use");
    [
        Command::new("check").about("Verifies a data directory and says what it holds").arg(dir()),
        Command::new("export")
            .about("Writes a data directory as requests that redis-cli --pipe can load anywhere")
            .arg(dir())
            .arg(path("output").long("output").short('o').value_name("FILE").help("Where to; without it, to stdout")),
        Command::new("import")
            .about("Reads an RDB or AOF file of Redis's into a data directory")
            .arg(path("FILE").required(true).help("FILE.rdb, FILE.aof, a manifest, or an appendonlydir"))
            .arg(path("DIR").long("dir").value_name("DIR").help("The data directory to read it into")),
    ]
}

/// The command line: one flag a setting, so that any of them can be given at start.
fn command() -> Command {
    let file = Arg::new("config").long("config").short('c').value_name("FILE").env("HOLDFAST_CONFIG");
    let mut command = Command::new("holdfast")
        .version(env!("CARGO_PKG_VERSION"))
        // As in redis-server, the last of two equal flags counts.
        .args_override_self(true)
        .about("A state server for workers, workflows and pipelines that speaks the Redis protocol")
        .after_help(
            "Every setting of the configuration file is a flag (--maxmemory 2gb) and an environment variable \
             (HOLDFAST_MAXMEMORY=2gb). Flags win over variables, variables over the file. \
             config/holdfast.toml lists all settings with their defaults.",
        )
        .arg(file.help("Configuration file, such as config/holdfast.toml").value_parser(clap::value_parser!(PathBuf)));
    for row in TABLE {
        let help = SHOWN.iter().find(|(name, _)| *name == row.name).map(|(_, help)| *help);
        let mut arg =
            Arg::new(row.name).long(row.name).value_name("VALUE").action(ArgAction::Set).allow_hyphen_values(true);
        if let Some(alias) = row.alias {
            arg = arg.visible_alias(alias);
        }
        if SEVERAL_WORDS.contains(&row.name) {
            // As in redis-server: `--save 3600 1 300 100` and `--save "3600 1 300 100"` are the same.
            arg = arg.num_args(0..).allow_hyphen_values(false);
        }
        command = command.arg(match help {
            Some(help) => arg.help(help),
            None => arg.hide(true),
        });
    }
    command
}

fn load(
    matches: &ArgMatches,
    variables: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
) -> Result<Loaded> {
    let settings = Settings::new();
    let file = matches.get_one::<PathBuf>("config").cloned();
    let tables = match &file {
        Some(file) => load_file(&settings, file)?,
        None => Tables::default(),
    };
    for (variable, value) in variables {
        let Some(name) = variable.to_str().and_then(|variable| variable.strip_prefix(VARIABLE_PREFIX)) else {
            continue;
        };
        // Variables of the project's own scripts share the prefix.
        if name == "CONFIG" || name == "BIN" || name.starts_with("TEST_") {
            continue;
        }
        let value = value.to_str().with_context(|| format!("{VARIABLE_PREFIX}{name} is not UTF-8"))?;
        set(&settings, &name.to_ascii_lowercase().replace('_', "-"), value)
            .with_context(|| format!("environment variable {VARIABLE_PREFIX}{name}"))?;
    }
    for row in TABLE {
        if let Some(values) = matches.get_many::<String>(row.name) {
            let value = values.map(String::as_str).collect::<Vec<_>>().join(" ");
            set(&settings, row.name, &value).with_context(|| format!("flag --{}", row.name))?;
        }
    }
    Ok(Loaded { settings, file, tables })
}

/// Reads a TOML file of `name = value` lines and tables.
fn load_file(settings: &Settings, path: &Path) -> Result<Tables> {
    let bytes =
        std::fs::read(path).with_context(|| format!("cannot read the configuration file {}", path.display()))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))?;
    let mut table: toml::Table = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    let tables = Tables::take(&mut table).with_context(|| format!("in {}", path.display()))?;
    for (name, value) in &table {
        let value = as_text(value).with_context(|| format!("{}: {name}", path.display()))?;
        set(settings, name, &value).with_context(|| format!("in {}", path.display()))?;
    }
    Ok(tables)
}

fn as_text(value: &toml::Value) -> Result<String> {
    Ok(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
            bail!("a setting is a string, a whole number or true/false")
        }
    })
}

fn set(settings: &Settings, name: &str, value: &str) -> Result<()> {
    if Settings::find(name.as_bytes()).is_none() {
        bail!(
            "unknown setting '{name}'{}",
            nearest(name).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
        );
    }
    match settings.load(name.as_bytes(), value.as_bytes()) {
        Ok(()) => Ok(()),
        Err(reason) => bail!("bad value '{value}' for setting '{name}': {reason}"),
    }
}

/// The known name that is most like `name`, if any is like it at all.
fn nearest(name: &str) -> Option<&'static str> {
    let names = TABLE.iter().flat_map(|row| [Some(row.name), row.alias]).flatten();
    let scored = names.map(|known| (strsim::jaro_winkler(name, known), known));
    scored.filter(|(score, _)| *score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// Writes settings into the file: those given get their values, those not given are at their default and leave it
/// (CONFIG REWRITE). Comments, order and anything else in the file stay.
pub(crate) fn rewrite(path: &Path, settings: &[(&'static str, String)]) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut file: DocumentMut = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    let known = |name: &str| Settings::find(name.as_bytes()).map(|row| row.name);
    let present: Vec<String> = file.iter().map(|(name, _)| name.to_owned()).collect();
    for name in present {
        let Some(row) = known(&name) else { continue };
        match settings.iter().find(|(given, _)| *given == row) {
            // Only the value changes, so that a comment behind it stays.
            Some((_, value)) => {
                if let Some(item) = file[&name].as_value_mut() {
                    let decor = item.decor().clone();
                    *item = toml_value(value);
                    *item.decor_mut() = decor;
                }
            }
            None => {
                file.remove(&name);
            }
        }
    }
    for (name, value) in settings {
        if !file.iter().any(|(present, _)| known(present) == Some(name)) {
            file[name] = toml_edit::value(toml_value(value));
        }
    }
    let temporary = path.with_extension("toml.new");
    let write = || -> std::io::Result<()> {
        let mut new = std::fs::File::create(&temporary)?;
        std::io::Write::write_all(&mut new, file.to_string().as_bytes())?;
        new.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().with_context(|| format!("cannot replace {}", path.display()))
}

fn toml_value(value: &str) -> toml_edit::Value {
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => number.into(),
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn load_with(args: &[&str], variables: &[(&str, &str)]) -> Result<Loaded> {
        let matches = command().try_get_matches_from(args)?;
        let variables: Vec<(OsString, OsString)> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        load(&matches, variables.into_iter())
    }

    fn error_of(loaded: Result<Loaded>) -> String {
        match loaded {
            Ok(_) => panic!("an error was expected"),
            Err(error) => format!("{error:#}"),
        }
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

    #[test]
    fn flags_beat_variables_and_variables_beat_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.toml");
        std::fs::write(&path, "port = 1111\nmaxmemory = \"1mb\"\ntimeout = 7\n").unwrap();
        let args = ["holdfast", "--config", path.to_str().unwrap(), "--port", "3333"];
        let loaded =
            load_with(&args, &[("HOLDFAST_PORT", "2222"), ("HOLDFAST_MAXMEMORY", "2mb"), ("OTHER", "x")]).unwrap();
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
            error_of(load_with(&["holdfast", "--config", path.to_str().unwrap()], &[]))
                .contains("a setting is a string")
        );
    }

    #[test]
    fn redis_style_lists_may_be_one_word_or_several() {
        for args in [&["holdfast", "--save", "3600 1 300 100"][..], &["holdfast", "--save", "3600", "1", "300", "100"]]
        {
            assert_eq!(load_with(args, &[]).unwrap().settings.save_points(), vec![(3600, 1), (300, 100)]);
        }
        assert_eq!(load_with(&["holdfast", "--save", ""], &[]).unwrap().settings.save_points(), vec![]);
    }

    #[test]
    fn rewriting_keeps_comments_and_replaces_values() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.toml");
        std::fs::write(&path, "# the port\nport = 1111 # keep\ntimeout = 9\n").unwrap();
        rewrite(&path, &[("port", "4444".into()), ("requirepass", "se\"cret".into())]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# the port\nport = 4444 # keep\n") && !text.contains("timeout"), "{text}");
        let loaded = load_with(&["holdfast", "--config", path.to_str().unwrap()], &[]).unwrap();
        assert_eq!((loaded.settings.port(), &*loaded.settings.requirepass()), (4444, "se\"cret"));
    }

    #[test]
    fn rewriting_twice_keeps_odd_values_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.toml");
        std::fs::write(&path, "").unwrap();
        let odd = "a\nport = 1\nb\"\"\"'";
        for _ in 0..3 {
            rewrite(&path, &[("masterauth", odd.into()), ("timeout", "3".into())]).unwrap();
        }
        let loaded = load_with(&["holdfast", "--config", path.to_str().unwrap()], &[]).unwrap();
        assert_eq!((loaded.settings.port(), loaded.settings.timeout()), (6379, 3));
        let mut found = Vec::new();
        loaded.settings.get(&[b"masterauth"], &mut found);
        assert_eq!(found, vec![("masterauth".to_owned(), odd.to_owned())]);
    }
}
