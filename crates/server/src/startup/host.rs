//! The process as the engine may ask about it: memory, CPU time, names. Knows /proc; refuses to know commands.

use super::operators;
use crate::config;
use crate::durability::Keeper;
use crate::network::Listeners;
use crate::platform::logging::LogLevelHandle;
use crate::platform::usage::{cpu_seconds, resident_bytes};
use crate::platform::{allocator, descriptors, threads};
use crate::sentinel;
use engine::clients::pause::PauseMode;
use engine::host::{CpuTime, Host, MemoryUse, SaveOnExit, Shutdown};
use engine::persistence::journal_state::JournalState;
use engine::{Engine, Persistence, Settings};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// This process.
pub(crate) struct Process {
    pub(crate) settings: Arc<Settings>,
    pub(crate) config_file: Option<PathBuf>,
    /// Settings that the start has changed: in the file they stay as they were given.
    pub(crate) adjusted: Vec<Adjusted>,
    /// The data directory, in full.
    pub(crate) directory: PathBuf,
    pub(crate) threads: usize,
    pub(crate) log_level: LogLevelHandle,
    pub(crate) keeper: Arc<Keeper>,
    /// Where it listens; `None` when it does not.
    pub(crate) listeners: Option<Arc<Listeners>>,
    /// Stops all threads.
    pub(crate) stop: Arc<watch::Sender<Option<Shutdown>>>,
    /// The last SHUTDOWN failed.
    pub(crate) stop_failed: Arc<AtomicBool>,
    /// To the thread that frees large values.
    pub(crate) discards: OnceLock<Sender<Box<dyn Any + Send>>>,
}

/// Starts the thread that frees what it is sent.
fn start_discarding() -> Sender<Box<dyn Any + Send>> {
    let (send, receive) = std::sync::mpsc::channel();
    let free = move || {
        threads::lower_priority();
        receive.into_iter().for_each(drop);
    };
    let _ = std::thread::Builder::new().name("discard".into()).spawn(free);
    send
}

/// The value that was given for a setting, and the one that it got.
pub(crate) struct Adjusted {
    pub(crate) name: &'static str,
    pub(crate) given: String,
    pub(crate) made: String,
}

impl Host for Process {
    fn used_memory(&self) -> u64 {
        allocator::used()
    }

    fn memory(&self) -> MemoryUse {
        use tikv_jemalloc_ctl::{epoch, stats};
        let _ = epoch::advance();
        let figure = |read: Result<usize, tikv_jemalloc_ctl::Error>| read.unwrap_or(0) as u64;
        MemoryUse {
            used: allocator::used(),
            resident: resident_bytes(),
            allocated: figure(stats::allocated::read()),
            active: figure(stats::active::read()),
            allocator_resident: figure(stats::resident::read()),
        }
    }

    fn purge_memory(&self) {
        allocator::purge_allocator();
    }

    fn total_memory(&self) -> u64 {
        let info = rustix::system::sysinfo();
        info.totalram as u64 * u64::from(info.mem_unit)
    }

    fn cpu(&self) -> CpuTime {
        let (user, system) = cpu_seconds("/proc/self/stat");
        let (main_thread_user, main_thread_system) = cpu_seconds("/proc/thread-self/stat");
        CpuTime { user, system, main_thread_user, main_thread_system }
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn executable(&self) -> String {
        std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()
    }

    fn config_file(&self) -> String {
        self.config_file.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }

    fn os(&self) -> String {
        let uname = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        format!("{} {} {}", part(uname.sysname()), part(uname.release()), part(uname.machine()))
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn shutdown(&self, how: Shutdown) {
        let settings = &self.settings;
        let save = match how.save {
            // What a follower has is the writer's, and stored by it.
            SaveOnExit::Always => self.keeper.state() != JournalState::Following,
            SaveOnExit::Never => false,
            SaveOnExit::AsSet => match self.keeper.state() {
                JournalState::Off => !settings.save_points().is_empty(),
                // The journal has not begun: a snapshot stores the changes that were acknowledged.
                JournalState::Starting | JournalState::StartFailed => true,
                JournalState::Sound
                | JournalState::Failed
                | JournalState::Restarting
                | JournalState::Closing
                | JournalState::Fenced
                | JournalState::Following => false,
            },
        };
        self.stop_failed.store(false, Relaxed);
        match self.keeper.engine().filter(|_| save) {
            Some(engine) => {
                save_and_stop(engine, self.keeper.clone(), how, self.stop.clone(), self.stop_failed.clone())
            }
            None => {
                self.stop.send_replace(Some(how));
            }
        }
    }

    fn shutdown_failed(&self) -> bool {
        self.stop_failed.load(Relaxed)
    }

    fn rewrite_config(&self, settings: &[(&'static str, String)], users: &[(String, String)]) -> Result<(), String> {
        let path = self.config_file.as_ref().ok_or("The server is running without a config file")?;
        let mut settings = settings.to_vec();
        for (name, value) in &mut settings {
            let adjusted = self.adjusted.iter().find(|adjusted| adjusted.name == *name && adjusted.made == *value);
            if let Some(adjusted) = adjusted {
                value.clone_from(&adjusted.given);
            }
        }
        config::rewrite(path, &settings, users).map_err(|error| format!("Rewriting config file: {error:#}"))
    }

    fn discard(&self, garbage: Box<dyn Any + Send>) {
        // Without a thread it is freed right here.
        let _ = self.discards.get_or_init(start_discarding).send(garbage);
    }

    fn follow_settings(&self, names: &[&'static str]) -> Result<(), (&'static str, String)> {
        let has = |wanted: &str| names.contains(&wanted);
        if has("maxclients") {
            let wanted = self.settings.maxclients();
            let others = operators::connections_max(&self.settings) + sentinel::connections_max(&self.settings);
            let room = descriptors::make_room_for(wanted, self.threads, others);
            if room < wanted {
                let text = "The operating system is not able to handle the specified number of clients, try with";
                return Err(("maxclients", format!("{text} {room}")));
            }
        }
        if has("appendonly") && !self.settings.appendonly() && self.keeper.roles.cluster().is_some() {
            let reason = "the log is shared with other servers, and always written";
            return Err(("appendonly", reason.to_owned()));
        }
        if has("dir") {
            self.stay_in_directory().map_err(|reason| ("dir", reason))?;
        }
        let Some(listeners) = &self.listeners else { return Ok(()) };
        let undo_tls = match names.iter().find(|name| name.starts_with("tls-") && **name != "tls-handshake-timeout") {
            None => None,
            Some(name) => match listeners.follow_tls(&self.settings) {
                Ok(undo) => Some(undo),
                Err(error) => {
                    tracing::warn!(setting = name, error = format_args!("{error:#}"), "cannot configure TLS");
                    return Err((name, "Unable to update TLS configuration. Check server logs.".to_owned()));
                }
            },
        };
        // Last, because this cannot be undone.
        if let Some(name) = names.iter().find(|name| LISTENING.contains(name))
            && let Err(error) = listeners.follow(&self.settings)
        {
            undo_tls.into_iter().for_each(|undo| undo());
            tracing::warn!(setting = name, error = format_args!("{error:#}"), "cannot listen as CONFIG SET asks");
            let reason = match *name {
                "port" | "tls-port" => "Unable to listen on this port. Check server logs.",
                _ => "Failed to bind to specified addresses.",
            };
            return Err((name, reason.to_owned()));
        }
        Ok(())
    }

    fn read_users(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&*self.settings.aclfile()).map_err(|error| error.to_string())
    }

    fn write_users(&self, text: &[u8]) -> Result<(), String> {
        config::replace(Path::new(&*self.settings.aclfile()), text).map_err(|error| error.to_string())
    }

    fn setting_changed(&self, name: &str) {
        match name {
            "loglevel" => self.log_level.set(self.settings.loglevel()),
            "appendfsync" => self.keeper.follow_policy(),
            "appendonly" => self.keeper.follow_appendonly(),
            _ => {}
        }
    }
}

/// The settings that say where to listen.
const LISTENING: &[&str] = &["port", "tls-port", "bind"];

impl Process {
    /// The journal and snapshots stay where they are, so `dir` can only be another name of that directory.
    fn stay_in_directory(&self) -> Result<(), String> {
        let wanted = std::fs::canonicalize(&*self.settings.dir()).map_err(|error| os_text(&error))?;
        if wanted != self.directory {
            return Err(format!(
                "the journal and snapshots are in {} and stay there; to move them, stop the server and start it with \
                 another dir",
                self.directory.display()
            ));
        }
        match self.directory.to_str() {
            Some(full) => self.settings.load(b"dir", full.as_bytes()),
            None => Ok(()),
        }
    }
}

/// What the operating system calls an error, without its number.
fn os_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Takes a last snapshot on a separate thread, and then stops all threads. Writes are paused meanwhile, so that all
/// acknowledged changes are in the snapshot.
fn save_and_stop(
    engine: Arc<Engine>,
    keeper: Arc<Keeper>,
    how: Shutdown,
    stop: Arc<watch::Sender<Option<Shutdown>>>,
    failed: Arc<AtomicBool>,
) {
    let save = move || {
        engine.pause.begin(engine.clock.monotonic_ms(), i64::MAX as u64, PauseMode::Writes);
        let outcome = keeper.snapshots.take_now();
        match outcome {
            Err(error) if !how.force => {
                tracing::error!(%error, "the last snapshot failed. The server does not stop");
                failed.store(true, Relaxed);
                engine.pause.end();
                keeper.notify_workers();
            }
            _ => {
                stop.send_replace(Some(how));
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("last-snapshot".into()).spawn(save) {
        tracing::error!(%error, "no thread for the last snapshot could be started");
    }
}
