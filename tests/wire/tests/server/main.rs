//! The server as a whole: its settings, what it reports about itself, and what DEBUG can do to it.

mod config;
mod debug;
mod digest;
mod hotkeys;
mod info;
mod latency;
mod life;
mod memory;
mod monitor;
mod slowlog;
mod topology;
