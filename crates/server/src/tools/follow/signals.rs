//! Signals to a process that follows: stop, and promote.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Clone, Default)]
pub(super) struct Signals {
    stop: Arc<AtomicBool>,
    promote: Arc<AtomicBool>,
}

impl Signals {
    /// Begins to listen, on a thread of its own.
    pub(super) fn listen() -> Result<Signals> {
        let signals = Signals::default();
        let heard = signals.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let (mut terminate, mut interrupt, mut promote) = {
            let _inside = runtime.enter();
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?, listen(SignalKind::user_defined1())?)
        };
        let wait = async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => heard.stop.store(true, Relaxed),
                    _ = interrupt.recv() => heard.stop.store(true, Relaxed),
                    _ = promote.recv() => heard.promote.store(true, Relaxed),
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(wait))?;
        Ok(signals)
    }

    /// SIGTERM or SIGINT has come.
    pub(super) fn stops(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// SIGUSR1 has come.
    pub(super) fn promotes(&self) -> bool {
        self.promote.load(Relaxed)
    }
}
