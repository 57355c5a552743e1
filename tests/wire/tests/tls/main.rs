//! Connections with TLS: who gets in and who does not, that everything works as without TLS, and that no handshake holds
//! the server up. Every test starts a `holdfast` of its own; aimed at any other server they do nothing.

mod certificates;
mod client;
mod conversations;
mod crowd;
mod handshakes;
mod hostile;
mod ping;
mod reload;
mod sentinel;
mod server;
#[allow(dead_code, reason = "shared with the tests of the process, which use all of it")]
#[path = "../process/support.rs"]
mod support;
mod users;
