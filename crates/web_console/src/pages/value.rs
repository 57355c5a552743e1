//! Shows replies of any form, and the parts of pages that several of them have: rows of fields, links to keys, links to go on.

use crate::figures;
use crate::html::{Exactly, Html, Link, Long, Short, html};
use crate::paths::Page;
use crate::reply::Reply;
use crate::visit::Visit;

/// The most elements of a reply that are shown.
const ELEMENTS_MAX: usize = 2000;

/// A reply of any form, as a tree.
pub(super) fn reply_tree(reply: &Reply) -> Html {
    let mut left = ELEMENTS_MAX;
    let tree = tree(reply, &mut left);
    match left {
        0 => html("{}<p class=\"hint\">Only the first {} elements are shown.</p>", &[&tree, &ELEMENTS_MAX]),
        _ => tree,
    }
}

fn tree(reply: &Reply, left: &mut usize) -> Html {
    if *left == 0 {
        return html("<span class=\"odd\">…</span>", &[]);
    }
    *left -= 1;
    match reply {
        Reply::Null => html("<span class=\"odd\">nil</span>", &[]),
        Reply::Error(text) => html("<pre class=\"bad\">{}</pre>", &[&Long(text)]),
        Reply::Bool(value) => html("<span class=\"odd\">{}</span>", &[&if *value { "true" } else { "false" }]),
        Reply::Integer(number) => html("<code>{}</code>", &[number]),
        Reply::Simple(text) | Reply::Number(text) => html("<code>{}</code>", &[&Long(text)]),
        Reply::Bulk(text) => html("<pre>{}</pre>", &[&Long(text)]),
        Reply::Map(items) if items.is_empty() => html("<span class=\"odd\">empty map</span>", &[]),
        Reply::Map(_) => {
            let mut rows = Html::new();
            for (key, value) in reply.pairs() {
                if *left == 0 {
                    break;
                }
                rows.put("<div><dt>{}</dt><dd>{}</dd></div>", &[&tree(key, left), &tree(value, left)]);
            }
            html("<dl class=\"tree\">{}</dl>", &[&rows])
        }
        Reply::List(items) | Reply::Push(items) if items.is_empty() => {
            html("<span class=\"odd\">empty list</span>", &[])
        }
        Reply::List(items) | Reply::Push(items) => {
            let mut rows = Html::new();
            for item in items {
                if *left == 0 {
                    break;
                }
                rows.put("<li>{}</li>", &[&tree(item, left)]);
            }
            html("<ol class=\"tree\">{}</ol>", &[&rows])
        }
    }
}

/// A key, as a link to its page if it is short enough for an address.
pub(super) fn key_link(visit: &Visit<'_>, key: &[u8]) -> Html {
    link_to(visit.link(Page::Key).with("key", key), key)
}

/// A name, as a link.
pub(super) fn link_to(link: Link, name: &[u8]) -> Html {
    // The head of a request has 16 KiB, and a byte may take three.
    match link.as_str().len() <= 8 << 10 {
        true => html("<a href=\"{}\">{}</a>", &[&link, &Short(name)]),
        false => html("<span title=\"too long for a link\">{}</span>", &[&Short(name)]),
    }
}

/// A link to the next part, if there is one.
pub(super) fn next(link: Option<Link>) -> Html {
    match link {
        Some(link) => html("<p><a class=\"next\" href=\"{}\">More</a></p>", &[&link]),
        None => Html::new(),
    }
}

/// A field for text, with what it has.
pub(super) fn input(label: &str, name: &'static str, value: &[u8], hint: &str) -> Html {
    let value = String::from_utf8_lossy(value).into_owned();
    html(
        "<label>{} <input name=\"{}\" value=\"{}\" placeholder=\"{}\" autocomplete=\"off\" autocapitalize=\"none\" \
         spellcheck=\"false\"></label>",
        &[&label, &name, &Exactly(&value), &hint],
    )
}

/// A choice; each has its value and its name.
pub(super) fn choice(label: &str, name: &'static str, chosen: &[u8], choices: &[(&str, &str)]) -> Html {
    let mut options = Html::new();
    for (value, shown) in choices {
        let mark = if value.as_bytes() == chosen { html(" selected", &[]) } else { Html::new() };
        options.put("<option value=\"{}\"{}>{}</option>", &[value, &mark, shown]);
    }
    html("<label>{} <select name=\"{}\">{}</select></label>", &[&label, &name, &options])
}

/// A number that may be unix milliseconds, with what time that is.
pub(super) fn maybe_time(value: &[u8], now_ms: f64) -> Html {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok());
    match number {
        // From 2001 to 2128.
        Some(ms) if (1e12..5e12).contains(&ms) => html(
            "{} <span class=\"hint\">{}, {}</span>",
            &[&Short(value), &figures::date(ms), &figures::distance(ms, now_ms)],
        ),
        _ => html("{}", &[&Long(value)]),
    }
}

/// What a score says, if it is a time.
pub(super) fn age(score: f64, now_ms: f64) -> String {
    if (1e11..5e12).contains(&score) { figures::distance(score, now_ms) } else { figures::number(score) }
}

/// What a time to live means.
pub(super) fn lifetime(ttl_ms: Option<i64>) -> String {
    match ttl_ms {
        None | Some(-2) => "gone".into(),
        Some(-1) => "never expires".into(),
        Some(ms) => format!("expires in {}", figures::duration(ms as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_shown_without_markup_of_its_own() {
        let hostile = Reply::Bulk(b"<img src=x onerror=alert(1)>".to_vec());
        let map =
            Reply::Map(vec![hostile.clone(), Reply::List(vec![hostile.clone(), Reply::Error(hostile.bytes().into())])]);
        let shown = reply_tree(&map);
        assert!(!shown.as_str().contains("<img"), "{}", shown.as_str());
        assert_eq!(shown.as_str().matches("&lt;img").count(), 3);
    }

    #[test]
    fn a_long_reply_is_cut() {
        let long = Reply::List(vec![Reply::Integer(1); 100_000]);
        let shown = reply_tree(&long);
        assert!(shown.as_str().len() < 100_000 && shown.as_str().contains("Only the first 2000"));
    }

    #[test]
    fn times_are_known_by_their_size() {
        let now = 1_709_209_805_250.0;
        assert!(maybe_time(b"1709209805250", now).as_str().contains("2024-02-29 12:30:05.250"));
        assert_eq!(maybe_time(b"42", now).as_str(), "42");
        assert_eq!(maybe_time(b"abc", now).as_str(), "abc");
    }
}
