//! The HTTP port for operators: `/metrics` for Prometheus, `/health/live` and `/health/ready` for probes, and the pages of the
//! crate `web_console` if there is one. Reads counters
//! that the engine keeps anyway, on a thread of its own; refuses to know settings, threads that serve clients, and how
//! the process starts.
//!
//! | file | has |
//! | --- | --- |
//! | `http` | the thread, connections and their limits, answers by path |
//! | `pages` | the console's requests and answers as those of HTTP |
//! | `access` | which user a request is, and whether that user may read |
//! | `health` | whether the server is ready, and why not |
//! | `figures` | all metrics: those of redis_exporter, those of Holdfast, one look at the keys |
//! | `exposition` | the text formats of Prometheus and OpenMetrics |

#![forbid(unsafe_code)]

mod access;
mod exposition;
mod figures;
mod health;
mod http;
mod pages;

pub use http::{CONNECTIONS_MAX, serve};
pub use web_console::Console;
