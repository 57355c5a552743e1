//! Servers that share a log on NATS, which is one server with one replica here. Every test starts a `holdfast` and a NATS
//! of its own; HOLDFAST_NATS_SERVER names the binary of the latter, and without it they do nothing.

mod changes;
mod nats;
mod operators;
mod refusals;
mod secured;
mod sharing;
mod snapshots;

#[allow(dead_code, reason = "shared with the tests of TLS, which use all of it")]
#[path = "../tls/certificates.rs"]
mod certificates;
#[allow(dead_code, reason = "shared with the tests of metrics, which use all of it")]
#[path = "../metrics/exposition.rs"]
mod exposition;
#[allow(dead_code, reason = "shared with the tests of metrics, which use all of it")]
#[path = "../metrics/http.rs"]
mod http;
#[allow(dead_code, reason = "shared with the tests of the process, which use all of it")]
#[path = "../process/support.rs"]
mod process;
#[allow(dead_code, unused_imports, reason = "shared with the tests of persistence, which use all of it")]
#[path = "../persistence/support.rs"]
mod support;
