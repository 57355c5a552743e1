//! A socket, with TLS or without, or one of this machine, read and written by one thread.

use super::way::Way;
use crate::config::{Place, ServerUrl};
use anyhow::{Context, Result, anyhow};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub(crate) struct Socket {
    stream: Box<dyn Duplex>,
    /// The same socket, for its timeouts.
    timeouts: Timeouts,
    timeout: Option<Duration>,
}

trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

enum Timeouts {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects. Reads and writes wait as long as an answer may take.
    pub(crate) fn connect(url: &ServerUrl, way: &Way) -> Result<Socket> {
        let (stream, timeouts) = match &url.place {
            Place::Tcp(host, port) => {
                let socket = tcp(url, host, *port, way)?;
                let other = Timeouts::Tcp(socket.try_clone()?);
                let stream: Box<dyn Duplex> = match url.is_tls {
                    false => Box::new(socket),
                    true => Box::new(tls::connect(&way.tls, way.tls_name.as_deref().unwrap_or(host), socket)?),
                };
                (stream, other)
            }
            Place::Socket(path) => {
                let socket = UnixStream::connect(path).with_context(|| format!("{} cannot be reached", url.place))?;
                socket.set_write_timeout(Some(way.answers_within))?;
                let other = Timeouts::Unix(socket.try_clone()?);
                (Box::new(socket) as Box<dyn Duplex>, other)
            }
        };
        let mut socket = Socket { stream, timeouts, timeout: None };
        socket.set_read_timeout(way.answers_within)?;
        Ok(socket)
    }

    /// How long a read waits for the first byte.
    pub(crate) fn set_read_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        if self.timeout != Some(timeout) {
            match &self.timeouts {
                Timeouts::Tcp(socket) => socket.set_read_timeout(Some(timeout))?,
                Timeouts::Unix(socket) => socket.set_read_timeout(Some(timeout))?,
            }
            self.timeout = Some(timeout);
        }
        Ok(())
    }
}

fn tcp(url: &ServerUrl, host: &str, port: u16, way: &Way) -> Result<TcpStream> {
    let failed = || format!("{} cannot be reached", url.place);
    let mut connected = Err(anyhow!("the name {host} has no address"));
    // A name may have several addresses.
    for address in (host, port).to_socket_addrs().with_context(failed)? {
        connected = TcpStream::connect_timeout(&address, way.connects_within).with_context(failed);
        if connected.is_ok() {
            break;
        }
    }
    let socket = connected?;
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(way.answers_within))?;
    Ok(socket)
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
