//! Amounts of memory as Redis writes them: `100mb`, `2g`. Knows units only.

/// Parses a memory size as Redis does: digits and a unit, `k` is 1000, `kb` is 1024, no digits are zero. Sizes beyond
/// 64 bits become the largest size; in Redis a unit can wrap them around to a small one, or to zero, which means "no
/// limit".
pub fn parse_memory(text: &str) -> Option<u64> {
    const DIGITS_MAX: usize = 127;
    let unit_at = text.bytes().position(|b| !b.is_ascii_digit());
    let (digits, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    if digits.len() > DIGITS_MAX {
        return None;
    }
    let number =
        digits.bytes().fold(0u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(number.saturating_mul(factor))
}
