//! What was found: by which check, how bad it is, and what to do. Knows how it is shown; refuses to know what was checked.

use serde::Serialize;
use std::fmt::Write;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Good,
    /// Worth knowing. It may be as it should be.
    Note,
    /// Something to act upon.
    Act,
    /// It could not be looked at.
    Unknown,
}

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// Stable names, for programs.
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// What to do; empty if there is nothing.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) advice: String,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    findings: Vec<Finding>,
}

impl Findings {
    pub(super) fn good(&mut self, check: &'static str, found: impl Into<String>) {
        self.add(check, Verdict::Good, found.into(), String::new());
    }

    pub(super) fn note(&mut self, check: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.add(check, Verdict::Note, found.into(), advice.into());
    }

    pub(super) fn act(&mut self, check: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.add(check, Verdict::Act, found.into(), advice.into());
    }

    pub(super) fn unknown(&mut self, check: &'static str, why: impl Into<String>) {
        self.add(check, Verdict::Unknown, why.into(), String::new());
    }

    fn add(&mut self, check: &'static str, verdict: Verdict, found: String, advice: String) {
        self.findings.push(Finding { check, verdict, found, advice });
    }

    pub(super) fn ask_for_action(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict == Verdict::Act)
    }

    /// One object: a list of findings, and whether there is something to do.
    pub(super) fn to_json(&self) -> String {
        let value = serde_json::json!({ "well": !self.ask_for_action(), "findings": self.findings });
        serde_json::to_string_pretty(&value).expect("texts can be written as JSON")
    }

    /// What to act upon comes last, where people look first.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        for (verdict, word) in
            [(Verdict::Good, "good"), (Verdict::Unknown, "unknown"), (Verdict::Note, "note"), (Verdict::Act, "ACT")]
        {
            for finding in self.findings.iter().filter(|finding| finding.verdict == verdict) {
                let _ = writeln!(text, "{word:<8}{}: {}", finding.check, finding.found);
                if !finding.advice.is_empty() {
                    let _ = writeln!(text, "        -> {}", finding.advice);
                }
            }
        }
        let count = self.findings.iter().filter(|finding| finding.verdict == Verdict::Act).count();
        text.push_str(match count {
            0 => "\nnothing to act upon\n",
            1 => "\none finding to act upon\n",
            _ => "",
        });
        if count > 1 {
            let _ = writeln!(text, "\n{count} findings to act upon");
        }
        text
    }

    /// The finding of a check, for tests.
    #[cfg(test)]
    pub(super) fn of(&self, check: &str) -> Vec<(Verdict, &str)> {
        let found = self.findings.iter().filter(|finding| finding.check == check);
        found.map(|finding| (finding.verdict, finding.found.as_str())).collect()
    }
}

/// Bytes for people.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut shown, mut unit) = (count as f64, 0);
    while shown >= 1024.0 && unit + 1 < UNITS.len() {
        (shown, unit) = (shown / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{count} bytes") } else { format!("{shown:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_act_upon_comes_last() {
        let mut findings = Findings::default();
        assert!(!findings.ask_for_action());
        findings.act("swap", "it is used", "add memory");
        findings.good("clock", "it is right");
        findings.note("log", "it is small", "");
        let expected = "good    clock: it is right\nnote    log: it is small\nACT     swap: it is used\n        -> add memory\n\none finding to act upon\n";
        assert_eq!(findings.shown(), expected);
        assert!(findings.ask_for_action());
        let json: serde_json::Value = serde_json::from_str(&findings.to_json()).unwrap();
        assert_eq!(json["well"], false);
        assert_eq!(json["findings"][0]["verdict"], "act");
        assert_eq!(json["findings"][1].get("advice"), None);
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(
            [0, 1023, 1024, 3 << 30, 5 << 50].map(bytes),
            ["0 bytes", "1023 bytes", "1.0 KiB", "3.0 GiB", "5120.0 TiB"]
        );
    }
}
