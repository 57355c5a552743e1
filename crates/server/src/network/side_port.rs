//! A port beside that of the clients, which a thread of its own serves: for operators, or for clients of Sentinels. Knows how
//! it is opened; refuses to know what is asked there.

use super::listeners::listen;
use anyhow::{Context, Result, ensure};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// Pause between two attempts to get the port from a process that ends.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// A process that ends leaves the port before that.
const TELL_AFTER: Duration = Duration::from_secs(5);

/// Where to listen.
pub(crate) struct SidePort {
    /// The settings with the addresses and with the port, for messages.
    pub(crate) settings: (&'static str, &'static str),
    /// Each with whether it may be missing.
    pub(crate) addresses: Vec<(IpAddr, bool)>,
    pub(crate) port: u16,
}

impl SidePort {
    pub(crate) fn bind(&self) -> Result<Vec<TcpListener>> {
        let (named, port) = self.settings;
        let mut listeners = Vec::new();
        for (ip, optional) in &self.addresses {
            let address = SocketAddr::new(*ip, self.port);
            match listen(address) {
                Ok(listener) => listeners.push(listener),
                Err(error) if *optional => tracing::debug!(%address, %error, "optional address not available"),
                Err(error) => return Err(error).with_context(|| format!("cannot listen on {address} ({port})")),
            }
        }
        ensure!(!listeners.is_empty(), "{named} names no address that this machine has");
        Ok(listeners)
    }

    /// Waits until another process has left the port.
    pub(crate) fn bind_patiently(&self) -> Vec<TcpListener> {
        let (began, mut is_told) = (Instant::now(), false);
        loop {
            match self.bind() {
                Ok(listeners) => return listeners,
                Err(error) if !is_told && began.elapsed() > TELL_AFTER => {
                    is_told = true;
                    tracing::warn!(
                        error = format_args!("{error:#}"),
                        "the port is not free yet: it is tried again and again"
                    );
                }
                Err(_) => std::thread::sleep(TRY_AGAIN_AFTER),
            }
        }
    }
}
