//! The alert rules and the dashboard of `config/` name metrics that exist, and the documentation has a row for each alert
//! and each metric of ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::exposition::Metrics;
use crate::http::Watched;
use crate::support::{Home, eventually, ok};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All words of a text that are names of metrics. One is that of a program; those of a log on NATS have their own test.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let metrics = words.filter(|word| word.starts_with("redis_") || word.starts_with("holdfast_"));
    metrics.filter(|word| *word != "redis_exporter" && !word.starts_with("holdfast_log_")).map(str::to_owned).collect()
}

/// The metrics of a writer with data, and of a follower: together all that there are.
fn all_metrics() -> Option<[Metrics; 2]> {
    let home = Home::fresh()?;
    let writer = Watched::start(&["--slowlog-log-slower-than", "0"])?;
    let mut client = writer.connect();
    ok(&mut client, "SET a 1");
    ok(&mut client, "IDX.CREATE jobs PREFIX 1 job: FIELD due");
    client.run("HSET job:1 due 1");
    let source = home.start(&[]);
    ok(&mut source.connect(), "SET a 1");
    let dir = home.data().display().to_string();
    let follower = Watched::start(&["--follow", &dir])?;
    eventually("it follows", || follower.connect().run("GET a").to_string() == "\"1\"");
    Some([writer.metrics(), follower.metrics()])
}

#[test]
fn alerts_dashboard_and_documentation_name_metrics_that_exist() {
    let Some(metrics) = all_metrics() else { return };
    let known = |name: &str| metrics.iter().any(|metrics| metrics.knows(name));
    for path in ["config/prometheus/alerts.yaml", "config/grafana/holdfast.json", "docs/operations.md"] {
        let used = names(&read(path));
        assert!(used.len() >= 8, "{path} uses only {used:?}");
        let unknown: Vec<_> = used.iter().filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "{path} uses {unknown:?}, which no server has");
    }
    let documented = names(&read("docs/operations.md"));
    let ours = metrics.iter().flat_map(|metrics| metrics.types.keys()).filter(|name| name.starts_with("holdfast_"));
    let missing: BTreeSet<_> = ours.filter(|name| !documented.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/operations.md has no row for {missing:?}");
}

#[test]
fn every_alert_is_documented() {
    let (rules, documentation) = (read("config/prometheus/alerts.yaml"), read("docs/operations.md"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 8, "{alerts:?}");
    for alert in alerts {
        assert!(documentation.contains(&format!("| `{alert}` |")), "docs/operations.md has no row for {alert}");
    }
}
