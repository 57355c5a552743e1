//! The server's own log, through tracing. Knows formats and levels; refuses to know what is logged.

use engine::settings::LogLevel;
use std::backtrace::Backtrace;
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::sync::Arc;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::reload;

/// Changes the level of a running server.
#[derive(Clone)]
pub(crate) struct LogLevelHandle(Arc<dyn Fn(LevelFilter) + Send + Sync>);

impl LogLevelHandle {
    pub(crate) fn set(&self, level: LogLevel) {
        (self.0)(filter(level));
    }
}

/// Begins to log, as text or as one JSON object a line.
pub(crate) fn start(level: LogLevel, json: bool) -> LogLevelHandle {
    let (filter_layer, handle) = reload::Layer::new(filter(level));
    // What happens to the connection to NATS is logged here, in our words.
    let ours = filter_fn(|found| !found.target().starts_with("async_nats") || *found.level() <= tracing::Level::WARN);
    let registry = tracing_subscriber::registry().with(filter_layer).with(ours);
    let lines = tracing_subscriber::fmt::layer().with_target(false).with_writer(std::io::stderr);
    // A second start in one process (tests) keeps the first subscriber.
    let _ = match json {
        true => registry.with(lines.json()).try_init(),
        false => registry.with(lines.with_ansi(std::io::stderr().is_terminal())).try_init(),
    };
    LogLevelHandle(Arc::new(move |level| {
        let _ = handle.reload(level);
    }))
}

/// Logs a panic. Unless it is caught and answered with an error, the process ends here, before anything is unwound:
/// what is in memory can no longer be trusted.
pub(crate) fn panicked(panic: &PanicHookInfo<'_>) {
    let backtrace = Backtrace::force_capture();
    match engine::panics::is_caught() {
        true => tracing::error!("internal error in a command that has changed nothing: {panic}\n{backtrace}"),
        false => {
            tracing::error!("internal error, the server stops: {panic}\n{backtrace}");
            if !tracing::dispatcher::has_been_set() {
                eprintln!("holdfast: internal error, the server stops: {panic}\n{backtrace}");
            }
            std::process::abort();
        }
    }
}

/// Redis's levels in tracing's words.
fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::TRACE,
        LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    }
}
