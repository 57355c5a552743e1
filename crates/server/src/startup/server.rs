//! Starts the workers and the other threads, and stops them. Knows threads and signals; refuses to know requests.

use super::Beginning;
use super::host::{Adjusted, Process};
use super::operators;
use super::successor;
use crate::config::{self, ConfiguredUser, Loaded};
use crate::durability::{Indexes, Keeper, LogUrl, OpenedPlace, RoleThread};
use crate::network::{self, Listeners};
use crate::platform::clock::{SystemClock, unix_s};
use crate::platform::logging::{self, LogLevelHandle};
use crate::platform::sockets::ListeningSocket;
use crate::platform::{allocator, descriptors, huge_pages, service_manager};
use crate::sentinel;
use anyhow::{Context, Result, anyhow, ensure};
use engine::NamedUsers;
use engine::background::Sweeper;
use engine::host::{SaveOnExit, Shutdown};
use engine::persistence::Loading;
use engine::{Engine, Settings};
use std::cell::Cell;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

/// Runs the server until it is told to stop.
pub(crate) fn run(loaded: Loaded, beginning: Beginning) -> Result<()> {
    let settings = Arc::new(loaded.settings);
    let indexes = loaded.tables.indexes;
    let log_level = logging::start(settings.loglevel(), settings.log_as_json());
    for setting in config::without_effect(&settings) {
        tracing::warn!(setting, "this setting has no effect: see docs/SETTINGS.md");
    }
    let given = settings.all();
    let huge_pages_off = huge_pages::hold_back(settings.disable_thp());
    allocator::give_back_in_background();
    let upgrades = beginning == Beginning::Upgrade;
    // IMPORTANT: before a data directory is made, so that a start that fails here leaves none behind. A process that takes
    // another's place gets its sockets later.
    let bound = if upgrades { Vec::new() } else { network::bind(&settings)? };
    let users = configured_users(&settings, &loaded.tables.users)?;
    let clock = Arc::new(SystemClock::new());
    let OpenedPlace { place, cluster } = match (upgrades, settings.follow()) {
        (true, _) => log_to_follow(&settings, own_url(&settings)?)?,
        (false, none) if none.is_empty() => own_log(&settings, &clock)?,
        (false, url) => log_to_follow(&settings, LogUrl::parse(&url)?)?,
    };
    let role = match (beginning, settings.follow().is_empty() && !place.elects()) {
        (Beginning::Upgrade, _) => FirstRole::Upgrade,
        (Beginning::Start, true) => FirstRole::Writer,
        (Beginning::Start, false) => FirstRole::Follower,
    };
    let threads = match settings.threads() {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    make_room_for_clients(&settings, threads)?;
    let (listeners, orders) = Listeners::new(&bound);
    drop(listeners.follow_tls(&settings).context("Failed to configure TLS")?);
    let listeners = Arc::new(listeners);
    let keeper = Arc::new(Keeper::new(settings.clone(), threads, unix_s()));
    let shared = listeners.clone();
    keeper.roles.set_sockets(move || shared.share());
    let (stop, stopped) = watch::channel(None);
    let adjusted = adjusted(given, settings.all());
    if let Some(cluster) = &cluster {
        keeper.roles.set_cluster(cluster.clone());
    }
    let (from, clocked) = ((loaded.file, adjusted), (&settings, clock));
    let engine = engine(clocked, from, threads, log_level, stop, &keeper, Some(listeners.clone()));
    engine::load_users(&engine, users);
    engine::set_loading(&engine, true);
    keeper.set_loading(Loading { since_s: unix_s(), total_bytes: 0, loaded_bytes: 0, left_s: 0 });
    sentinel::start(&engine, listeners.tls(), upgrades)?;
    start_script_threads(&engine, threads)?;
    let swept = loaded.tables.sweepers.iter().map(|sweeper| sweeper.index.clone()).collect();
    start_background_thread(&engine, background_metrics(threads), loaded.tables.sweepers)?;
    let workers = threads;
    let (team, threads) = network::start_workers(&engine, &keeper, threads, &stopped, SCRIPT_STACK_BYTES)?;
    // IMPORTANT: not before it is loading, or a probe could find it ready.
    operators::start(&engine, &team, beginning)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let roles_of = keeper.clone();
    let names_writer = !settings.follow().is_empty();
    let start_successor = move || match names_writer || roles_of.roles.follows() {
        // It would take the place of another server, the writer.
        true => {
            tracing::error!("SIGUSR2: a server that follows, or was started as one, cannot be replaced: restart it")
        }
        false => successor::start(beginning, huge_pages_off),
    };
    let how = runtime.block_on(async {
        // Before the line on stdout that scripts wait for: from then on a signal stops the server gracefully.
        let signals = signals()?;
        let line = greeting(&bound);
        service_manager::status("reads its data");
        tokio::spawn(service_manager::keep_alive());
        tokio::spawn(huge_pages::begin_when_large(huge_pages_off));
        tokio::spawn(network::listen_and_assign(bound, listeners.tls(), orders, engine.clone(), team.clone()));
        let metrics = following_metrics(workers);
        let indexes = Indexes { configured: indexes, swept };
        let thread = RoleThread {
            place,
            keeper: keeper.clone(),
            engine: engine.clone(),
            indexes,
            metrics,
            threads: workers,
            reloaded_at: Cell::new(None),
            has_dropped_clients: Cell::new(false),
            promotion: Cell::new(None),
        };
        if let Some(cluster) = &cluster {
            cluster.begin(&keeper);
        }
        let loaded = load_in_background(thread, role, line, listeners.clone());
        let how = until_stopped(&engine, &listeners, signals, start_successor, stopped, loaded).await;
        service_manager::stopping();
        how
    })?;
    // Dropping the runtime closes the listeners.
    drop(runtime);
    if how.graceful {
        let limit = Duration::from_secs(settings.shutdown_timeout());
        join_within(threads, limit);
    }
    keeper.close().map_err(|reason| anyhow!("the journal could not be closed: {reason}"))?;
    tracing::info!("stopped");
    Ok(())
}

/// What a server is at first.
#[derive(Clone, Copy)]
enum FirstRole {
    Writer,
    Follower,
    /// A follower, until the process that writes has ended.
    Upgrade,
}

/// Reads the data on a separate thread; connections are answered meanwhile, if only with -LOADING. That thread changes
/// the role of this server later. Sends the line that says where the server listens.
fn load_in_background(
    thread: RoleThread,
    role: FirstRole,
    line: String,
    listeners: Arc<Listeners>,
) -> oneshot::Receiver<Result<String>> {
    let (send, loaded) = oneshot::channel();
    let load = move || {
        let result = match role {
            FirstRole::Writer => thread.load_as_writer().map(|()| (None, line)),
            FirstRole::Follower => thread.load_as_follower().map(|follower| (Some(follower), line)),
            FirstRole::Upgrade => thread.load_as_follower().and_then(|follower| {
                let sockets = thread.upgrade(follower)?;
                let line = greeting(&sockets);
                listeners.adopt(sockets, &thread.engine.settings)?;
                Ok((None, line))
            }),
        };
        match result {
            Ok((follower, line)) => {
                engine::set_loading(&thread.engine, false);
                let _ = send.send(Ok(line));
                thread.serve(follower);
            }
            Err(error) => drop(send.send(Err(error))),
        }
    };
    if std::thread::Builder::new().name("role".into()).spawn(load).is_err() {
        tracing::error!("no thread to read the data could be started");
    }
    loaded
}

pub(crate) fn engine(
    (settings, clock): (&Arc<Settings>, Arc<SystemClock>),
    (config_file, adjusted): (Option<PathBuf>, Vec<Adjusted>),
    threads: usize,
    log_level: LogLevelHandle,
    stop: watch::Sender<Option<Shutdown>>,
    keeper: &Arc<Keeper>,
    listeners: Option<Arc<Listeners>>,
) -> Arc<Engine> {
    let config_file = config_file.map(|path| std::path::absolute(&path).unwrap_or(path));
    let directory = PathBuf::from(&*settings.dir());
    let process = Process {
        settings: settings.clone(),
        directory: std::fs::canonicalize(&directory).unwrap_or(directory),
        config_file,
        adjusted,
        threads,
        log_level,
        keeper: keeper.clone(),
        listeners,
        stop: Arc::new(stop),
        stop_failed: Arc::default(),
        discards: std::sync::OnceLock::new(),
    };
    let engine = engine::with_all_commands(
        settings.clone(),
        Arc::new(process),
        clock,
        settings.shards(),
        following_metrics(threads) + 1,
    );
    Arc::new(engine.with_persistence(keeper.clone()))
}

/// The index of the script thread's metrics: those of workers come first.
fn scripts_metrics(workers: usize) -> usize {
    workers
}

fn background_metrics(workers: usize) -> usize {
    workers + 1
}

fn detached_metrics(workers: usize) -> std::ops::Range<usize> {
    workers + 2..2 * workers + 2
}

/// The index of the metrics of the thread that applies batches of another writer.
fn following_metrics(workers: usize) -> usize {
    detached_metrics(workers).end
}

/// Settings that are no longer as they were given.
fn adjusted(given: Vec<(&'static str, String)>, made: Vec<(&'static str, String)>) -> Vec<Adjusted> {
    let pairs = given.into_iter().zip(made).filter(|(given, made)| given != made);
    pairs.map(|((name, given), (_, made))| Adjusted { name, given, made }).collect()
}

/// The threads on which long scripts run, so that workers go on and SCRIPT KILL can be served: one where they wait for
/// each other, and one for each worker that a script may leave.
fn start_script_threads(engine: &Arc<Engine>, workers: usize) -> Result<()> {
    let spawn = |name: String, serve: Box<dyn FnOnce(&Engine) + Send>| {
        let engine = engine.clone();
        let thread = std::thread::Builder::new().name(name).stack_size(SCRIPT_STACK_BYTES);
        thread.spawn(move || serve(&engine)).context("cannot start a thread for scripts")
    };
    engine::begin_serving_scripts(engine, detached_metrics(workers));
    let index = scripts_metrics(workers);
    spawn("scripts".into(), Box::new(move |engine| engine::serve_scripts(engine, engine.worker(index))))?;
    for number in 0..workers {
        spawn(format!("scripts-{number}"), Box::new(|engine| engine::serve_detached(engine)))?;
    }
    Ok(())
}

/// The thread for background tasks.
fn start_background_thread(engine: &Arc<Engine>, index: usize, sweepers: Vec<Sweeper>) -> Result<()> {
    let engine = engine.clone();
    let thread = std::thread::Builder::new().name("background".into());
    let serve = move || engine::serve_background_tasks(&engine, engine.worker(index), &sweepers);
    thread.spawn(serve).context("cannot start the thread for background tasks")?;
    Ok(())
}

/// Lua recurses on the stack of its thread.
const SCRIPT_STACK_BYTES: usize = 16 * 1024 * 1024;

/// One line that says where the server listens.
fn greeting(listeners: &[ListeningSocket]) -> String {
    let with_address = |listening: &ListeningSocket| Some((listening.socket.local_addr().ok()?, listening.is_tls));
    let addresses: Vec<(SocketAddr, bool)> = listeners.iter().filter_map(with_address).collect();
    let (port, is_tls) = addresses.first().map_or((0, false), |(address, is_tls)| (address.port(), *is_tls));
    let name = |(address, is_tls): &(SocketAddr, bool)| format!("{address}{}", if *is_tls { " (TLS)" } else { "" });
    let all = addresses.iter().map(name).collect::<Vec<_>>().join(", ");
    let version = env!("CARGO_PKG_VERSION");
    let tls = if is_tls { " --tls" } else { "" };
    format!("Holdfast {version} listens on {all}; talk to it with: redis-cli{tls} -p {port}")
}

/// SIGTERM, SIGINT, SIGHUP and SIGUSR2.
fn signals() -> Result<[Signal; 4]> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    Ok([
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
        listen(SignalKind::hangup())?,
        listen(SignalKind::user_defined2())?,
    ])
}

/// Reads the files of TLS again. If they do not fit together, the server goes on with what it has.
fn reload_tls(listeners: &Listeners, settings: &Settings) {
    match listeners.follow_tls(settings) {
        Ok(_) if settings.tls_port() == 0 => {
            tracing::info!("SIGHUP: TLS is not in use, so there is nothing to read again")
        }
        Ok(_) => tracing::info!("SIGHUP: certificates and keys were read again"),
        Err(error) => {
            tracing::error!(error = format_args!("{error:#}"), "SIGHUP: the configuration of TLS is unchanged")
        }
    }
}

/// Prints where the server listens once the data is loaded, and waits until the server is to stop: after a signal or SHUTDOWN, and after
/// the last snapshot, if there is one.
async fn until_stopped(
    engine: &Engine,
    listeners: &Listeners,
    [mut terminate, mut interrupt, mut hang_up, mut upgrade]: [Signal; 4],
    start_successor: impl Fn(),
    mut stopped: watch::Receiver<Option<Shutdown>>,
    mut loaded: oneshot::Receiver<Result<String>>,
) -> Result<Shutdown> {
    let mut loading = true;
    let gracefully = Shutdown { graceful: true, save: SaveOnExit::AsSet, force: false };
    loop {
        tokio::select! {
            outcome = &mut loaded, if loading => {
                let line = outcome.context("the thread that reads the data has ended")??;
                loading = false;
                // A closed stdout is no reason to stop.
                let _ = writeln!(std::io::stdout(), "{line}");
                service_manager::ready(&line);
            }
            _ = terminate.recv() => {
                tracing::info!("SIGTERM: finishing what is in flight");
                engine.host.shutdown(gracefully);
            }
            _ = interrupt.recv() => {
                tracing::info!("SIGINT: finishing what is in flight");
                engine.host.shutdown(gracefully);
            }
            _ = hang_up.recv() => reload_tls(listeners, &engine.settings),
            _ = upgrade.recv() => start_successor(),
            _ = stopped.changed() => return Ok(stopped.borrow().unwrap_or(gracefully)),
        }
    }
}

/// Waits for the workers, up to a limit: a client that does not read must not keep the server up.
fn join_within(threads: Vec<JoinHandle<()>>, limit: Duration) {
    let deadline = std::time::Instant::now() + limit;
    for thread in threads {
        while !thread.is_finished() {
            if std::time::Instant::now() > deadline {
                tracing::warn!("some clients did not read their last replies in time");
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = thread.join();
    }
}

/// The users of the file of users, or of the configuration.
fn configured_users(settings: &Settings, tables: &[ConfiguredUser]) -> Result<NamedUsers> {
    let path = settings.aclfile();
    let all_channels = settings.acl_pubsub_default();
    ensure!(
        path.is_empty() || tables.is_empty(),
        "there are users in the configuration, and a file of users (aclfile): define them in one of the two"
    );
    let users = match path.is_empty() {
        true => {
            let declared = tables.iter().map(|user| (user.place.clone(), &*user.name, &*user.rules));
            engine::parse_declared_users(declared, all_channels).map_err(|errors| anyhow!("{}", errors.trim_end()))?
        }
        false => {
            let text = std::fs::read(&*path).with_context(|| format!("the file of users {path} cannot be read"))?;
            engine::parse_users(&text, &path, all_channels).map_err(|errors| anyhow!("{errors}"))?
        }
    };
    Ok(users)
}

/// The log that this server writes, as the settings name it.
fn own_url(settings: &Settings) -> Result<LogUrl> {
    match settings.log() {
        unnamed if unnamed.is_empty() => Ok(LogUrl::Directory(PathBuf::from(&*settings.dir()))),
        url => LogUrl::parse(&url),
    }
}

/// The log that this server writes. Makes it if there is none.
fn own_log(settings: &Settings, clock: &Arc<SystemClock>) -> Result<OpenedPlace> {
    let make = |dir: &Path| {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create the data directory {}", dir.display()))?;
        full_path(settings, dir)
    };
    match own_url(settings)? {
        LogUrl::Directory(dir) => LogUrl::Directory(make(&dir)?).own(settings, clock),
        url @ LogUrl::Nats(_) => {
            ensure!(settings.appendonly(), "a log on several machines is always written: appendonly cannot be no");
            // It is remembered there how far the log was.
            let dir = make(Path::new(&*settings.dir()))?;
            ensure!(
                !dir.join("MARKS").exists(),
                "{} has the data of a server without a log on NATS, which would not be read: give another dir",
                dir.display()
            );
            url.own(settings, clock)
        }
    }
}

/// The log of another process.
fn log_to_follow(settings: &Settings, url: LogUrl) -> Result<OpenedPlace> {
    match url {
        LogUrl::Directory(dir) => LogUrl::Directory(full_path(settings, &dir)?).to_follow(),
        url @ LogUrl::Nats(_) => url.to_follow(),
    }
}

/// The full path of the data directory. It is stored for CONFIG GET dir.
fn full_path(settings: &Settings, dir: &Path) -> Result<PathBuf> {
    let full =
        std::fs::canonicalize(dir).with_context(|| format!("cannot open the data directory {}", dir.display()))?;
    if let Some(full) = full.to_str() {
        settings.load(b"dir", full.as_bytes()).map_err(anyhow::Error::msg)?;
    }
    Ok(full)
}

/// Each client needs a file descriptor: lowers `maxclients` to as many as there is room for.
fn make_room_for_clients(settings: &Settings, threads: usize) -> Result<()> {
    let wanted = settings.maxclients();
    let clients = descriptors::make_room_for(
        wanted,
        threads,
        operators::connections_max(settings) + sentinel::connections_max(settings),
    );
    ensure!(clients > 0, "the limit of open files (ulimit -n) is too low for the server and a single client");
    if clients < wanted {
        tracing::warn!(clients, "maxclients is lowered: the limit of open files (ulimit -n) allows no more");
        settings.load(b"maxclients", clients.to_string().as_bytes()).map_err(anyhow::Error::msg)?;
    }
    Ok(())
}
