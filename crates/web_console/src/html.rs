//! Writes HTML. Markup comes from the program alone, as string literals; everything else is escaped on its way in. Refuses to
//! know what is written.

use std::fmt::Write;

/// The most characters of a key or a value in a table.
const SHORT_MAX: usize = 160;
/// The most characters of a value on its own page.
const LONG_MAX: usize = 64 << 10;

/// Finished markup.
#[derive(Default)]
pub(crate) struct Html(String);

/// What can stand in for `{}` in a template. The text that is written can stand between tags and in a quoted attribute.
pub(crate) trait Show {
    fn show(&self, out: &mut String);
}

impl Html {
    pub(crate) fn new() -> Html {
        Html::default()
    }

    /// Adds a template, with a value for each `{}`.
    pub(crate) fn put(&mut self, template: &'static str, values: &[&dyn Show]) {
        let mut values = values.iter();
        let mut parts = template.split("{}");
        self.0.push_str(parts.next().unwrap_or_default());
        for part in parts {
            if let Some(value) = values.next() {
                value.show(&mut self.0);
            } else {
                debug_assert!(false, "no value for a place in {template}");
            }
            self.0.push_str(part);
        }
        debug_assert!(values.next().is_none(), "no place for a value in {template}");
    }

    /// Adds markup without values.
    pub(crate) fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    pub(crate) fn add(&mut self, other: &Html) {
        self.0.push_str(&other.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How long it is as the value of a field, as a browser sends it: each sign that is encoded takes three bytes.
    pub(crate) fn len_in_form(&self) -> usize {
        self.0.bytes().map(|byte| if byte.is_ascii_alphanumeric() { 1 } else { 3 }).sum()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A template with its values.
pub(crate) fn html(template: &'static str, values: &[&dyn Show]) -> Html {
    let mut made = Html::new();
    made.put(template, values);
    made
}

impl Show for Html {
    fn show(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

/// A text in which letters that would not be seen, or would change how their neighbours are seen, are replaced.
impl Show for str {
    fn show(&self, out: &mut String) {
        for letter in self.chars() {
            match letter {
                '\n' | '\t' => out.push(letter),
                _ if is_odd(letter) => out.push(char::REPLACEMENT_CHARACTER),
                _ => escape(letter, out),
            }
        }
    }
}

/// A text that comes back to the server as it is: the content of a field.
pub(crate) struct Exactly<'a>(pub(crate) &'a str);

impl Show for Exactly<'_> {
    fn show(&self, out: &mut String) {
        self.0.chars().for_each(|letter| escape(letter, out));
    }
}

impl Show for &str {
    fn show(&self, out: &mut String) {
        (**self).show(out);
    }
}

impl Show for String {
    fn show(&self, out: &mut String) {
        self.as_str().show(out);
    }
}

macro_rules! shows_number {
    ($($number:ty),*) => {$(
        impl Show for $number {
            fn show(&self, out: &mut String) {
                let _ = write!(out, "{self}");
            }
        }
    )*};
}
shows_number!(u16, u64, i64, usize, f64);

fn escape(letter: char, out: &mut String) {
    match letter {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        other => out.push(other),
    }
}

/// Bytes of a client, cut where a table would be too wide. What is no printable text is shown as `\xff` or `\u{202e}`.
pub(crate) struct Short<'a>(pub(crate) &'a [u8]);

/// Like [`Short`], for a value on its own page: line breaks stay.
pub(crate) struct Long<'a>(pub(crate) &'a [u8]);

impl Show for Short<'_> {
    fn show(&self, out: &mut String) {
        show_bytes(self.0, SHORT_MAX, false, out);
    }
}

impl Show for Long<'_> {
    fn show(&self, out: &mut String) {
        show_bytes(self.0, LONG_MAX, true, out);
    }
}

fn show_bytes(bytes: &[u8], letters_max: usize, keeps_lines: bool, out: &mut String) {
    if bytes.is_empty() {
        out.push_str("<span class=\"odd\">empty</span>");
        return;
    }
    let mut shown = 0;
    for chunk in bytes.utf8_chunks() {
        let mut letters = chunk.valid().chars().peekable();
        while let Some(letter) = letters.next() {
            if shown == letters_max {
                return cut(bytes.len(), out);
            }
            shown += 1;
            match letter {
                '\n' | '\t' if keeps_lines => out.push(letter),
                // The end of a line, as in INFO.
                '\r' if keeps_lines && letters.peek() == Some(&'\n') => {}
                _ if is_odd(letter) => odd(letter.escape_default(), out),
                _ => escape(letter, out),
            }
        }
        for byte in chunk.invalid() {
            if shown == letters_max {
                return cut(bytes.len(), out);
            }
            shown += 1;
            odd(std::ascii::escape_default(*byte), out);
        }
    }
}

/// A letter that would not be seen, or would change how its neighbours are seen.
fn is_odd(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn odd(escaped: impl std::fmt::Display, out: &mut String) {
    let _ = write!(out, "<span class=\"odd\">{escaped}</span>");
}

fn cut(len: usize, out: &mut String) {
    let _ = write!(out, "<span class=\"odd\">… {len} bytes</span>");
}

/// A path with a query. Every byte that could mean anything is encoded, so it is safe in an attribute.
#[derive(Clone)]
pub(crate) struct Link(String);

impl Link {
    pub(crate) fn to(path: &'static str) -> Link {
        Link(path.to_owned())
    }

    pub(crate) fn with(mut self, name: &'static str, value: &[u8]) -> Link {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        encode_into(value, &mut self.0);
        self
    }

    /// With the parameter, unless its value is empty.
    pub(crate) fn with_any(self, name: &'static str, value: &[u8]) -> Link {
        if value.is_empty() { self } else { self.with(name, value) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Show for Link {
    fn show(&self, out: &mut String) {
        self.0.as_str().show(out);
    }
}

/// Bytes for a hidden field. A form would change line breaks and what is no text, so they are encoded once more.
pub(crate) struct Packed<'a>(pub(crate) &'a [u8]);

impl Show for Packed<'_> {
    fn show(&self, out: &mut String) {
        encode_into(self.0, out);
    }
}

fn encode_into(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(*byte)),
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &dyn Show) -> String {
        html("{}", &[value]).0
    }

    #[test]
    fn everything_but_templates_is_escaped() {
        let hostile = "<script>alert('1')</script>\"&";
        let escaped = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;";
        assert_eq!(shown(&hostile), escaped);
        assert_eq!(shown(&Short(hostile.as_bytes())), escaped);
        assert_eq!(shown(&Long(hostile.as_bytes())), escaped);
        let link = Link::to("/console/key").with("key", hostile.as_bytes()).with("db", b"1");
        let linked = shown(&link);
        assert!(!linked.contains(['<', '>', '"', '\'']), "{linked}");
        assert!(linked.starts_with("/console/key?key=%3Cscript%3E") && linked.ends_with("&amp;db=1"), "{linked}");
        assert_eq!(shown(&Exactly(hostile)), escaped);
        assert_eq!(shown(&"a\u{202e}\0b\n"), "a\u{fffd}\u{fffd}b\n");
        assert_eq!(shown(&Exactly("a\u{200d}b")), "a\u{200d}b");
        assert_eq!(html("<b title=\"{}\">{}</b>", &[&"\"x", &7u64]).as_str(), "<b title=\"&quot;x\">7</b>");
    }

    #[test]
    fn a_value_cannot_hold_a_place() {
        assert_eq!(html("<i>{}</i>{}", &[&"{}", &"b"]).as_str(), "<i>{}</i>b");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown() {
        let odd = |text: &str| format!("<span class=\"odd\">{text}</span>");
        assert_eq!(shown(&Short(b"a\xff\0b")), format!("a{}{}b", odd("\\xff"), odd("\\u{0}")));
        assert_eq!(shown(&Short("x\u{202e}y".as_bytes())), format!("x{}y", odd("\\u{202e}")));
        assert_eq!(shown(&Short(b"a\nb")), format!("a{}b", odd("\\n")));
        assert_eq!(shown(&Long(b"a\nb")), "a\nb");
        assert_eq!(shown(&Long(b"a\r\nb\r")), format!("a\nb{}", odd("\\r")));
        assert_eq!(shown(&Short(b"a\r\nb")), format!("a{}{}b", odd("\\r"), odd("\\n")));
        assert_eq!(shown(&Short(b"")), odd("empty"));
        assert_eq!(shown(&Short("größe".as_bytes())), "größe");
        let long = shown(&Short(&[b'x'; 1000]));
        assert!(long.len() < 300 && long.ends_with(&odd("… 1000 bytes")), "{long}");
        assert!(shown(&Long(&vec![0xff; 10 << 20])).len() < 4 << 20);
    }

    #[test]
    fn hidden_fields_carry_any_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let packed = shown(&Packed(&bytes));
        assert!(packed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"%-_.~".contains(&byte)));
        assert_eq!(crate::forms::decode(packed.as_bytes()), bytes);
    }
}
