//! Draws series of numbers as SVG. Texts stand beside the drawing, which is stretched to the width of the page. Refuses to know
//! what the numbers are.

use crate::html::{Html, Show, html};
use std::fmt::Write;

/// The drawing's own coordinates.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;

/// A line of a plot. The style sheet has a colour for each number.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) values: Vec<f64>,
}

/// A plot of lines over the same time, the newest value at the right. `places` values fill the width.
pub(crate) fn plot(title: &str, lines: &[Line<'_>], places: usize, shown: fn(f64) -> String) -> Html {
    let all = lines.iter().flat_map(|line| line.values.iter().copied());
    let top = all.fold(0.0, f64::max);
    // Nothing at all is drawn at the bottom.
    let scale = if top > 0.0 { top } else { 1.0 };
    let mut drawn = Html::new();
    let mut legend = Html::new();
    for (number, line) in lines.iter().enumerate() {
        let path = Path(path(&line.values, places, scale));
        drawn.put("<path class=\"line line-{}\" vector-effect=\"non-scaling-stroke\" d=\"{}\"/>", &[&number, &path]);
        let newest = line.values.last().copied().map_or_else(|| "–".to_owned(), shown);
        legend.put("<span class=\"key key-{}\">{} <b>{}</b></span>", &[&number, &line.name, &newest]);
    }
    html(
        "<figure class=\"plot\"><figcaption>{}<span class=\"top\">top {}</span></figcaption>\
         <svg viewBox=\"0 0 600 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} over the last hour\">\
         <path class=\"grid\" vector-effect=\"non-scaling-stroke\" d=\"M0 25H600M0 50H600M0 75H600\"/>{}</svg>\
         <div class=\"legend\">{}</div></figure>",
        &[&title, &shown(top), &title, &drawn, &legend],
    )
}

/// The commands of a path; digits, points, `M` and `L` alone.
struct Path(String);

impl Show for Path {
    fn show(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

fn path(values: &[f64], places: usize, scale: f64) -> String {
    let step = WIDTH / places.saturating_sub(1).max(1) as f64;
    let first = WIDTH - step * values.len().saturating_sub(1) as f64;
    let mut path = String::new();
    for (number, value) in values.iter().enumerate() {
        let letter = if number == 0 { 'M' } else { 'L' };
        let y = HEIGHT - (value / scale).clamp(0.0, 1.0) * (HEIGHT - 2.0) - 1.0;
        let _ = write!(path, "{letter}{:.1} {y:.1}", first + step * number as f64);
    }
    path
}

/// A bar that is so much of the whole.
pub(crate) fn bar(part: f64, whole: f64) -> Html {
    let width = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) * 100.0 } else { 0.0 };
    let width = Path(format!("{width:.1}"));
    html(
        "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect width=\"100\" height=\"8\"/><rect class=\"part\" width=\"{}\" height=\"8\"/></svg>",
        &[&width],
    )
}

/// A bar from one moment to another, in a whole of `from..to`.
pub(crate) fn span(begin: f64, end: f64, whole: f64) -> Html {
    let place = |at: f64| if whole > 0.0 { (at / whole).clamp(0.0, 1.0) * 100.0 } else { 0.0 };
    let (from, to) = (place(begin), place(end));
    let (from, width) = (Path(format!("{:.1}", from.min(99.0))), Path(format!("{:.1}", (to - from).max(1.0))));
    html(
        "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect width=\"100\" height=\"8\"/><rect class=\"part\" x=\"{}\" width=\"{}\" height=\"8\"/></svg>",
        &[&from, &width],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_value_is_at_the_right() {
        assert_eq!(path(&[0.0, 5.0, 10.0], 3, 10.0), "M0.0 99.0L300.0 50.0L600.0 1.0");
        assert_eq!(path(&[10.0], 720, 10.0), "M600.0 1.0");
        assert_eq!(path(&[], 720, 10.0), "");
    }

    #[test]
    fn any_number_stays_in_the_drawing() {
        let drawn = path(&[f64::MAX, -1.0, f64::INFINITY], 3, 1.0);
        assert_eq!(drawn, "M0.0 1.0L300.0 99.0L600.0 1.0");
        assert!(bar(7.0, 0.0).as_str().contains("width=\"0.0\""));
        assert!(bar(7.0, 3.0).as_str().contains("width=\"100.0\""));
    }
}
