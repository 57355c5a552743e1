//! Waits as an SVG: of each line that has any, how large a share of them was over after which time. Measures nothing.

use std::fmt::{self, Write};

use super::chart::escaped;
use super::text::Report;
use crate::measure::{Line, thousands};

/// The chart, if any line has waits.
pub(crate) fn waits_svg(report: &Report) -> Option<String> {
    let lines: Vec<_> = report.lines.iter().filter(|line| line.waits_ms.len() > 1).collect();
    if lines.is_empty() {
        return None;
    }
    let mut body = String::new();
    let mut put = |element: fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = writeln!(body, "{element}");
    };
    put(format_args!(r#"<text class="title" x="{MARGIN}" y="34">{}</text>"#, escaped(&title(&lines))));
    put(format_args!(r#"<text class="note" x="{MARGIN}" y="54">{}</text>"#, escaped(&report.platform())));

    let axis = Axis::of(&lines);
    for decade in axis.first..=axis.last {
        let x = axis.x(10f64.powi(decade));
        put(format_args!(r#"<line class="grid" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{BOTTOM}"/>"#));
        let y = BOTTOM + 18.0;
        put(format_args!(r#"<text class="axis" x="{x:.1}" y="{y}" text-anchor="middle">{}</text>"#, time(decade)));
    }
    for percent in (0..=100).step_by(25) {
        let y = height(f64::from(percent) / 100.0);
        put(format_args!(r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{RIGHT}" y2="{y:.1}"/>"#));
        let (x, y) = (LEFT - 8.0, y + 4.0);
        put(format_args!(r#"<text class="axis" x="{x}" y="{y:.1}" text-anchor="end">{percent} %</text>"#));
    }
    let (middle, y) = ((LEFT + RIGHT) / 2.0, BOTTOM + 40.0);
    put(format_args!(
        r#"<text class="note" x="{middle}" y="{y}" text-anchor="middle">share of jobs that had waited no longer</text>"#
    ));
    for (number, line) in lines.iter().enumerate() {
        let (color, y) = (COLORS[number % COLORS.len()], TOP - 14.0);
        let last = (line.waits_ms.len() - 1) as f64;
        let points = line.waits_ms.iter().enumerate().map(|(at, ms)| (axis.x(*ms), height(at as f64 / last)));
        let points: Vec<_> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        put(format_args!(r#"<polyline class="curve" stroke="{color}" points="{}"/>"#, points.join(" ")));
        let x = LEFT + 180.0 * number as f64;
        put(format_args!(r#"<rect x="{x}" y="{}" width="14" height="4" fill="{color}"/>"#, y - 6.0));
        put(format_args!(r#"<text class="name" x="{}" y="{y}">{}</text>"#, x + 22.0, escaped(line.about)));
    }
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">\n\
         <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    ))
}

/// Beside how many others the jobs waited.
fn title(lines: &[&Line]) -> String {
    let amount = thousands(lines[0].amount as f64);
    format!("How long a job of a small tenant waits beside {amount} due jobs of a large one")
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 24.0;
/// Where the curves are.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 860.0;
const TOP: f64 = 100.0;
const BOTTOM: f64 = 360.0;

const COLORS: [&str; 2] = ["#1f5f8b", "#d9822b"];

const STYLE: &str = "\
text{font-family:-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px;fill:#24292f}\
.title{font-size:18px;font-weight:600}.note,.axis{fill:#57606a;font-size:11px}.name{font-weight:600}\
.grid{stroke:#e4e7eb}.curve{fill:none;stroke-width:2.5}";

/// Times in milliseconds on a logarithmic scale, in whole decades.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    fn of(lines: &[&Line]) -> Self {
        let all = || lines.iter().flat_map(|line| &line.waits_ms).copied();
        let (least, most) = (all().fold(f64::MAX, f64::min).max(LEAST_MS), all().fold(LEAST_MS, f64::max));
        let first = least.log10().floor() as i32;
        Axis { first, last: (most.log10().ceil() as i32).max(first + 1) }
    }

    fn x(&self, ms: f64) -> f64 {
        let decades = f64::from(self.last - self.first);
        let share = (ms.max(LEAST_MS).log10() - f64::from(self.first)) / decades;
        LEFT + (RIGHT - LEFT) * share.clamp(0.0, 1.0)
    }
}

/// A logarithm has no zero.
const LEAST_MS: f64 = 0.001;

fn height(share: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * share
}

/// A power of ten of milliseconds.
fn time(decade: i32) -> String {
    match decade {
        ..0 => format!("{} us", 10f64.powi(decade + 3)),
        0..3 => format!("{} ms", 10f64.powi(decade)),
        _ => format!("{} s", 10f64.powi(decade - 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::tests::example;

    #[test]
    fn each_line_with_waits_is_a_curve_from_none_to_all() {
        let mut report = example();
        assert_eq!(waits_svg(&report), None);
        report.lines[0].waits_ms = vec![0.2, 0.5, 1.0];
        report.lines[2].waits_ms = vec![30.0, 200.0, 1_000.0];
        let svg = waits_svg(&report).unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2);
        // From 0.1 ms to a second.
        for mark in [">100 us<", ">1 ms<", ">100 ms<", ">1 s<"] {
            assert!(svg.contains(mark), "{mark}");
        }
        assert!(svg.contains("points=\"") && svg.contains("860.0,100.0\"/>"), "the longest wait is where all are over");
        assert!(svg.contains(">Memory</text>") && svg.contains("Abacus &lt;9&gt;"));
    }

    #[test]
    fn a_wait_of_no_time_is_at_the_left() {
        let axis = Axis { first: -1, last: 3 };
        assert_eq!([axis.x(0.0), axis.x(0.1), axis.x(1_000.0)], [LEFT, LEFT, RIGHT]);
        assert!((axis.x(10.0) - (LEFT + RIGHT) / 2.0).abs() < 0.001);
    }
}
