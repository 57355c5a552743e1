//! Tells systemd, if it has started this process, how the service fares (the protocol of sd_notify). Knows datagrams and
//! their words; refuses to know when which of them is due.
//!
//! By hand instead of with a package: it is one datagram to the socket that `NOTIFY_SOCKET` names.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// A manager that does not read must not hold the server up.
const TAKES_WITHIN: Duration = Duration::from_secs(1);

/// Another process speaks for the service.
static REPLACED: AtomicBool = AtomicBool::new(false);

/// The service is up: its data is read and its ports accept.
pub(crate) fn ready(status: &str) {
    tell(&format!("READY=1\nSTATUS={status}"));
}

/// What the service does now, for `systemctl status`.
pub(crate) fn status(status: &str) {
    tell(&format!("STATUS={status}"));
}

/// The service ends.
pub(crate) fn stopping() {
    tell("STOPPING=1");
}

/// The service goes on, though its main process may end: this one is its main process now.
pub(crate) fn main_process(id: u32) {
    tell(&format!("MAINPID={id}"));
}

/// Another process takes this one's place: nothing that this one does is the service's any more.
pub(crate) fn fall_silent() {
    REPLACED.store(true, Relaxed);
}

/// Says again and again that the thread of this task goes on, if the manager wants to hear that (`WatchdogSec`).
pub(crate) async fn keep_alive() {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(every) = alive_every(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"), std::process::id()) else {
        return;
    };
    let mut ticks = tokio::time::interval(every);
    loop {
        ticks.tick().await;
        tell("WATCHDOG=1");
    }
}

/// Half of the time after which the manager would act, if this process is meant.
fn alive_every(microseconds: Option<String>, process: Option<String>, own: u32) -> Option<Duration> {
    let is_meant = process.is_none_or(|process| process.parse() == Ok(own));
    let microseconds: u64 = microseconds.filter(|_| is_meant)?.parse().ok()?;
    (microseconds > 0).then(|| Duration::from_micros(microseconds / 2).max(Duration::from_millis(1)))
}

fn tell(words: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|_| !REPLACED.load(Relaxed)) else { return };
    let sent = address(name.as_encoded_bytes()).and_then(|address| {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(TAKES_WITHIN))?;
        socket.send_to_addr(words.as_bytes(), &address)
    });
    if let Err(error) = sent {
        tracing::warn!(%error, socket = %name.display(), "systemd cannot be told how the service fares");
    }
}

/// A path, or a name without a file, which begins with an @.
fn address(name: &[u8]) -> std::io::Result<SocketAddr> {
    match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => {
            use std::os::unix::ffi::OsStrExt;
            SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_of_this_process_twice_in_its_time() {
        let every =
            |time: &str, process: Option<&str>| alive_every(Some(time.to_owned()), process.map(str::to_owned), 7);
        assert_eq!(every("3000000", None), Some(Duration::from_millis(1500)));
        assert_eq!(every("3000000", Some("7")), Some(Duration::from_millis(1500)));
        assert_eq!(every("3000000", Some("8")), None);
        assert_eq!(every("0", None), None);
        assert_eq!(every("soon", None), None);
        assert_eq!(alive_every(None, None, 7), None);
    }

    #[test]
    fn a_socket_has_a_path_or_a_name_alone() {
        assert_eq!(address(b"/run/notify").unwrap().as_pathname().unwrap(), std::path::Path::new("/run/notify"));
        assert_eq!(address(b"@notify").unwrap().as_abstract_name(), Some(b"notify".as_slice()));
        assert!(address(&[b'x'; 200]).is_err());
    }
}
