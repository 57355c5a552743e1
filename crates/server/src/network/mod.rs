//! Connections: where the server listens, the workers that serve, and what is read from and written to sockets. Refuses to know
//! what a request does.

mod balance;
mod connection;
mod limits;
mod listeners;
mod local;
mod peer;
mod reading;
mod requests;
mod socket;
mod team;
mod worker;

pub(crate) use listeners::{Listeners, bind, listen_and_assign};
pub(crate) use worker::start_workers;
