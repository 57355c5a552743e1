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
}

#[derive(Serialize, Debug)]
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
}

#[derive(Serialize, Clone, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) peer: String,
    pub(crate) metric: Metric,
    pub(crate) ratio: f64,
    /// Present where a promise exists for this line and this peer.
    pub(crate) verdict: Option<Verdict>,
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
    /// Bounds the ratio of subject to baseline.
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

    /// Every metric that some server has, in order.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let mut metrics: Vec<_> = self.servers.iter().flat_map(|figures| figures.median.keys().copied()).collect();
        metrics.sort();
        metrics.dedup();
        metrics
    }

    pub(crate) fn verdicts(&self) -> impl Iterator<Item = Verdict> + '_ {
        self.ratios.iter().filter_map(|ratio| ratio.verdict)
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

/// The first server's medians over each other server's, judged where a target says so.
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
            let ratio = value / reference;
            let target = targets
                .iter()
                .find(|target| peer.server == BASELINE && target.pipeline == pipeline && target.metric == *metric);
            let verdict = target.map(|target| Verdict { target: target.bound, met: target.bound.admits(ratio) });
            ratios.push(Ratio { peer: peer.server.clone(), metric: *metric, ratio, verdict });
        }
    }
    ratios
}

impl Bound {
    pub(crate) fn admits(self, ratio: f64) -> bool {
        match self {
            Bound::AtLeast(least) => ratio >= least,
            Bound::AtMost(most) => ratio <= most,
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
            Metric::ServerCpu => "CPU/op",
            Metric::LoadBusy => "load busy",
            Metric::RssPerItem => "RSS each",
            Metric::UsedMemoryPerItem => "used_memory each",
        }
    }

    pub(crate) fn with_unit(self, value: f64) -> String {
        match self {
            Metric::Throughput => format!("{}/s", thousands(value)),
            Metric::LatencyP50 | Metric::LatencyP99 => format!("{value:.3} ms"),
            Metric::ServerCpu => format!("{value:.2} us"),
            Metric::LoadBusy => format!("{:.0}%", value * 100.0),
            Metric::RssPerItem | Metric::UsedMemoryPerItem => format!("{} B", thousands(value)),
        }
    }

    /// Whether a ratio between servers says something about the servers.
    fn is_comparable(self) -> bool {
        self != Metric::LoadBusy
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
    fn thousands_are_set_apart() {
        let cases =
            [(0.0, "0"), (999.4, "999"), (1000.0, "1,000"), (1234567.0, "1,234,567"), (-1500.0, "-1,500"), (-0.2, "0")];
        for (value, text) in cases {
            assert_eq!(thousands(value), text);
        }
    }
}
