//! Connections: listeners, workers, and reading from and writing to sockets. Refuses to know what a request does.

mod balance;
mod connection;
mod handshakes;
mod inner;
mod input;
mod limits;
mod listeners;
mod local;
mod peer;
mod reading;
mod requests;
mod side_port;
#[cfg(test)]
mod simulation;
mod socket;
mod state;
mod stream;
mod team;
mod tls_settings;
mod tls_stream;
mod transport;
#[cfg(test)]
mod turn_tests;
mod turns;
mod worker;

pub(crate) use inner::open as open_inner;
pub(crate) use listeners::{DENIED, Listeners, addresses, bind, listen_and_assign};
pub(crate) use side_port::SidePort;
pub(crate) use stream::Stream;
pub(crate) use team::Team;
pub(crate) use tls_settings::CurrentTls;
pub(crate) use transport::Transport;
pub(crate) use worker::start_workers;
