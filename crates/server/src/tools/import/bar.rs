//! Shows the progress of an import: a bar on a terminal, a line every few seconds elsewhere. Writes to stderr, so that
//! stdout stays for results.

use super::progress::ImportProgress;
use indicatif::{BinaryBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

const REDRAWS_PER_SECOND: u8 = 8;
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A bar, or lines.
pub(crate) struct Bar {
    started: Instant,
    form: Form,
}

enum Form {
    Terminal(ProgressBar),
    Lines { last: Instant },
}

impl Bar {
    pub(crate) fn new() -> Bar {
        let started = Instant::now();
        if !std::io::stderr().is_terminal() {
            return Bar { started, form: Form::Lines { last: started } };
        }
        let style = ProgressStyle::with_template(
            "{percent:>3}% [{bar:30}] {binary_bytes} of {binary_total_bytes}, {msg}, {eta} left",
        );
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND))
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Bar { started, form: Form::Terminal(bar) }
    }

    /// Shows the progress. Cheap enough to be called often.
    pub(crate) fn show(&mut self, progress: ImportProgress) {
        let elapsed = self.started.elapsed();
        match &mut self.form {
            Form::Terminal(bar) => {
                bar.set_length(progress.bytes_total);
                bar.set_message(format!("{} records/s", HumanCount(records_per_s(progress, elapsed))));
                bar.set_position(progress.bytes);
            }
            Form::Lines { last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                eprintln!("{}", line(progress, elapsed));
            }
            Form::Lines { .. } => {}
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        if let Form::Terminal(bar) = self.form {
            bar.finish_and_clear();
        }
    }
}

fn records_per_s(progress: ImportProgress, elapsed: Duration) -> u64 {
    (progress.records as f64 / elapsed.as_secs_f64().max(0.001)) as u64
}

fn line(progress: ImportProgress, elapsed: Duration) -> String {
    let ImportProgress { bytes, bytes_total, .. } = progress;
    let share = if bytes_total == 0 { 1.0 } else { bytes as f64 / bytes_total as f64 };
    let left = match bytes {
        0 => "unknown time".into(),
        _ => HumanDuration(elapsed.mul_f64((1.0 - share).max(0.0) / share)).to_string(),
    };
    let speed = HumanCount(records_per_s(progress, elapsed));
    let (done, total) = (BinaryBytes(bytes), BinaryBytes(bytes_total));
    format!("{:.0}%, {done} of {total}, {speed} records/s, {left} left", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is_and_how_long_it_takes() {
        let progress = ImportProgress { bytes: 1 << 20, bytes_total: 4 << 20, records: 20_000 };
        let line = line(progress, Duration::from_secs(10));
        assert_eq!(line, "25%, 1.00 MiB of 4.00 MiB, 2,000 records/s, 30 seconds left");
        assert_eq!(
            super::line(ImportProgress::default(), Duration::ZERO),
            "100%, 0 B of 0 B, 0 records/s, unknown time left"
        );
    }
}
