//! The table of a comparison, in Markdown, so that a document can have it as it is.

use crate::Cost;

/// What each library needs for one operation, in the order of the columns; ours is the first.
pub struct Row {
    pub name: &'static str,
    pub costs: Vec<Cost>,
}

pub fn print(what: &str, libraries: &[&str], rows: &[Row]) {
    print!("{}", text(what, libraries, rows));
}

fn text(what: &str, libraries: &[&str], rows: &[Row]) -> String {
    let mut lines = vec![
        format!("| {what} | {} |", libraries.join(" | ")),
        format!("| --- |{}", " ---: |".repeat(libraries.len())),
    ];
    for Row { name, costs } in rows {
        let cells = costs.iter().enumerate().map(|(i, cost)| cell(cost, (i > 0).then_some(&costs[0])));
        lines.push(format!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | ")));
    }
    lines.join("\n") + "\n"
}

fn cell(cost: &Cost, ours: Option<&Cost>) -> String {
    let ratio = ours.map_or(String::new(), |ours| format!(", {:.1} ×", cost.ns / ours.ns));
    format!("{:.0} ns{ratio}, {} allocations", cost.ns, shortest(cost.allocations))
}

/// One decimal, or none: most operations allocate the same each time.
fn shortest(number: f64) -> String {
    let rounded = format!("{number:.1}");
    rounded.strip_suffix(".0").unwrap_or(&rounded).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_shown_beside_the_first() {
        let cost = |ns, allocations| Cost { ns, allocations };
        let rows = [Row { name: "PING", costs: vec![cost(10.0, 0.0), cost(25.4, 1.5)] }];
        assert_eq!(
            text("request", &["ours", "theirs"], &rows),
            "| request | ours | theirs |\n| --- | ---: | ---: |\n| PING | 10 ns, 0 allocations | 25 ns, 2.5 ×, 1.5 allocations |\n"
        );
    }
}
