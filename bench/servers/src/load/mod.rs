//! Ways to put load on a server and to fill it. Knows nothing of what is compared, or why.

mod etcd;
mod exchange;
mod footprint;
mod loader;
mod random;
mod redis_benchmark;
mod reply_len;
mod scale;
mod template;

pub(crate) use etcd::{EtcdTransactions, load_etcd};
pub(crate) use exchange::{Connections, Traffic, expect};
pub(crate) use footprint::{Footprint, SETTLE};
pub(crate) use loader::Loader;
pub(crate) use random::Random;
pub(crate) use redis_benchmark::{redis_benchmark, redis_benchmark_version};
pub(crate) use reply_len::reply_len;
pub(crate) use scale::{CLIENTS, KEYS};
pub(crate) use template::{Template, numbered};
