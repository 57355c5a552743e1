//! Rounds to medians, medians to ratios, ratios to verdicts. Knows nothing of how a figure was measured or is shown.

use std::collections::BTreeMap;

use serde::Serialize;

/// The peer the targets are judged against.
pub(crate) const BASELINE: &str = "redis";

/// One measured row: a workload at one depth, on every server.
#[derive(Serialize, Debug)]
pub(crate) struct Line {
    pub(crate) workload: &'static str,
    pub(crate) about: &'static str,
    pub(crate) pipeline: Option<u32>,
    /// Requests, records or connections in each round.
    pub(crate) amount: u64,
    /// The subject first, then the peers.
    pub(crate) servers: Vec<ServerFigures>,
    /// The subject's median over each peer's, for every metric that both have.
    pub(crate) ratios: Vec<Ratio>,
    /// Promises about the subject's own figures.
    pub(crate) limits: Vec<Limit>,
    /// Of a workload that is about waits, what 0, 1, … 100 percent of them did not exceed, in milliseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_ms: Vec<f64>,
}

#[derive(Serialize, Clone, Debug)]
pub(crate) struct ServerFigures {
    pub(crate) server: String,
    pub(crate) median: Sample,
    pub(crate) rounds: Vec<Sample>,
}

/// What one round on one server gave.
pub(crate) type Sample = BTreeMap<Metric, f64>;

#[derive(Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    #[serde(rename = "throughput_per_s")]
    Throughput,
    #[serde(rename = "latency_p50_ms")]
    LatencyP50,
    #[serde(rename = "latency_p99_ms")]
    LatencyP99,
    #[serde(rename = "latency_p999_ms")]
    LatencyP999,
    /// A stall that hits each of fifty connections once is the longest, though it may not reach a percentile.
    #[serde(rename = "latency_max_ms")]
    LatencyMax,
    /// Without the time in which the server's threads or the client waited for a core: what the server itself made it wait.
    #[serde(rename = "latency_max_on_core_ms")]
    LatencyMaxOnCore,
    /// Of the same load just before what is measured.
    #[serde(rename = "latency_p999_before_ms")]
    LatencyP999Before,
    /// User and system time of all the server's threads, per request.
    #[serde(rename = "server_cpu_us_per_op")]
    ServerCpu,
    /// Share of one core that the load generator used. Near 1, it was the bottleneck, and a faster server cannot
    /// show how much faster it is.
    #[serde(rename = "load_generator_busy")]
    LoadBusy,
    #[serde(rename = "rss_bytes_per_item")]
    RssPerItem,
    #[serde(rename = "used_memory_bytes_per_item")]
    UsedMemoryPerItem,
    /// From a command's request to the end of its reply.
    #[serde(rename = "command_ms")]
    CommandTime,
    /// From the start of a server that has data until it answers PING.
    #[serde(rename = "start_s")]
    StartTime,
    #[serde(rename = "snapshot_s")]
    SnapshotTime,
    /// Peak over before, less one.
    #[serde(rename = "rss_growth")]
    RssGrowth,
    /// What a forked child had to itself at last, by the server's account, over the server's memory before the fork.
    #[serde(rename = "child_private_share")]
    ChildShare,
    /// Pages made dirty, so that many small writes to one page may count once.
    #[serde(rename = "disk_bytes_per_item")]
    DiskPerItem,
    /// As `Throughput`, of the server without the index.
    #[serde(rename = "unindexed_throughput_per_s")]
    UnindexedThroughput,
    /// As `LatencyP99`, of the server without the index.
    #[serde(rename = "unindexed_latency_p99_ms")]
    UnindexedP99,
    /// As `ServerCpu`, of the server without the index.
    #[serde(rename = "unindexed_server_cpu_us_per_op")]
    UnindexedCpu,
    /// As `Throughput`, of our own HSET.
    #[serde(rename = "hset_throughput_per_s")]
    HsetThroughput,
    /// As `ServerCpu`, of our own HSET.
    #[serde(rename = "hset_server_cpu_us_per_op")]
    HsetCpu,
    /// The throughput over that of our own HSET.
    #[serde(rename = "of_hset_throughput")]
    OfHset,
    /// As `Throughput`, of our own SET.
    #[serde(rename = "set_throughput_per_s")]
    SetThroughput,
    /// As `ServerCpu`, of our own SET.
    #[serde(rename = "set_server_cpu_us_per_op")]
    SetCpu,
    /// The throughput over that of our own SET.
    #[serde(rename = "of_set_throughput")]
    OfSet,
    /// The memory over that of our own strings.
    #[serde(rename = "of_string_memory")]
    OfString,
    /// The throughput on a long run over that on a short one.
    #[serde(rename = "of_short_throughput")]
    OfFew,
    /// From the request of a replay to the end of its reply.
    #[serde(rename = "replay_ms")]
    ReplayTime,
    /// Memory of an element beyond what the client gave.
    #[serde(rename = "bytes_beside_own")]
    BesideBytes,
    /// Memory of a session that nothing was asked of.
    #[serde(rename = "bytes_per_session")]
    SessionBytes,
    /// As `Throughput`, of a single etcd.
    #[serde(rename = "etcd_throughput_per_s")]
    EtcdThroughput,
    /// As `LatencyP99`, of a single etcd.
    #[serde(rename = "etcd_latency_p99_ms")]
    EtcdP99,
    /// As `ServerCpu`, of a single etcd.
    #[serde(rename = "etcd_server_cpu_us_per_op")]
    EtcdCpu,
    /// As `LoadBusy`, while etcd was driven.
    #[serde(rename = "etcd_load_generator_busy")]
    EtcdLoadBusy,
    /// The throughput over that of a single etcd.
    #[serde(rename = "of_etcd_throughput")]
    OfEtcd,
    /// Of the throughput of writes to an indexed field, what the index takes.
    #[serde(rename = "index_loss")]
    IndexLoss,
    /// CPU time that the index adds to a write, as a share of what the write takes without it.
    #[serde(rename = "index_cpu")]
    IndexCpu,
    /// The 99th percentile with the index over that without.
    #[serde(rename = "index_p99_ratio")]
    IndexP99,
    /// Resident memory that a server with the index has more than one without.
    #[serde(rename = "index_rss_bytes_per_item")]
    IndexRss,
    /// The same by the server's account of all its memory.
    #[serde(rename = "index_used_memory_bytes_per_item")]
    IndexUsedMemory,
    /// By the server's account of the index.
    #[serde(rename = "index_bytes_per_item")]
    IndexBytes,
    /// As `ServerCpu`, of the same without what is measured: groups, or jobs that may not be taken.
    #[serde(rename = "plain_server_cpu_us_per_op")]
    PlainCpu,
    /// The CPU time over that of the same without what is measured.
    #[serde(rename = "of_plain_server_cpu")]
    OfPlainCpu,
    /// Memory that groups add to a record.
    #[serde(rename = "grouped_record_bytes")]
    GroupedRecordBytes,
    /// Memory of a group beyond that of its records.
    #[serde(rename = "group_bytes")]
    GroupBytes,
    /// Memory that is left of a group that is gone.
    #[serde(rename = "group_left_bytes")]
    GroupLeftBytes,
    /// As `ServerCpu`, of beanstalkd.
    #[serde(rename = "beanstalkd_server_cpu_us_per_op")]
    BeanstalkdCpu,
    /// As `Throughput`, of beanstalkd.
    #[serde(rename = "beanstalkd_throughput_per_s")]
    BeanstalkdThroughput,
    /// The CPU time over that of beanstalkd.
    #[serde(rename = "of_beanstalkd_server_cpu")]
    OfBeanstalkdCpu,
    /// The throughput over that of beanstalkd.
    #[serde(rename = "of_beanstalkd_throughput")]
    OfBeanstalkd,
}

#[derive(Serialize, Clone, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) peer: String,
    pub(crate) metric: Metric,
    pub(crate) ratio: f64,
    /// Present where a promise exists for this line and this peer.
    pub(crate) verdict: Option<Verdict>,
}

/// A figure of the subject's that is judged by itself.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) metric: Metric,
    pub(crate) value: f64,
    pub(crate) verdict: Verdict,
}

#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) target: Bound,
    pub(crate) met: bool,
}

pub(crate) struct Target {
    /// The depth it is promised at; `None` for workloads without a pipeline.
    pub(crate) pipeline: Option<u32>,
    pub(crate) metric: Metric,
    /// Bounds the ratio of subject to baseline or, where the metric makes no ratio, the subject's own figure.
    pub(crate) bound: Bound,
}

#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Line {
    /// The ratio of one metric to one peer.
    pub(crate) fn ratio(&self, peer: &str, metric: Metric) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.peer == peer && ratio.metric == metric)
    }

    pub(crate) fn limit(&self, metric: Metric) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.metric == metric)
    }

    /// Every metric that some server has, in order.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let mut metrics: Vec<_> = self.servers.iter().flat_map(|figures| figures.median.keys().copied()).collect();
        metrics.sort();
        metrics.dedup();
        metrics
    }

    /// Leaves the figures without judging them.
    pub(crate) fn forget_verdicts(&mut self) {
        self.ratios.iter_mut().for_each(|ratio| ratio.verdict = None);
        self.limits.clear();
    }

    pub(crate) fn verdicts(&self) -> impl Iterator<Item = Verdict> + '_ {
        let of_ratios = self.ratios.iter().filter_map(|ratio| ratio.verdict);
        of_ratios.chain(self.limits.iter().map(|limit| limit.verdict))
    }
}

impl Ratio {
    /// Two decimals; three where two would show a missed target as met.
    pub(crate) fn text(&self) -> String {
        let near = self.verdict.is_some_and(|verdict| (verdict.target.value() - self.ratio).abs() < 0.005);
        if near { format!("{:.3}x", self.ratio) } else { format!("{:.2}x", self.ratio) }
    }
}

impl ServerFigures {
    pub(crate) fn new(server: &str, rounds: Vec<Sample>) -> Self {
        let mut values: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
        for (metric, value) in rounds.iter().flatten() {
            values.entry(*metric).or_default().push(*value);
        }
        let median = values.into_iter().map(|(metric, values)| (metric, median(values))).collect();
        ServerFigures { server: server.to_string(), median, rounds }
    }

    /// Whether the load generator, not this server, set the pace.
    pub(crate) fn limited_by_load(&self) -> bool {
        self.median.get(&Metric::LoadBusy).is_some_and(|busy| *busy >= 0.95)
    }
}

/// The first server's figures over each other server's, judged where a target says so.
pub(crate) fn ratios(servers: &[ServerFigures], pipeline: Option<u32>, targets: &[Target]) -> Vec<Ratio> {
    let Some((subject, peers)) = servers.split_first() else {
        return Vec::new();
    };
    let mut ratios = Vec::new();
    for peer in peers {
        for (metric, value) in subject.median.iter().filter(|(metric, _)| metric.is_comparable()) {
            // A peer's figure below what the clock or the page size resolves makes no ratio.
            let Some(reference) = peer.median.get(metric).filter(|reference| **reference > 0.0) else {
                continue;
            };
            let ratio = ratio_by_round(subject, peer, *metric).unwrap_or(value / reference);
            let target = targets
                .iter()
                .find(|target| peer.server == BASELINE && target.pipeline == pipeline && target.metric == *metric);
            let verdict = target.map(|target| target.bound.judge(ratio));
            ratios.push(Ratio { peer: peer.server.clone(), metric: *metric, ratio, verdict });
        }
    }
    ratios
}

/// The median of the rounds' ratios: what slows the machine for a while slows both servers in those rounds, and is no part of
/// their ratio, while their medians may come from different rounds. `None` unless both have the figure in every round.
fn ratio_by_round(subject: &ServerFigures, peer: &ServerFigures, metric: Metric) -> Option<f64> {
    let pairs = subject.rounds.iter().zip(&peer.rounds);
    let of_round = |(subject, peer): (&Sample, &Sample)| {
        peer.get(&metric)
            .filter(|reference| **reference > 0.0)
            .and_then(|reference| Some(subject.get(&metric)? / reference))
    };
    let ratios: Vec<f64> = pairs.map(of_round).collect::<Option<_>>()?;
    (subject.rounds.len() == peer.rounds.len() && !ratios.is_empty()).then(|| median(ratios))
}

/// The first server's own figures, where a target bounds one that makes no ratio.
pub(crate) fn limits(servers: &[ServerFigures], pipeline: Option<u32>, targets: &[Target]) -> Vec<Limit> {
    let Some(subject) = servers.first() else {
        return Vec::new();
    };
    let limit = |target: &Target| {
        let value = *subject.median.get(&target.metric)?;
        Some(Limit { metric: target.metric, value, verdict: target.bound.judge(value) })
    };
    let own = targets.iter().filter(|target| target.pipeline == pipeline && !target.metric.is_comparable());
    own.filter_map(limit).collect()
}

impl Bound {
    fn judge(self, value: f64) -> Verdict {
        Verdict { target: self, met: self.admits(value) }
    }

    fn admits(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        }
    }

    pub(crate) fn value(self) -> f64 {
        match self {
            Bound::AtLeast(value) | Bound::AtMost(value) => value,
        }
    }
}

impl Metric {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput",
            Metric::LatencyP50 => "p50",
            Metric::LatencyP99 => "p99",
            Metric::LatencyP999 => "p99.9",
            Metric::LatencyMax => "longest",
            Metric::LatencyMaxOnCore => "longest on core",
            Metric::LatencyP999Before => "p99.9 before",
            Metric::ServerCpu => "CPU/op",
            Metric::LoadBusy => "load busy",
            Metric::RssPerItem => "RSS each",
            Metric::UsedMemoryPerItem => "used_memory each",
            Metric::CommandTime => "command",
            Metric::StartTime => "start",
            Metric::SnapshotTime => "snapshot",
            Metric::RssGrowth => "RSS growth",
            Metric::ChildShare => "child's own",
            Metric::DiskPerItem => "disk each",
            Metric::UnindexedThroughput => "without index",
            Metric::UnindexedP99 => "p99 without",
            Metric::UnindexedCpu => "CPU/op without",
            Metric::HsetThroughput => "HSET",
            Metric::HsetCpu => "HSET CPU/op",
            Metric::OfHset => "of HSET",
            Metric::SetThroughput => "SET",
            Metric::SetCpu => "SET CPU/op",
            Metric::OfSet => "of SET",
            Metric::OfString => "of a string",
            Metric::OfFew => "of a short run",
            Metric::ReplayTime => "replay",
            Metric::BesideBytes => "beside its bytes",
            Metric::SessionBytes => "per session",
            Metric::EtcdThroughput => "etcd",
            Metric::EtcdP99 => "etcd p99",
            Metric::EtcdCpu => "etcd CPU/op",
            Metric::EtcdLoadBusy => "etcd's load busy",
            Metric::OfEtcd => "of etcd",
            Metric::IndexLoss => "throughput lost",
            Metric::IndexCpu => "CPU added",
            Metric::IndexP99 => "p99 ratio",
            Metric::IndexRss => "index RSS",
            Metric::IndexUsedMemory => "used_memory",
            Metric::IndexBytes => "IDX.INFO",
            Metric::PlainCpu => "CPU/op without",
            Metric::OfPlainCpu => "CPU ratio",
            Metric::GroupedRecordBytes => "added to a record",
            Metric::GroupBytes => "a group",
            Metric::GroupLeftBytes => "left of a group",
            Metric::BeanstalkdCpu => "beanstalkd CPU/op",
            Metric::BeanstalkdThroughput => "beanstalkd",
            Metric::OfBeanstalkdCpu => "of beanstalkd's CPU",
            Metric::OfBeanstalkd => "of beanstalkd",
        }
    }

    pub(crate) fn with_unit(self, value: f64) -> String {
        match self {
            Metric::Throughput if value < 100.0 => format!("{value:.2}/s"),
            Metric::Throughput
            | Metric::UnindexedThroughput
            | Metric::HsetThroughput
            | Metric::SetThroughput
            | Metric::EtcdThroughput
            | Metric::BeanstalkdThroughput => {
                format!("{}/s", thousands(value))
            }
            Metric::LatencyP50
            | Metric::LatencyP99
            | Metric::LatencyP999
            | Metric::LatencyMax
            | Metric::LatencyMaxOnCore
            | Metric::LatencyP999Before
            | Metric::UnindexedP99
            | Metric::EtcdP99
            | Metric::ReplayTime
            | Metric::CommandTime => format!("{value:.3} ms"),
            Metric::ServerCpu
            | Metric::UnindexedCpu
            | Metric::HsetCpu
            | Metric::SetCpu
            | Metric::EtcdCpu
            | Metric::PlainCpu
            | Metric::BeanstalkdCpu => format!("{value:.2} us"),
            Metric::LoadBusy | Metric::EtcdLoadBusy => format!("{:.0}%", value * 100.0),
            Metric::RssPerItem
            | Metric::UsedMemoryPerItem
            | Metric::DiskPerItem
            | Metric::BesideBytes
            | Metric::SessionBytes
            | Metric::IndexRss
            | Metric::IndexUsedMemory
            | Metric::IndexBytes => format!("{} B", thousands(value)),
            // Adding zero takes the sign from what is rounded to it.
            Metric::GroupedRecordBytes | Metric::GroupBytes | Metric::GroupLeftBytes => {
                format!("{:.1} B", (value * 10.0).round() / 10.0 + 0.0)
            }
            Metric::StartTime | Metric::SnapshotTime => format!("{value:.2} s"),
            Metric::RssGrowth | Metric::ChildShare | Metric::IndexLoss | Metric::IndexCpu => {
                format!("{:.1}%", value * 100.0)
            }
            Metric::IndexP99
            | Metric::OfHset
            | Metric::OfSet
            | Metric::OfString
            | Metric::OfFew
            | Metric::OfEtcd
            | Metric::OfBeanstalkd => format!("{value:.2}x"),
            // Two decimals would show 1.024 as within a bound of 1.02.
            Metric::OfPlainCpu | Metric::OfBeanstalkdCpu => format!("{value:.3}x"),
        }
    }

    /// Whether a ratio between servers says something about the servers.
    fn is_comparable(self) -> bool {
        !matches!(
            self,
            Metric::LoadBusy
                | Metric::RssGrowth
                | Metric::ChildShare
                | Metric::UnindexedThroughput
                | Metric::UnindexedP99
                | Metric::UnindexedCpu
                | Metric::HsetThroughput
                | Metric::HsetCpu
                | Metric::OfHset
                | Metric::SetThroughput
                | Metric::SetCpu
                | Metric::OfSet
                | Metric::OfString
                | Metric::OfFew
                | Metric::ReplayTime
                | Metric::BesideBytes
                | Metric::SessionBytes
                | Metric::EtcdThroughput
                | Metric::EtcdP99
                | Metric::EtcdCpu
                | Metric::EtcdLoadBusy
                | Metric::OfEtcd
                | Metric::IndexLoss
                | Metric::IndexCpu
                | Metric::IndexP99
                | Metric::IndexRss
                | Metric::IndexUsedMemory
                | Metric::IndexBytes
                | Metric::PlainCpu
                | Metric::OfPlainCpu
                | Metric::GroupedRecordBytes
                | Metric::GroupBytes
                | Metric::GroupLeftBytes
                | Metric::BeanstalkdCpu
                | Metric::BeanstalkdThroughput
                | Metric::OfBeanstalkdCpu
                | Metric::OfBeanstalkd
        )
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a metric without a value has no median");
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// A whole number with its thousands set apart: `1,234,567`.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    if value <= -0.5 {
        text.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(server: &str, rounds: &[(f64, f64)]) -> ServerFigures {
        let sample = |(throughput, cpu): &(f64, f64)| {
            Sample::from([(Metric::Throughput, *throughput), (Metric::ServerCpu, *cpu), (Metric::LoadBusy, 0.99)])
        };
        ServerFigures::new(server, rounds.iter().map(sample).collect())
    }

    const TARGETS: &[Target] = &[
        Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
        Target { pipeline: Some(1), metric: Metric::ServerCpu, bound: Bound::AtMost(0.8) },
        Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.7) },
    ];

    #[test]
    fn the_median_ignores_one_bad_round() {
        let figures = figures("redis", &[(100.0, 5.0), (3.0, 90.0), (102.0, 5.2)]);
        assert_eq!(figures.median[&Metric::Throughput], 100.0);
        assert_eq!(figures.median[&Metric::ServerCpu], 5.2);
    }

    #[test]
    fn the_median_of_an_even_number_of_rounds_lies_between() {
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![7.0]), 7.0);
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_ratios() {
        let ours = figures("holdfast", &[(200.0, 1.0), (20.0, 10.0), (300.0, 1.5)]);
        let theirs = figures("redis", &[(100.0, 2.0), (10.0, 20.0), (100.0, 3.0)]);
        let ratio =
            |servers: &[ServerFigures]| ratios(servers, None, &[]).iter().map(|ratio| ratio.ratio).collect::<Vec<_>>();
        assert_eq!(ratio(&[ours.clone(), theirs]), [2.0, 0.5]);
        // Rounds that make no pairs are compared by their medians.
        assert_eq!(ratio(&[ours, figures("redis", &[(50.0, 3.0)])]), [4.0, 0.5]);
    }

    #[test]
    fn ratios_are_subject_over_peer_and_judged_against_the_baseline_only() {
        let servers = [
            figures("holdfast", &[(120.0, 4.0)]),
            figures("redis", &[(100.0, 4.0)]),
            figures("valkey", &[(60.0, 8.0)]),
        ];
        let ratio = |peer: &str, metric, ratio, verdict| Ratio { peer: peer.to_string(), metric, ratio, verdict };
        let met = |target, met| Some(Verdict { target, met });
        assert_eq!(
            ratios(&servers, Some(1), TARGETS),
            [
                ratio("redis", Metric::Throughput, 1.2, met(Bound::AtLeast(1.05), true)),
                ratio("redis", Metric::ServerCpu, 1.0, met(Bound::AtMost(0.8), false)),
                ratio("valkey", Metric::Throughput, 2.0, None),
                ratio("valkey", Metric::ServerCpu, 0.5, None),
            ]
        );
    }

    #[test]
    fn a_target_binds_only_at_its_depth() {
        let servers = [figures("holdfast", &[(120.0, 4.0)]), figures("redis", &[(100.0, 4.0)])];
        let verdicts =
            |pipeline| ratios(&servers, pipeline, TARGETS).iter().filter_map(|ratio| ratio.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(Some(16)), [Verdict { target: Bound::AtLeast(1.7), met: false }]);
        assert_eq!(verdicts(Some(64)), []);
        assert_eq!(verdicts(None), []);
    }

    #[test]
    fn a_metric_that_makes_no_ratio_is_judged_by_itself() {
        let servers =
            [0.12, 0.01].map(|growth| ServerFigures::new("any", vec![Sample::from([(Metric::RssGrowth, growth)])]));
        let bound = Bound::AtMost(0.1);
        let targets = [Target { pipeline: None, metric: Metric::RssGrowth, bound }];
        assert_eq!(ratios(&servers, None, &targets), []);
        let verdict = Verdict { target: bound, met: false };
        assert_eq!(limits(&servers, None, &targets), [Limit { metric: Metric::RssGrowth, value: 0.12, verdict }]);
        assert_eq!(limits(&servers, Some(1), &targets), []);
        assert_eq!(limits(&servers, None, TARGETS), []);
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let servers = [figures("holdfast", &[(120.0, 4.0)]), figures("redis", &[(100.0, 0.0)])];
        let metrics: Vec<_> = ratios(&servers, Some(1), TARGETS).iter().map(|ratio| ratio.metric).collect();
        assert_eq!(metrics, [Metric::Throughput]);
    }

    #[test]
    fn bounds_include_their_edge() {
        assert!(Bound::AtLeast(1.7).admits(1.7) && !Bound::AtLeast(1.7).admits(1.69));
        assert!(Bound::AtMost(0.8).admits(0.8) && !Bound::AtMost(0.8).admits(0.81));
    }

    #[test]
    fn a_ratio_close_to_its_target_shows_which_side_it_is_on() {
        let text = |ratio, verdict| {
            let (peer, metric) = (BASELINE.to_string(), Metric::Throughput);
            let ratio = Ratio { peer, metric, ratio, verdict };
            ratio.text()
        };
        let (target, met) = (Bound::AtLeast(1.05), false);
        let verdict = Some(Verdict { target, met });
        assert_eq!(text(1.047, verdict), "1.047x");
        assert_eq!(text(1.031, verdict), "1.03x");
        assert_eq!(text(1.047, None), "1.05x");
    }

    #[test]
    fn bytes_that_round_to_none_have_no_sign() {
        let texts = [-0.02, 0.02, 22.56, -1.25].map(|value| Metric::GroupLeftBytes.with_unit(value));
        assert_eq!(texts, ["0.0 B", "0.0 B", "22.6 B", "-1.3 B"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let cases =
            [(0.0, "0"), (999.4, "999"), (1000.0, "1,000"), (1234567.0, "1,234,567"), (-1500.0, "-1,500"), (-0.2, "0")];
        for (value, text) in cases {
            assert_eq!(thousands(value), text);
        }
    }
}
