//! Short texts and numbers without allocation. Knows how C prints numbers and ends strings.

use std::fmt;
use std::mem::MaybeUninit;

/// A text of at most `N` bytes; what is too much is cut off.
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) fn new() -> Self {
        Text { bytes: [0; N], len: 0 }
    }

    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut text = Self::new();
        parts.iter().for_each(|part| text.push(part));
        text
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(N - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&bytes[..fits]);
        self.len += fits;
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Room for a double's text.
pub(crate) struct Digits {
    bytes: [MaybeUninit<u8>; 40],
}

impl Digits {
    pub(crate) fn new() -> Self {
        Digits { bytes: [MaybeUninit::uninit(); 40] }
    }

    /// `%.<precision>g` as C prints it (precision 1 to 17).
    pub(crate) fn general(&mut self, number: f64, precision: i32) -> &[u8] {
        // Whole numbers with few enough digits are the common case, and `%g` prints them as integers do.
        const EXACT: [f64; 18] =
            [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17];
        let whole = number as i64;
        if whole as f64 == number
            && number.abs() < EXACT[precision as usize]
            && number.abs() < 9e15
            && (whole != 0 || number.is_sign_positive())
        {
            return self.integer(whole);
        }
        // SAFETY: the buffer is longer than the 24 bytes that `%.17g` can need; snprintf says how many it wrote.
        unsafe {
            let start = self.bytes.as_mut_ptr().cast::<u8>();
            let len = libc::snprintf(start.cast(), self.bytes.len(), c"%.*g".as_ptr(), precision, number);
            std::slice::from_raw_parts(start, (len.max(0) as usize).min(self.bytes.len() - 1))
        }
    }

    pub(crate) fn integer(&mut self, number: i64) -> &[u8] {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(number).as_bytes();
        for (to, from) in self.bytes.iter_mut().zip(text) {
            to.write(*from);
        }
        // SAFETY: the first `text.len()` bytes were just written (at most 20).
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), text.len()) }
    }
}

/// What C takes for the string.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_c_prints_them() {
        let cases: &[(f64, i32, &str)] = &[
            (3.0, 17, "3"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (-0.0, 17, "-0"),
            (0.0, 17, "0"),
            (1e15, 17, "1000000000000000"),
            (1e15, 14, "1e+15"),
            (1e14, 14, "1e+14"),
            (99999999999999.0, 14, "99999999999999"),
            (1e20, 17, "1e+20"),
            (123456.0, 3, "1.23e+05"),
            (9007199254740993.0, 17, "9007199254740992"),
            (f64::INFINITY, 17, "inf"),
            (-1.5e-7, 17, "-1.4999999999999999e-07"),
        ];
        for &(number, precision, text) in cases {
            assert_eq!(std::str::from_utf8(Digits::new().general(number, precision)).unwrap(), text);
        }
    }
}
