//! The ratios to the baseline as an SVG of grouped horizontal bars, each target a tick. Measures nothing, judges nothing.

use std::fmt::{self, Write};

use super::text::Report;
use crate::measure::{BASELINE, Line, Metric, Ratio};

/// The chart, against the peer the targets are judged by, or the first peer where that one is missing.
pub(crate) fn svg(report: &Report) -> String {
    let peer = report.peers().iter().find(|peer| peer.name == BASELINE).or(report.peers().first());
    let name = peer.map_or("nobody", |peer| peer.name.as_str());
    let subject = &report.servers[0];
    let mut drawing = Drawing { body: String::new(), y: 0.0 };

    let against = peer.map_or("nobody".to_string(), |peer| format!("{} {}", peer.name, peer.version));
    drawing.y = 34.0;
    drawing.text(MARGIN, "title", &format!("{} {} against {against}", subject.name, subject.version));
    for note in [report.platform(), report.method()] {
        drawing.y += 18.0;
        drawing.text(MARGIN, "note", &note);
    }
    for (metric, caption) in PANELS {
        let bars: Vec<_> = report.lines.iter().filter_map(|line| Some((line, line.ratio(name, *metric)?))).collect();
        if !bars.is_empty() {
            drawing.panel(&format!("{caption}, {name} = 1"), &bars);
        }
    }
    drawing.finish()
}

/// What is drawn, in order.
const PANELS: &[(Metric, &str)] = &[
    (Metric::ServerCpu, "Server CPU time per operation (shorter is better)"),
    (Metric::Throughput, "Throughput (longer is better)"),
    (Metric::RssPerItem, "Resident memory (shorter is better)"),
    (Metric::StartTime, "Time to start with data (shorter is better)"),
    (Metric::LatencyP999, "p99.9 latency (shorter is better)"),
];

const WIDTH: f64 = 900.0;
const MARGIN: f64 = 24.0;
/// Where bars begin and end; names stand to the left, values to the right.
const PLOT: (f64, f64) = (250.0, 690.0);
const VALUE_X: f64 = 702.0;
const BAR_HEIGHT: f64 = 14.0;
const BAR_STEP: f64 = 18.0;
const GROUP_GAP: f64 = 10.0;

const STYLE: &str = "\
text{font-family:-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px;fill:#24292f}\
.title{font-size:18px;font-weight:600}.caption{font-size:14px;font-weight:600}\
.note,.axis{fill:#57606a;font-size:11px}.name{font-weight:600}.missed{fill:#b42318}\
.grid{stroke:#e4e7eb}.one{stroke:#8c959f;stroke-dasharray:4 3}.target{stroke:#1f2328;stroke-width:2.5}\
.shallow{fill:#9ecae9}.middle{fill:#4a90c2}.deep{fill:#1f5f8b}.alone{fill:#4a90c2}";

struct Drawing {
    body: String,
    /// The base line of what comes next.
    y: f64,
}

impl Drawing {
    fn panel(&mut self, caption: &str, bars: &[(&Line, &Ratio)]) {
        let longest = bars.iter().flat_map(|(_, ratio)| [Some(ratio.ratio), target_of(ratio)]).flatten();
        let scale = Scale::up_to(longest.fold(1.0, f64::max));

        self.y += 40.0;
        self.text(MARGIN, "caption", caption);
        self.put(format_args!(
            r#"<line class="target" x1="{x}" y1="{}" x2="{x}" y2="{}"/>"#,
            self.y - 12.0,
            self.y + 2.0,
            x = VALUE_X + 4.0
        ));
        self.text(VALUE_X + 12.0, "note", "target");
        self.y += 12.0;
        let (top, bottom) = (self.y, self.y + height(bars) + GROUP_GAP);
        self.axis(&scale, top, bottom);

        let mut before = None;
        for (line, ratio) in bars {
            let opens_group = before != Some(line.about);
            if opens_group {
                self.y += GROUP_GAP;
            }
            self.bar(line, ratio, &scale, opens_group);
            before = Some(line.about);
        }
        self.y = bottom + 18.0;
    }

    fn axis(&mut self, scale: &Scale, top: f64, bottom: f64) {
        for mark in scale.marks() {
            let x = scale.x(mark);
            let class = if mark == 1.0 { "one" } else { "grid" };
            self.put(format_args!(r#"<line class="{class}" x1="{x:.1}" y1="{top:.1}" x2="{x:.1}" y2="{bottom:.1}"/>"#));
            let y = bottom + 14.0;
            self.put(format_args!(r#"<text class="axis" x="{x:.1}" y="{y:.1}" text-anchor="middle">{mark}</text>"#));
        }
    }

    fn bar(&mut self, line: &Line, ratio: &Ratio, scale: &Scale, named: bool) {
        let (top, base) = (self.y, self.y + BAR_HEIGHT - 3.0);
        let (class, depth) = match line.pipeline {
            None => ("alone", String::new()),
            Some(depth @ ..4) => ("shallow", format!("pipeline {depth}")),
            Some(depth @ ..32) => ("middle", format!("pipeline {depth}")),
            Some(depth) => ("deep", format!("pipeline {depth}")),
        };
        let width = (scale.x(ratio.ratio) - PLOT.0).max(1.0);
        self.put(format_args!(
            r#"<rect class="{class}" x="{}" y="{top:.1}" width="{width:.1}" height="{BAR_HEIGHT}" rx="2"/>"#,
            PLOT.0
        ));
        if let Some(target) = target_of(ratio) {
            let (x, y1, y2) = (scale.x(target), top - 2.0, top + BAR_HEIGHT + 2.0);
            self.put(format_args!(r#"<line class="target" x1="{x:.1}" y1="{y1:.1}" x2="{x:.1}" y2="{y2:.1}"/>"#));
        }
        self.y = base;
        if named {
            self.text(MARGIN, "name", line.about);
        }
        let x = PLOT.0 - 8.0;
        self.put(format_args!(r#"<text class="axis" x="{x}" y="{base:.1}" text-anchor="end">{depth}</text>"#));
        let value = ratio.text();
        match ratio.verdict {
            None => self.text(VALUE_X, "bare", &value),
            Some(verdict) => {
                let met = if verdict.met { "met" } else { "missed" };
                let target = verdict.target.value();
                self.text(VALUE_X, met, &format!("{value} (target {target:.2} {met})"));
            }
        }
        self.y = top + BAR_STEP;
    }

    fn text(&mut self, x: f64, class: &str, text: &str) {
        let y = self.y;
        self.put(format_args!(r#"<text class="{class}" x="{x}" y="{y:.1}">{}</text>"#, escaped(text)));
    }

    fn put(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    fn finish(self) -> String {
        let height = self.y + 20.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {WIDTH} {height:.0}\">\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// The height of a panel's bars and the gaps before its groups.
fn height(bars: &[(&Line, &Ratio)]) -> f64 {
    let groups = bars.chunk_by(|(a, _), (b, _)| a.about == b.about).count();
    bars.len() as f64 * BAR_STEP + groups as f64 * GROUP_GAP
}

fn target_of(ratio: &Ratio) -> Option<f64> {
    ratio.verdict.map(|verdict| verdict.target.value())
}

/// From ratios to places on the x axis.
struct Scale {
    end: f64,
    step: f64,
}

impl Scale {
    fn up_to(longest: f64) -> Self {
        let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0].into_iter().find(|step| longest / step <= 8.0).unwrap_or(50.0);
        Scale { end: (longest / step).ceil() * step, step }
    }

    fn x(&self, ratio: f64) -> f64 {
        PLOT.0 + (PLOT.1 - PLOT.0) * (ratio.clamp(0.0, self.end) / self.end)
    }

    fn marks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = (self.end / self.step).round() as u32;
        (0..=count).map(|i| f64::from(i) * self.step)
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::tests::example;

    #[test]
    fn every_ratio_is_a_bar_and_every_target_a_tick() {
        let svg = svg(&example());
        assert_eq!(svg.matches("<rect class=").count(), 4);
        // One more tick in the legend of each of the three panels.
        assert_eq!(svg.matches(r#"<line class="target""#).count(), 4 + 3);
        assert!(svg.contains("1.50x (target 1.70 missed)"));
    }

    #[test]
    fn names_cannot_break_the_markup() {
        assert!(svg(&example()).contains("Abacus &lt;9&gt;"));
    }

    #[test]
    fn without_a_peer_there_is_an_empty_chart() {
        let mut report = example();
        report.servers.truncate(1);
        assert!(svg(&report).ends_with("</svg>\n"));
    }

    #[test]
    fn the_scale_holds_the_longest_bar_in_a_few_steps() {
        for longest in [1.0, 1.3, 2.8, 7.0, 40.0] {
            let scale = Scale::up_to(longest);
            assert!(scale.end >= longest && scale.marks().count() <= 9, "{longest}");
            assert_eq!(scale.x(0.0), PLOT.0);
            assert_eq!(scale.x(scale.end), PLOT.1);
        }
    }
}
