//! Reads what a browser sends: queries and forms, cookies. Any bytes give a result or nothing, in time that grows with their
//! length. Refuses to know what fields mean.

/// The most fields of a form.
pub const FIELDS_MAX: usize = 2048;

/// The fields of a query or a form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(Vec<u8>, Vec<u8>)>);

impl Fields {
    /// Reads `a=b&c=d`; `None` if there are more than [`FIELDS_MAX`].
    pub fn parse(text: &[u8]) -> Option<Fields> {
        let parts = text.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
        let mut fields = Vec::new();
        for part in parts {
            if fields.len() == FIELDS_MAX {
                return None;
            }
            let equals = part.iter().position(|byte| *byte == b'=');
            let (name, value) = equals.map_or((part, &b""[..]), |at| (&part[..at], &part[at + 1..]));
            fields.push((decode(name), decode(value)));
        }
        Some(Fields(fields))
    }

    /// The first field of that name; empty if there is none.
    pub fn get(&self, name: &str) -> &[u8] {
        self.all(name).next().unwrap_or_default()
    }

    /// All fields of that name.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(known, _)| known == name.as_bytes()).map(|(_, value)| value.as_slice())
    }

    /// All fields: names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// The first field of that name, as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        std::str::from_utf8(self.get(name)).ok()?.parse().ok()
    }

    /// The first field of that name, if it was encoded a second time to come as it is.
    pub fn packed(&self, name: &str) -> Vec<u8> {
        decode(self.get(name))
    }

    /// Text that a person has typed: without line breaks at its ends.
    pub fn typed(&self, name: &str) -> &[u8] {
        self.get(name).trim_ascii()
    }

    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }
}

/// Decodes `%41` and `+`. A `%` without two digits stays as it is.
pub fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'+', _) => decoded.push(b' '),
            (b'%', [high, low, after @ ..]) if let (Some(high), Some(low)) = (digit(*high), digit(*low)) => {
                decoded.push(high << 4 | low);
                rest = after;
            }
            (other, _) => decoded.push(*other),
        }
    }
    decoded
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|digit| digit as u8)
}

/// The value of a cookie. If a browser sends the name twice, both count as missing: another site of the same host has set one.
pub fn cookie<'a>(header: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = header.split(|byte| *byte == b';').filter_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        (&pair[..equals] == name.as_bytes()).then_some(&pair[equals + 1..])
    });
    let value = found.next()?;
    found.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let fields = Fields::parse(b"a=1&b=x%20y+z&a=2&c&=d&&e=%ff%00%zz%4&f=a=b").unwrap();
        assert_eq!(fields.get("a"), b"1");
        assert_eq!(fields.all("a").collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(fields.get("b"), b"x y z");
        assert_eq!(fields.get("c"), b"");
        assert!(fields.has("c") && !fields.has("g"));
        assert_eq!(fields.get("e"), b"\xff\0%zz%4");
        assert_eq!(fields.get("f"), b"a=b");
        assert_eq!((fields.number("a"), fields.number("b"), fields.number("g")), (Some(1), None, None));
        assert_eq!(Fields::parse(b"k=%2541").unwrap().packed("k"), b"A");
        assert_eq!(Fields::parse(b"").unwrap(), Fields::default());
    }

    #[test]
    fn there_are_not_too_many() {
        assert!(Fields::parse("a=1&".repeat(FIELDS_MAX).as_bytes()).is_some());
        assert!(Fields::parse("a=1&".repeat(FIELDS_MAX + 1).as_bytes()).is_none());
        assert!(Fields::parse("&".repeat(1 << 20).as_bytes()).is_some());
    }

    #[test]
    fn cookies() {
        let of = |header: &'static [u8], name| cookie(header, name);
        assert_eq!(of(b"a=1; b=2", "b"), Some(&b"2"[..]));
        assert_eq!(of(b"a=1;b=2=3 ", "b"), Some(&b"2=3"[..]));
        assert_eq!(of(b"ab=1", "b"), None);
        assert_eq!(of(b"b=1; b=2", "b"), None, "two are one too many");
        assert_eq!(of(b"; ;b;=;\xff=\xff", "b"), None);
        assert_eq!(of(b"b=", "b"), Some(&b""[..]));
    }
}
