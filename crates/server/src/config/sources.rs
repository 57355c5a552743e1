//! Where settings come from: the built-in defaults, then the configuration file, then `HOLDFAST_*` variables, then
//! flags; later sources win. Knows files and names; refuses to know what a setting does.

use super::looks::{self, Doctor, Ping};
use super::redis_conf;
use super::tables::{ConfiguredUser, Tables};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use clap_complete::Shell;
use engine::Settings;
use engine::settings::{TABLE, row};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tls::ClientOptions;

/// How long a hand-over may take, unless it is said otherwise.
const HAND_OVER_SECONDS: u64 = 60;
/// How long a promotion that is asked for may take.
const PROMOTION_SECONDS: u64 = 600;
const VARIABLE_PREFIX: &str = "HOLDFAST_";
/// The flags that make users.
const USERS: &str = "users";

/// The settings shown in `--help`; every other setting is a flag too.
const SHOWN: &[(&str, &str)] = &[
    ("port", "TCP port to listen on"),
    ("bind", "Addresses to listen on, separated by spaces"),
    ("dir", "Directory for the server's data"),
    ("log", "The log that is written, as a URL: file:DIR, or nats://HOST:PORT,HOST:PORT,HOST:PORT/NAME"),
    ("follow", "Follow the server that writes this data directory, and answer reads"),
    ("appendonly", "Keep a journal of every write: yes or no"),
    ("appendfsync", "When the journal is forced to disk: always, everysec or no"),
    ("threads", "Worker threads; 0 = one a core"),
    ("requirepass", "Password that clients must give with AUTH"),
    ("maxmemory", "Most memory to use, such as 2gb; 0 = no limit"),
    ("maxclients", "Most clients at once"),
    ("loglevel", "debug, verbose, notice, warning or nothing"),
    ("log-format", "text or json"),
    ("console", "Serve a web page for operators, on admin-port, or on 8379 without it"),
    ("enable-debug-command", "Allow DEBUG: no, yes or local"),
];

/// Settings whose value may be given as several arguments.
const SEVERAL_WORDS: &[&str] = &["bind", "save", "client-output-buffer-limit", "oom-score-adj-values"];

/// Settings whose flag alone means yes.
const YES_WITHOUT_VALUE: &[&str] = &["console"];

/// The port for operators if there is a console and no other port is set.
const CONSOLE_PORT: &str = "8379";

/// Returns the settings that differ from their defaults and have no effect.
pub(crate) fn without_effect(settings: &Settings) -> Vec<&'static str> {
    let is_ignored = |name: &str| Settings::find(name.as_bytes()).is_some_and(|row| row.is_without_effect);
    settings.changed_from_defaults().iter().map(|(name, _)| *name).filter(|name| is_ignored(name)).collect()
}

/// What the command line requests.
pub(crate) enum Invocation {
    Serve(Loaded),
    /// Serve in the place of the process that writes the data directory.
    Upgrade(Loaded),
    /// Start a process that upgrades, and end.
    Detach,
    Use(Tool, Loaded),
}

/// A subcommand that does something else than serve.
pub(crate) enum Tool {
    Data(DataTool),
    Repair(Repair),
    ClusterStatus {
        as_json: bool,
    },
    Export(Box<Export>),
    Follow(Box<Follow>),
    HandOver(HandOver),
    Ping(Box<Ping>),
    Doctor(Box<Doctor>),
    Completions(Shell),
    Man {
        output: Option<PathBuf>,
    },
    /// Make a holdfast.toml of a redis.conf.
    Convert {
        file: PathBuf,
    },
}

/// A subcommand that works on a data directory.
pub(crate) enum DataTool {
    Check { dir: PathBuf },
    Import { file: PathBuf, dir: PathBuf, skip_unsupported: bool },
}

/// What `check --repair` is told.
pub(crate) struct Repair {
    pub(crate) dir: PathBuf,
    /// The operator is not asked.
    pub(crate) is_confirmed: bool,
    /// The last batch that stays, where batches behind it can still be read: they may be lost.
    pub(crate) lose_after: Option<u64>,
}

/// What `export` is told.
pub(crate) struct Export {
    pub(crate) dir: PathBuf,
    /// A file; `None`: stdout.
    pub(crate) output: Option<PathBuf>,
    /// The URL of a server that takes it, instead.
    pub(crate) to: Option<String>,
    pub(crate) to_password: Option<String>,
    pub(crate) tls: ClientOptions,
}

/// What `import` is told about a running server.
pub(crate) struct Follow {
    /// The URL of the server whose data is wanted; `None`: another process follows it, and is asked for the promotion.
    pub(crate) from: Option<String>,
    pub(crate) from_password: Option<String>,
    /// The URL of the server that gets it.
    pub(crate) to: String,
    pub(crate) to_password: Option<String>,
    pub(crate) replaces: bool,
    pub(crate) promotes: bool,
    pub(crate) pause: Option<Duration>,
    pub(crate) within: Duration,
    pub(crate) skip_unsupported: bool,
    pub(crate) tls: ClientOptions,
}

/// What `handover` is told beside the settings.
pub(crate) struct HandOver {
    /// A server of the cluster; `None`: the log says which one writes.
    pub(crate) host: Option<String>,
    /// The follower that should take over, as host:port; `None`: the one that is furthest.
    pub(crate) to: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) tls: bool,
    pub(crate) timeout: Duration,
}

/// The initial settings and their source.
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    pub(crate) file: Option<PathBuf>,
    pub(crate) tables: Tables,
}

impl Loaded {
    fn defaults() -> Loaded {
        Loaded { settings: Settings::new(), file: None, tables: Tables::default() }
    }
}

/// Reads the command line and everything it refers to. Prints help or an error and exits if necessary.
pub(crate) fn from_command_line() -> Result<Invocation> {
    let matches = command_line().get_matches();
    if let Some(("upgrade", given)) = matches.subcommand() {
        if given.get_flag("detach") {
            return Ok(Invocation::Detach);
        }
        return Ok(Invocation::Upgrade(load(&[&matches, given], std::env::vars_os())?));
    }
    if let Some(("cluster", given)) = matches.subcommand() {
        let (_, given) = given.subcommand().context("cluster needs a subcommand")?;
        let tool = Tool::ClusterStatus { as_json: given.get_flag("json") };
        return Ok(Invocation::Use(tool, load(&[&matches, given], std::env::vars_os())?));
    }
    if let Some(("handover", given)) = matches.subcommand() {
        let loaded = load(&[&matches, given], std::env::vars_os())?;
        return Ok(Invocation::Use(Tool::HandOver(hand_over(given, &loaded.settings)), loaded));
    }
    if let Some(("ping", given)) = matches.subcommand() {
        let tool = Tool::Ping(Box::new(Ping::new(given)?));
        return Ok(Invocation::Use(tool, load(&[&matches, given], std::env::vars_os())?));
    }
    if let Some(("doctor", given)) = matches.subcommand() {
        // IMPORTANT: not an error like others, whose exit code is that of a finding.
        return examine(&matches, given).or_else(|error| {
            command_line().error(clap::error::ErrorKind::ValueValidation, format!("{error:#}")).exit()
        });
    }
    // These tell about the binary, wherever it is: they read no configuration.
    if let Some(("completions", given)) = matches.subcommand() {
        return Ok(Invocation::Use(Tool::Completions(looks::shell(given)?), Loaded::defaults()));
    }
    if let Some(("man", given)) = matches.subcommand() {
        return Ok(Invocation::Use(Tool::Man { output: given.get_one("output").cloned() }, Loaded::defaults()));
    }
    if let Some(("config", given)) = matches.subcommand() {
        let (_, given) = given.subcommand().context("config needs a subcommand")?;
        let file = given.get_one("FILE").cloned().context("config convert needs a file")?;
        return Ok(Invocation::Use(Tool::Convert { file }, Loaded::defaults()));
    }
    let loaded = load(&[&matches], std::env::vars_os())?;
    let Some((name, given)) = matches.subcommand() else { return Ok(Invocation::Serve(loaded)) };
    if name == "import" && (given.contains_id("follow") || given.get_flag("promote")) {
        return Ok(Invocation::Use(Tool::Follow(Box::new(follow(given, &loaded.settings))), loaded));
    }
    let path = |name: &str| given.get_one::<PathBuf>(name).cloned();
    let dir = path("DIR").unwrap_or_else(|| PathBuf::from(&*loaded.settings.dir()));
    if name == "export" {
        let export = Export {
            dir,
            output: path("output"),
            to: given.get_one::<String>("to").cloned(),
            to_password: std::env::var("REDISCLI_AUTH").ok(),
            tls: client_options(given, &loaded.settings),
        };
        return Ok(Invocation::Use(Tool::Export(Box::new(export)), loaded));
    }
    if name == "check" && given.get_flag("repair") {
        let (is_confirmed, lose_after) = (given.get_flag("yes"), given.get_one("lose-after").copied());
        return Ok(Invocation::Use(Tool::Repair(Repair { dir, is_confirmed, lose_after }), loaded));
    }
    let tool = match name {
        "check" => DataTool::Check { dir },
        _ => DataTool::Import {
            file: path("FILE").context("import needs a file")?,
            dir,
            skip_unsupported: given.get_flag("skip-unsupported"),
        },
    };
    Ok(Invocation::Use(Tool::Data(tool), loaded))
}

fn examine(matches: &ArgMatches, given: &ArgMatches) -> Result<Invocation> {
    let loaded = load(&[matches, given], std::env::vars_os())?;
    let tool = Tool::Doctor(Box::new(Doctor::new(given, &loaded.settings.dir())?));
    Ok(Invocation::Use(tool, loaded))
}

fn follow(given: &ArgMatches, settings: &Settings) -> Follow {
    let text = |name: &str| given.get_one::<String>(name).cloned();
    let seconds = |name: &str| given.get_one::<u64>(name).copied().map(Duration::from_secs);
    let own = Some(settings.requirepass().to_string()).filter(|password| !password.is_empty());
    Follow {
        from: text("follow"),
        from_password: std::env::var("REDISCLI_AUTH").ok(),
        to: text("to").unwrap_or_else(|| format!("redis://127.0.0.1:{}", settings.client_port())),
        to_password: own,
        replaces: given.get_flag("replace"),
        promotes: given.get_flag("promote"),
        pause: seconds("pause-source"),
        within: seconds("within").unwrap_or(Duration::from_secs(PROMOTION_SECONDS)),
        skip_unsupported: given.get_flag("skip-unsupported"),
        tls: client_options(given, settings),
    }
}

/// The files for TLS, from flags and then from settings.
fn client_options(given: &ArgMatches, settings: &Settings) -> ClientOptions {
    let text =
        |name: &str, row| given.get_one::<String>(name).cloned().unwrap_or_else(|| settings.text(row).to_string());
    ClientOptions {
        ca_cert_file: text("tls-ca-cert-file", row::TLS_CA_CERT_FILE),
        ca_cert_dir: text("tls-ca-cert-dir", row::TLS_CA_CERT_DIR),
        cert_file: text("tls-cert-file", row::TLS_CERT_FILE),
        key_file: text("tls-key-file", row::TLS_KEY_FILE),
        key_file_pass: text("tls-key-file-pass", row::TLS_KEY_FILE_PASS),
    }
}

fn hand_over(given: &ArgMatches, settings: &Settings) -> HandOver {
    let text = |name: &str| given.get_one::<String>(name).cloned();
    let finds_itself = settings.log().is_empty() || given.value_source("port").is_some();
    HandOver {
        host: text("host").or_else(|| finds_itself.then(|| "127.0.0.1".to_owned())),
        to: text("to"),
        user: text("user"),
        password: text("pass"),
        tls: given.get_flag("tls"),
        timeout: Duration::from_secs(given.get_one::<u64>("within").copied().unwrap_or(HAND_OVER_SECONDS)),
    }
}

/// The subcommands.
pub(super) fn tools() -> [Command; 11] {
    let path = |name: &'static str| Arg::new(name).value_parser(clap::value_parser!(PathBuf));
    let dir = || path("DIR").help("The data directory; without it, the one that the server would use");
    [
        with_settings(Command::new("upgrade").args_override_self(true).about(
            "Serves in the place of the server that writes the data directory: it ends, and clients find this one at the \
             same address",
        ))
        .arg(users())
        .arg(Arg::new("detach").long("detach").action(ArgAction::SetTrue).hide(true)),
        check_command().arg(dir()),
        with_client_files(
            Command::new("export")
                .about("Writes a data directory as requests that redis-cli --pipe can load anywhere, or sends them to a server")
                .arg(dir())
                .arg(path("output").long("output").short('o').value_name("FILE").help("Where to; without it, to stdout"))
                .arg(Arg::new("to").long("to").value_name("URL").conflicts_with("output").help(
                    "Send them to this Redis, Valkey or Holdfast: redis://[USER:PASSWORD@]HOST:PORT, or rediss:// for TLS. \
                     Without a password, REDISCLI_AUTH. Ends with 3 if something was refused, which is listed",
                )),
        ),
        import_command(),
        cluster_command(),
        config_command(),
        hand_over_command(),
        looks::ping(with_settings(Command::new("ping").args_override_self(true))),
        looks::doctor(with_settings(Command::new("doctor").args_override_self(true))),
        looks::completions(),
        looks::man(),
    ]
}

/// `holdfast check`.
fn check_command() -> Command {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("check")
        .about("Verifies a data directory and says what it holds; with --repair, cuts a damaged end off its journal")
        .arg(flag("repair").help(
            "Show what has to be cut off the journal so that it can be read, and cut it after a confirmation. A copy stays in the \
             directory (*.cut-N)",
        ))
        .arg(flag("yes").requires("repair").help("Cut without asking"))
        .arg(
            Arg::new("lose-after")
                .long("lose-after")
                .value_name("BATCH")
                .requires("repair")
                .value_parser(clap::value_parser!(u64))
                .help("Cut although later batches can still be read: the number of the last batch that stays, as --repair says it"),
        )
}

/// `holdfast import`: a file into a data directory, or a running server into another.
fn import_command() -> Command {
    let path = |name: &'static str| Arg::new(name).value_parser(clap::value_parser!(PathBuf));
    let text = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let seconds = || clap::value_parser!(u64).range(1..=86_400);
    let command = Command::new("import")
        .about("Reads an RDB or AOF file of Redis's into a data directory, or brings the data of a running Redis or Valkey in")
        .arg(
            path("FILE")
                .required_unless_present_any(["follow", "promote"])
                .conflicts_with_all(["follow", "promote", "to"])
                .help("FILE.rdb, FILE.aof, a manifest, or an appendonlydir"),
        )
        .arg(path("DIR").long("dir").value_name("DIR").help("The data directory to read it into"))
        .arg(flag("skip-unsupported").help("End with 0 although something was left out; without it, that ends with 3"))
        .arg(text("follow", "URL").help(
            "Bring the data of this server in and keep it as it is there, until the promotion: redis://[USER:PASSWORD@]HOST:PORT, \
             or rediss:// for TLS. Without a password, REDISCLI_AUTH",
        ))
        .arg(text("to", "URL").help("The running Holdfast that gets it; without it, the one on this machine"))
        .arg(flag("replace").help("Remove what it has"))
        .arg(flag("promote").help(
            "With --follow: end as soon as everything is there. Without: ask the process that follows to end so, and wait",
        ))
        .arg(
            text("pause-source", "SECONDS")
                .value_parser(seconds())
                .help("Before the promotion, let the source hold its writers back (CLIENT PAUSE), for so long at most"),
        )
        .arg(text("within", "SECONDS").value_parser(seconds()).help("How long to wait for a promotion; 600 without it"));
    with_client_files(command)
}

/// Adds the files of a client of TLS.
fn with_client_files(command: Command) -> Command {
    let text = |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("FILE").help(help);
    command
        .arg(text("tls-ca-cert-file", "The authorities that a server's certificate is checked against"))
        .arg(text("tls-ca-cert-dir", "The same as a directory").value_name("DIR"))
        .arg(text("tls-cert-file", "The certificate that is shown to servers"))
        .arg(text("tls-key-file", "Its key"))
        .arg(text("tls-key-file-pass", "The password of the key").value_name("PASSWORD"))
}

/// `holdfast cluster status`.
fn cluster_command() -> Command {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON");
    let status = with_settings(Command::new("status").args_override_self(true).about(
        "Shows the servers that share a log on NATS, its stream, its snapshots and what is wrong; ends with 1 if something is",
    ));
    Command::new("cluster")
        .about("Shows the servers that share a log on NATS (--log)")
        .subcommand_required(true)
        .subcommand(status.arg(json))
}

/// `holdfast config convert`.
fn config_command() -> Command {
    let file = Arg::new("FILE").value_parser(clap::value_parser!(PathBuf)).required(true).help("A redis.conf");
    let convert = Command::new("convert")
        .about(
            "Prints a holdfast.toml made of a redis.conf, which names in comments every directive that has no counterpart; ends \
             with 3 if there are any",
        )
        .arg(file);
    Command::new("config").about("Converts configuration files").subcommand_required(true).subcommand(convert)
}

/// `holdfast handover`. As in redis-cli, -h is the host.
fn hand_over_command() -> Command {
    let text = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let seconds = clap::value_parser!(u64).range(1..=3600);
    with_settings(Command::new("handover").args_override_self(true))
        .about("Asks the server that writes to hand its log over to a follower, and waits until another writes")
        .disable_help_flag(true)
        .mut_arg("port", |arg| arg.short('p').help("Port of a server of the cluster"))
        .arg(Arg::new("help").long("help").action(ArgAction::Help).help("Print help"))
        .arg(text("host", "HOST").short('h').help("A server of the cluster; without it and with --log, the log tells"))
        .arg(text("to", "HOST:PORT").help("The follower that takes over; without it, the one that is furthest"))
        .arg(text("user", "NAME").help("User to authenticate as"))
        .arg(text("pass", "PASSWORD").short('a').help("Password; without it, REDISCLI_AUTH, then requirepass"))
        .arg(
            Arg::new("tls")
                .long("tls")
                .action(ArgAction::SetTrue)
                .help("Use TLS: tls-ca-cert-file checks the server, tls-cert-file and tls-key-file are shown to it"),
        )
        .arg(text("within", "SECONDS").value_parser(seconds).help("How long to wait; 60 without it"))
}

/// The whole command line.
pub(crate) fn command_line() -> Command {
    command().subcommands(tools())
}

/// The command line, without the subcommands.
pub(super) fn command() -> Command {
    let command = Command::new("holdfast")
        .version(env!("CARGO_PKG_VERSION"))
        // As in redis-server, the last of two equal flags wins.
        .args_override_self(true)
        .about("A state server for workers, workflows and pipelines that speaks the Redis protocol")
        .after_help(
            "Every setting of the configuration file is a flag (--maxmemory 2gb) and an environment variable \
             (HOLDFAST_MAXMEMORY=2gb). Flags win over variables, variables over the file. \
             config/holdfast.toml lists all settings with their defaults.",
        );
    with_settings(command).arg(users())
}

/// Users, as a line of a file of users has them.
fn users() -> Arg {
    let form = "A user and its rules, such as 'alice on >secret ~jobs:* +@read'; may be given several times";
    let action = ArgAction::Append;
    Arg::new(USERS).long("user").value_name("NAME RULES").action(action).allow_hyphen_values(true).help(form)
}

/// Adds a flag for each setting, and one for the configuration file.
fn with_settings(command: Command) -> Command {
    let file = Arg::new("config").long("config").short('c').value_name("FILE").env("HOLDFAST_CONFIG");
    let mut command = command
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
        if YES_WITHOUT_VALUE.contains(&row.name) {
            arg = arg.num_args(0..=1).default_missing_value("yes").allow_hyphen_values(false);
        }
        command = command.arg(match help {
            Some(help) => arg.help(help),
            None => arg.hide(true),
        });
    }
    command
}

/// Loads settings from a file, variables and flags; of several sets of flags, the later win.
pub(super) fn load(
    flags: &[&ArgMatches],
    variables: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
) -> Result<Loaded> {
    let settings = Settings::new();
    let file = flags.iter().rev().find_map(|flags| flags.get_one::<PathBuf>("config").cloned());
    let mut tables = match &file {
        Some(file) => load_file(&settings, file)?,
        None => Tables::default(),
    };
    for (variable, value) in variables {
        let Some(name) = variable.to_str().and_then(|variable| variable.strip_prefix(VARIABLE_PREFIX)) else {
            continue;
        };
        // The project's scripts use variables with the same prefix.
        if matches!(name, "CONFIG" | "BIN" | "NATS_SERVER") || name.starts_with("TEST_") {
            continue;
        }
        let value = value.to_str().with_context(|| format!("{VARIABLE_PREFIX}{name} is not UTF-8"))?;
        set(&settings, &name.to_ascii_lowercase().replace('_', "-"), value)
            .with_context(|| format!("environment variable {VARIABLE_PREFIX}{name}"))?;
    }
    for flags in flags {
        // Subcommands that only use a server have no users.
        for user in flags.try_get_many::<String>(USERS).ok().flatten().into_iter().flatten() {
            let (name, rules) = user.trim().split_once(' ').unwrap_or((user.trim(), ""));
            let place = format!("flag --user {name}");
            tables.users.push(ConfiguredUser { name: name.to_owned(), rules: rules.trim().to_owned(), place });
        }
        for row in TABLE {
            if let Some(values) = flags.get_many::<String>(row.name) {
                let value = values.map(String::as_str).collect::<Vec<_>>().join(" ");
                set(&settings, row.name, &value).with_context(|| format!("flag --{}", row.name))?;
            }
        }
    }
    if settings.console() && settings.admin_port() == 0 {
        set(&settings, "admin-port", CONSOLE_PORT)?;
    }
    Ok(Loaded { settings, file, tables })
}

fn parse_toml(path: &Path, bytes: &[u8]) -> Result<toml::Table> {
    let text = std::str::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))?;
    text.parse().with_context(|| format!("{} is not valid TOML", path.display()))
}

/// Reads a TOML file of `name = value` lines and tables.
fn load_file(settings: &Settings, path: &Path) -> Result<Tables> {
    let bytes =
        std::fs::read(path).with_context(|| format!("cannot read the configuration file {}", path.display()))?;
    let parsed = parse_toml(path, &bytes);
    if parsed.is_err() && redis_conf::is_redis_conf(&bytes) {
        let path = path.display();
        bail!("{path}: this is a redis.conf: holdfast config convert {path} prints a holdfast.toml made of it");
    }
    let mut table = parsed?;
    let mut tables = Tables::take(&mut table).with_context(|| format!("in {}", path.display()))?;
    tables.users.iter_mut().for_each(|user| user.place = format!("{}: {}", path.display(), user.place));
    for (name, value) in &table {
        let value = as_text(value).with_context(|| format!("{}: {name}", path.display()))?;
        set(settings, name, &value).with_context(|| format!("in {}", path.display()))?;
    }
    Ok(tables)
}

pub(super) fn as_text(value: &toml::Value) -> Result<String> {
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
            Settings::nearest(name.as_bytes()).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
        );
    }
    match settings.load(name.as_bytes(), value.as_bytes()) {
        Ok(()) => Ok(()),
        Err(reason) => bail!("bad value '{value}' for setting '{name}': {reason}"),
    }
}
