//! The command lines of the tools that look at a server or tell about the binary itself: `ping`, `doctor`,
//! `completions`, `man`.
//! Knows their arguments; refuses to know settings, which are added to them.

use super::server_url::ServerUrl;
use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use clap_complete::Shell;
use std::path::PathBuf;
use std::time::Duration;

/// How long a server has for each answer, unless it is said otherwise: less than a probe usually waits.
const ANSWER_SECONDS: u64 = 2;

/// What `ping` is told beside the settings.
pub(crate) struct Ping {
    pub(crate) server: Asked,
    /// Any answer will do, also one that refuses.
    pub(crate) any_answer: bool,
}

/// What `doctor` is told beside the settings.
pub(crate) struct Doctor {
    pub(crate) examined: Examined,
    pub(crate) as_json: bool,
}

pub(crate) enum Examined {
    /// The data directory of a server, with the machine and the settings.
    Directory(PathBuf),
    /// A running server.
    Server(Box<Asked>),
}

/// A server to ask, as far as the command line names it; settings say the rest.
pub(crate) struct Asked {
    pub(crate) url: Option<ServerUrl>,
    pub(crate) host: Option<String>,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) tls: bool,
    /// The name that the certificate must have.
    pub(crate) tls_name: Option<String>,
    pub(crate) answers_within: Duration,
}

impl Ping {
    pub(super) fn new(given: &ArgMatches) -> Result<Ping> {
        Ok(Ping { server: Asked::new(given, given.get_one("URL"))?, any_answer: given.get_flag("alive") })
    }
}

impl Doctor {
    /// Without a name it is the data directory of the settings.
    pub(super) fn new(given: &ArgMatches, dir: &str) -> Result<Doctor> {
        let named = given.get_one::<String>("DIR|URL");
        let examined = match named.filter(|named| named.contains("://")) {
            Some(url) => Examined::Server(Box::new(Asked::new(given, Some(url))?)),
            None => Examined::Directory(named.map_or(dir, String::as_str).into()),
        };
        Ok(Doctor { examined, as_json: given.get_flag("json") })
    }
}

impl Asked {
    fn new(given: &ArgMatches, url: Option<&String>) -> Result<Asked> {
        let text = |name: &str| given.get_one::<String>(name).cloned();
        let parse = |url: &String| ServerUrl::parse(url).unwrap_or_else(|| Err(not_a_url(url)));
        Ok(Asked {
            url: url.map(parse).transpose()?,
            // These two are flags of `ping` alone.
            host: given.try_get_one("host").ok().flatten().cloned(),
            socket: given.try_get_one("socket").ok().flatten().cloned(),
            user: text("user"),
            password: text("pass"),
            tls: given.get_flag("tls"),
            tls_name: text("sni"),
            answers_within: Duration::from_secs(given.get_one::<u64>("within").copied().unwrap_or(ANSWER_SECONDS)),
        })
    }
}

/// It may hold a password, so only its beginning is shown.
fn not_a_url(text: &str) -> anyhow::Error {
    let scheme = text.split_once("://").map_or("it", |(scheme, _)| scheme);
    anyhow!("a server is named by a URL redis://, rediss:// or unix://; {scheme} is none of them")
}

/// `holdfast ping`, on a command that has a flag for each setting.
pub(super) fn ping(with_settings: Command) -> Command {
    asks_a_server(with_settings)
        .about("Asks a server whether it is ready; ends with 0 if it is, else with 1")
        .after_help(
            "Without arguments it asks the server that the configuration, the variables HOLDFAST_* and the flags \
             describe: at port, at the first address of bind, with requirepass. For health checks of containers and \
             for probes.",
        )
        .arg(Arg::new("URL").help("redis://[[user]:password@]host[:port], rediss://… for TLS, or unix:///path"))
        .arg(Arg::new("alive").long("alive").action(ArgAction::SetTrue).help(
            "Any answer will do: a server that loads its data, is busy with a script or asks for a password is alive",
        ))
        .group(ArgGroup::new("by URL").arg("URL").conflicts_with_all(["host", "socket"]))
}

/// `holdfast doctor`, on a command that has a flag for each setting.
pub(super) fn doctor(with_settings: Command) -> Command {
    let named = Arg::new("DIR|URL").help(
        "A data directory, with this machine and the configuration; or a running server, as a URL redis://, rediss:// or \
         unix://. Without it, the data directory that the server would use",
    );
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON");
    reaches_a_server(with_settings)
        .about("Looks at a machine, a configuration and a data directory, or at a running server, and says what to do")
        .after_help(
            "Ends with 0 if all is well, with 1 if there is something to act upon, with 2 if nothing could be checked.",
        )
        .arg(named)
        .arg(json)
}

/// The flags that name a server, as redis-cli has them: -h is the host.
fn asks_a_server(with_settings: Command) -> Command {
    let text = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    reaches_a_server(with_settings)
        .disable_help_flag(true)
        .mut_arg("port", |arg| arg.short('p').help("Port of the server"))
        .arg(Arg::new("help").long("help").action(ArgAction::Help).help("Print help"))
        .arg(text("host", "HOST").short('h').help("The server; without it, the first address of bind"))
        .arg(
            text("socket", "PATH")
                .short('s')
                .value_parser(clap::value_parser!(PathBuf))
                .conflicts_with("host")
                .help("Its Unix socket, instead of host and port"),
        )
}

/// The flags that say how a server is reached, wherever it is.
fn reaches_a_server(with_settings: Command) -> Command {
    let text = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let seconds = clap::value_parser!(u64).range(1..=3600);
    // The others are taken, too, and would only hide what is of use here.
    let shown = ["config", "bind", "port"];
    with_settings
        .mut_args(|arg| if shown.contains(&arg.get_id().as_str()) { arg } else { arg.hide(true) })
        .arg(text("user", "NAME").help("User to authenticate as"))
        .arg(text("pass", "PASSWORD").short('a').help("Password; without it, REDISCLI_AUTH, then requirepass"))
        .arg(Arg::new("tls").long("tls").action(ArgAction::SetTrue).help(
            "Use TLS, as is done without this flag where port is 0: tls-ca-cert-file checks the server, tls-cert-file \
             and tls-key-file are shown to it",
        ))
        .arg(text("sni", "NAME").help("The name that the server's certificate must have; without it, the host"))
        .arg(text("within", "SECONDS").value_parser(seconds).help("How long to wait for each answer; 2 without it"))
}

/// `holdfast completions`.
pub(super) fn completions() -> Command {
    let shell = Arg::new("SHELL").required(true).value_parser(clap::value_parser!(Shell));
    Command::new("completions")
        .about("Prints the completions of this command line for a shell")
        .arg(shell.help("The shell that will read them"))
}

pub(super) fn shell(given: &ArgMatches) -> Result<Shell> {
    given.get_one::<Shell>("SHELL").copied().context("completions needs the name of a shell")
}

/// `holdfast man`.
pub(super) fn man() -> Command {
    let dir = Arg::new("output").long("output").short('o').value_name("DIR").value_parser(clap::value_parser!(PathBuf));
    Command::new("man")
        .about("Prints the man page")
        .arg(dir.help("Writes it into this directory instead, with a page for each subcommand"))
}
