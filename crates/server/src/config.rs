//! Where settings come from: the built-in defaults, then the configuration file, then `HOLDFAST_*` variables, then
//! flags; the later wins. Knows files and names; refuses to know what a setting does.

use crate::tables::Tables;
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::Settings;
use engine::settings::TABLE;
use std::collections::{HashMap, HashSet};
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
    Import { file: PathBuf, dir: PathBuf, skip_unsupported: bool },
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
        _ => Tool::Import {
            file: path("FILE").context("import needs a file")?,
            dir,
            skip_unsupported: given.get_flag("skip-unsupported"),
        },
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
            .arg(path("DIR").long("dir").value_name("DIR").help("The data directory to read it into"))
            .arg(
                Arg::new("skip-unsupported")
                    .long("skip-unsupported")
                    .action(ArgAction::SetTrue)
                    .help("End with 0 although something was left out; without it, that ends with 3"),
            ),
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

/// Brings the file in line with the settings, of which `settings` has all (CONFIG REWRITE). What is in the file and still
/// true stays as it is, to the byte; a value that is not is replaced; a setting that is not in the file and not at its default
/// is added.
pub(crate) fn rewrite(path: &Path, settings: &[(&'static str, String)]) -> Result<()> {
    // A link stays one: the file that it leads to is replaced.
    let path = &std::fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut file: DocumentMut = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    let known = |name: &str| Settings::find(name.as_bytes()).map(|row| row.name);
    let values: HashMap<&str, &String> = settings.iter().map(|(name, value)| (*name, value)).collect();
    let names: Vec<String> = file.iter().map(|(name, _)| name.to_owned()).collect();
    let stated = stated(&text)?;
    for name in &names {
        let Some((row, value)) = known(name).and_then(|row| Some((row, *values.get(row)?))) else { continue };
        if stated.get(row) == Some(value) {
            continue;
        }
        // Only the value changes, so that a comment behind it stays.
        if let Some(item) = file[name].as_value_mut() {
            let (decor, was_flag) = (item.decor().clone(), item.is_bool());
            *item = toml_value(value, was_flag);
            *item.decor_mut() = decor;
        }
    }
    for row in TABLE {
        let Some(value) = values.get(row.name).filter(|value| value.as_str() != row.default) else { continue };
        if !names.iter().any(|name| known(name) == Some(row.name)) {
            file[row.name] = toml_edit::value(toml_value(value, false));
        }
    }
    let new = file.to_string();
    if new == text {
        return Ok(());
    }
    replace(path, &new).with_context(|| format!("cannot replace {}", path.display()))
}

/// The values that settings get from a file, as they are printed: `1mb` is 1048576.
fn stated(text: &str) -> Result<HashMap<&'static str, String>> {
    let table: toml::Table = text.parse()?;
    let settings = Settings::new();
    let named = table.iter().filter_map(|(name, value)| {
        settings.load(name.as_bytes(), as_text(value).ok()?.as_bytes()).ok()?;
        Settings::find(name.as_bytes()).map(|row| row.name)
    });
    let named: HashSet<&str> = named.collect();
    Ok(settings.all().into_iter().filter(|(name, _)| named.contains(name)).collect())
}

/// Puts a new text in the place of a file, which keeps its permissions: there may be a password in it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = path.with_extension("toml.new");
    let mut new = std::fs::File::create(&temporary)?;
    new.set_permissions(std::fs::metadata(path)?.permissions())?;
    std::io::Write::write_all(&mut new, text.as_bytes())?;
    new.sync_all()?;
    std::fs::rename(&temporary, path)
}

fn toml_value(value: &str, as_flag: bool) -> toml_edit::Value {
    if as_flag && (value == "yes" || value == "no") {
        return (value == "yes").into();
    }
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

    /// Rewrites a file after it was loaded and these settings were changed.
    fn load_and_rewrite(path: &Path, changes: &[(&str, &str)]) {
        let loaded = load_with(&["holdfast", "--config", path.to_str().unwrap()], &[]).unwrap();
        for (name, value) in changes {
            loaded.settings.load(name.as_bytes(), value.as_bytes()).unwrap();
        }
        rewrite(path, &loaded.settings.all()).unwrap();
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
        rewrite(&path, &all.all()).unwrap();
        let expected = text.replace("1111", "4444").replace("= true\n", "= true\nrequirepass = 'se\"cret'\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        all.load(b"activerehashing", b"no").unwrap();
        rewrite(&path, &all.all()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected.replace("= true", "= false"));
    }

    #[test]
    fn rewriting_the_shipped_file_changes_the_lines_that_are_not_true_any_more() {
        let shipped =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/holdfast.toml")).unwrap();
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
}
