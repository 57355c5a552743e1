//! The servers that are compared: their processes, and connections to them. Knows nothing of workloads or figures.

mod beanstalkd;
mod connection;
mod etcd;
mod process;

pub(crate) use beanstalkd::{BEANSTALKD, start_beanstalkd};
pub(crate) use connection::{Connection, Reply, simple, text, write_request};
pub(crate) use etcd::{ETCD, start_etcd};
pub(crate) use process::{
    Persistence, Server, ServerSpec, data_root, info, info_field, shell_quoted, stop_all_on_interrupt_or_panic,
};
