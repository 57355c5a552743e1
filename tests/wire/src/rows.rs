//! Splits the lines of a transcript that hold a request and also say which reply it gets.

use crate::text::split_args;

pub(crate) struct Row<'a> {
    /// The number of the connection.
    pub(crate) peer: u32,
    pub(crate) request: &'a str,
    pub(crate) reply: RowReply<'a>,
}

pub(crate) enum RowReply<'a> {
    /// `GET a => "1"`, `2> GET a => "1"`
    Written(&'a str),
    /// `! SET a 1`, `2! SET a 1`
    Success,
    /// `SET a 1 NX XX` below a reply. Several such requests share it.
    Above,
}

impl<'a> Row<'a> {
    /// Splits a line without the spaces around it; `None` if it is a request, a reply or a directive alone.
    pub(crate) fn split(line: &'a str) -> Option<Row<'a>> {
        let (digits, rest) = line.split_at(line.find(|c: char| !c.is_ascii_digit())?);
        let peer = if digits.is_empty() { 1 } else { digits.parse().ok()? };
        if let Some(request) = rest.strip_prefix("! ") {
            return Some(Row { peer, request, reply: RowReply::Success });
        }
        if digits.is_empty() {
            // No reply begins with a capital letter.
            let is_request = rest.starts_with(|first: char| first.is_ascii_uppercase());
            let (request, reply) = is_request.then(|| split_reply(rest).unwrap_or((rest, RowReply::Above)))?;
            return Some(Row { peer, request, reply });
        }
        let (request, reply) = split_reply(rest.strip_prefix("> ")?)?;
        Some(Row { peer, request, reply })
    }
}

/// Splits at the first `=>` outside quotes.
fn split_reply(text: &str) -> Option<(&str, RowReply<'_>)> {
    const ARROW: &str = " => ";
    let arrows = text.match_indices(ARROW).map(|(at, _)| (&text[..at], &text[at + ARROW.len()..]));
    let (request, reply) = arrows.into_iter().find(|(request, _)| split_args(request).is_ok())?;
    Some((request, RowReply::Written(reply)))
}
