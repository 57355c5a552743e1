//! Shows numbers, sizes and times to a person. Refuses to know where they come from.

/// Bytes, as in `1.5 MiB`.
pub(crate) fn bytes(count: f64) -> String {
    let mut left = count;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if left < 1024.0 {
            return if unit == "B" { format!("{left:.0} B") } else { format!("{left:.1} {unit}") };
        }
        left /= 1024.0;
    }
    format!("{left:.1} TiB")
}

/// A number with a few digits, as in `12.3 k`.
pub(crate) fn number(count: f64) -> String {
    match count {
        _ if count < 10.0 && count.fract() != 0.0 => format!("{count:.1}"),
        _ if count < 10_000.0 => format!("{count:.0}"),
        _ if count < 1e6 => format!("{:.1} k", count / 1e3),
        _ if count < 1e9 => format!("{:.1} M", count / 1e6),
        _ => format!("{:.1} G", count / 1e9),
    }
}

/// Microseconds, as in `1.2 ms`.
pub(crate) fn micros(us: f64) -> String {
    match us {
        _ if us < 1e3 => format!("{us:.0} µs"),
        _ if us < 1e6 => format!("{:.1} ms", us / 1e3),
        _ => duration(us / 1e3),
    }
}

/// Milliseconds, as in `3 h 5 min`.
pub(crate) fn duration(ms: f64) -> String {
    let seconds = (ms / 1000.0) as i64;
    match seconds.unsigned_abs() {
        0 => format!("{ms:.0} ms"),
        s @ 1..60 => format!("{s}.{} s", ((ms.abs() / 100.0) as u64) % 10),
        s @ 60..3600 => format!("{} min {} s", s / 60, s % 60),
        s @ 3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

/// How long ago or in how long a time is, as in `5 min 2 s ago`.
pub(crate) fn distance(at_ms: f64, now_ms: f64) -> String {
    if !at_ms.is_finite() {
        return "never".into();
    }
    match at_ms - now_ms {
        left if left > 0.0 => format!("in {}", duration(left)),
        left => format!("{} ago", duration(-left)),
    }
}

/// Unix milliseconds as a date in UTC, as in `2024-02-29 12:30:05.250`.
pub(crate) fn date(ms: f64) -> String {
    if !(0.0..=253_402_300_799_000.0).contains(&ms) {
        return format!("{ms}");
    }
    let ms = ms as u64;
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    // Days are counted from a first of March, so that a leap day is the last of its year: Howard Hinnant, "chrono-compatible
    // low-level date algorithms".
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second, milli) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{milli:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (ms, shown) in [
            (0.0, "1970-01-01 00:00:00.000"),
            (951_782_400_000.0, "2000-02-29 00:00:00.000"),
            (1_709_209_805_250.0, "2024-02-29 12:30:05.250"),
            (4_107_542_399_999.0, "2100-02-28 23:59:59.999"),
            (4_107_542_400_000.0, "2100-03-01 00:00:00.000"),
            (-1.0, "-1"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(date(ms), shown);
        }
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!([bytes(0.0), bytes(1023.0), bytes(1536.0), bytes(3e12)], ["0 B", "1023 B", "1.5 KiB", "2.7 TiB"]);
        assert_eq!([number(0.0), number(1.25), number(12_345.0), number(5e9)], ["0", "1.2", "12.3 k", "5.0 G"]);
        assert_eq!([micros(3.0), micros(1500.0), micros(2.5e6)], ["3 µs", "1.5 ms", "2.5 s"]);
        assert_eq!([duration(5.0), duration(61_000.0), duration(90_000_000.0)], ["5 ms", "1 min 1 s", "1 d 1 h"]);
        assert_eq!([distance(1000.0, 3000.0), distance(5000.0, 3000.0)], ["2.0 s ago", "in 2.0 s"]);
        assert_eq!([distance(f64::INFINITY, 0.0), distance(f64::MAX, 0.0)][0], "never");
    }
}
