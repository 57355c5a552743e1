//! What browsers send to the console, and what the server replies to it: queries and forms, cookies, paths, the headers that say
//! where a request comes from, replies of RESP3. Nothing must panic, and what was read keeps its limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use web_console::forms::{FIELDS_MAX, Fields, cookie, decode};
use web_console::guard::{Source, is_numeric, is_own_form, may_show};
use web_console::paths::{Page, is_of_console};
use web_console::reply::Reader;

fuzz_target!(|parts: (&[u8], &[u8], &[u8])| {
    let (one, other, third) = parts;
    match Fields::parse(one) {
        Some(fields) => {
            for name in ["", "a", "key"] {
                assert!(fields.get(name).len() <= one.len() && fields.packed(name).len() <= one.len());
                fields.number(name);
                fields.typed(name);
            }
        }
        None => assert!(one.split(|byte| *byte == b'&').count() > FIELDS_MAX),
    }
    assert!(decode(one).len() <= one.len());
    let encoded: String = one.iter().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(decode(encoded.as_bytes()), one, "what is encoded is decoded");
    if let Some(found) = cookie(one, "holdfast") {
        assert!(found.len() < one.len() && !found.contains(&b';'));
    }
    if let Ok(path) = std::str::from_utf8(one) {
        match Page::at(path) {
            Some(page) => assert!(page.path() == path && is_of_console(path)),
            None => _ = is_of_console(path),
        }
    }
    let source = Source { host: Some(one), origin: Some(other), fetch_site: Some(third) };
    if is_own_form(&source, "") {
        assert_eq!(other[b"http://".len()..].to_ascii_lowercase(), one.to_ascii_lowercase());
    }
    may_show(&source);
    is_numeric(Some(one));
    replies(one, third.first().map_or(1, |size| usize::from(*size).max(1)));
});

/// The same replies, however their bytes are cut.
fn replies(bytes: &[u8], size: usize) {
    let read = |size: usize| {
        let (mut reader, mut found) = (Reader::new(bytes.len()), Vec::new());
        for piece in bytes.chunks(size) {
            reader.feed(piece).expect("there is room for all");
            loop {
                match reader.take() {
                    Ok(Some(reply)) => found.push(reply),
                    Ok(None) => break,
                    Err(_) => return found,
                }
            }
        }
        found
    };
    assert_eq!(read(size), read(bytes.len().max(1)));
}
