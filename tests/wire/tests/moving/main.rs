//! `holdfast import --follow`: a running Redis or Valkey is moved into a running Holdfast while clients write, connections break
//! and processes are killed. At the end both sides are equal, key by key.
//!
//! Takes `redis-server` in the path (or `REDIS_SERVER`), and the Valkey that `VALKEY_SERVER` names.

#[path = "../tls/certificates.rs"]
#[allow(dead_code, reason = "the tests of TLS use more of it")]
mod certificates;
mod compare;
mod copying;
mod crashes;
mod faults;
mod leaving;
mod limits;
mod load;
mod moves;
mod proxy;
mod refusals;
mod servers;
#[path = "../process/support.rs"]
#[allow(dead_code, reason = "the tests of the process use more of it")]
mod support;
mod tls_relay;
mod tool;
