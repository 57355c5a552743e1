//! HyperLogLogs.

mod agreement;
mod commands;
mod notifications;
