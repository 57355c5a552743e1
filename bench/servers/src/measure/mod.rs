//! Facts about processes, machines and runs, and what follows from them. Knows nothing of servers' protocols or workloads.

mod disk;
mod figures;
mod latencies;
mod machine;
pub(crate) mod proc_stat;

pub(crate) use disk::{Disk, flush_disk};
pub(crate) use figures::{
    BASELINE, Bound, Limit, Line, Metric, Ratio, Sample, ServerFigures, Target, limits, ratios, thousands,
};
pub(crate) use latencies::Latencies;
pub(crate) use machine::Machine;
