//! The frame of every page: the list of pages, notices, the user; and the page to sign in. Refuses to know what pages show.

use crate::html::{Exactly, Html, html};
use crate::paths::Page;
use crate::reply::Reply;
use crate::visit::Visit;

/// The pages of the list: the title, and a request that a user of the page must be allowed to run.
const LISTED: &[(Page, &str, &[&[u8]])] = &[
    (Page::Overview, "Overview", &[b"INFO"]),
    (Page::Jobs, "Jobs", &[b"IDX.LIST"]),
    (Page::Runs, "Runs", &[b"RUN.LIST"]),
    (Page::Cells, "Cells", &[b"CELL.LIST"]),
    (Page::Registers, "Registers", &[b"SCAN", b"0"]),
    (Page::Sessions, "Sessions", &[b"SESSION.LIST"]),
    (Page::Keys, "Keys", &[b"SCAN", b"0"]),
    (Page::SlowLog, "Slow log", &[b"SLOWLOG", b"GET"]),
    (Page::Latency, "Latency", &[b"LATENCY", b"LATEST"]),
    (Page::Clients, "Clients", &[b"CLIENT", b"LIST"]),
    (Page::Configuration, "Configuration", &[b"CONFIG", b"GET", b"*"]),
    (Page::Users, "Users", &[b"ACL", b"USERS"]),
    (Page::Memory, "Memory", &[b"MEMORY", b"STATS"]),
    (Page::Cluster, "Cluster", &[b"ROLE"]),
    (Page::Prompt, "Prompt", &[b"PING"]),
];

/// The page of the list that a page belongs to.
fn listed(page: Page) -> Page {
    match page {
        Page::Index | Page::Groups | Page::Record | Page::Dead => Page::Jobs,
        Page::Run => Page::Runs,
        Page::Cell => Page::Cells,
        Page::Session => Page::Sessions,
        Page::Key => Page::Keys,
        other => other,
    }
}

const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
    <link rel=\"stylesheet\" href=\"/console/style.css\"><link rel=\"icon\" href=\"/console/icon.svg\">\
    <script src=\"/console/script.js\" defer></script>";

/// A whole page.
pub(crate) fn page(visit: &mut Visit<'_>, title: &str, main: &Html) -> Html {
    let current = listed(visit.page);
    let mut list = Html::new();
    for (page, name, needed) in LISTED {
        if visit.may(needed) {
            let mark = if *page == current { html(" aria-current=\"page\"", &[]) } else { Html::new() };
            list.put("<li><a href=\"{}\"{}>{}</a></li>", &[&visit.link(*page), &mark, name]);
        }
    }
    let mut notices = Html::new();
    for notice in visit.console.sessions().take_notices(&visit.session.token) {
        let kind = if notice.is_good { "notice good" } else { "notice bad" };
        notices.put("<p class=\"{}\" role=\"status\">{}</p>", &[&kind, &notice.text]);
    }
    let user = visit.session.user.shown_name();
    let mut page = Html::new();
    page.raw(HEAD);
    page.put(
        "<title>{} · Holdfast</title></head><body><a class=\"skip\" href=\"#main\">To the content</a><header>\
         <details class=\"menu\"><summary>Pages</summary><nav aria-label=\"Pages\"><ul>{}</ul></nav></details>\
         <a class=\"brand\" href=\"/console\">Holdfast</a><span class=\"user\">{}</span>\
         <form method=\"post\" action=\"/console/sign-out\"><input type=\"hidden\" name=\"token\" value=\"{}\">\
         <button class=\"plain\">Sign out</button></form></header>\
         <nav class=\"side\" aria-label=\"Pages\"><ul>{}</ul></nav><main id=\"main\"><h1>{}</h1>{}{}</main></body></html>",
        &[&title, &list, &user, &&*visit.session.token, &list, &title, &notices, main],
    );
    page
}

/// The page to sign in.
pub(crate) fn sign_in(token: &str, problem: Option<&str>, is_open: bool, name: &str) -> Html {
    let mut above = Html::new();
    if let Some(problem) = problem {
        above.put("<p class=\"notice bad\" role=\"alert\">{}</p>", &[&problem]);
    }
    if is_open {
        above.raw("<p class=\"hint\">The user <b>default</b> needs no password yet: leave it empty.</p>");
    }
    let mut page = Html::new();
    page.raw(HEAD);
    page.put(
        "<title>Sign in · Holdfast</title></head><body class=\"alone\"><main id=\"main\"><h1>Holdfast</h1>{}\
         <form method=\"post\" action=\"/console/sign-in\"><input type=\"hidden\" name=\"token\" value=\"{}\">\
         <label>User <input name=\"user\" value=\"{}\" autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\"></label>\
         <label>Password <input name=\"password\" type=\"password\" autocomplete=\"current-password\" autofocus></label>\
         <button class=\"main\">Sign in</button></form></main></body></html>",
        &[&above, &token, &Exactly(name)],
    );
    page
}

/// What went wrong.
pub(crate) fn problem(text: &str) -> Html {
    html("<p class=\"notice bad\" role=\"alert\">{}</p>", &[&text])
}

/// What a command has answered, if it is an error.
pub(crate) fn refused(reply: &Reply) -> Option<Html> {
    reply.error().map(|error| problem(&String::from_utf8_lossy(error)))
}

/// A table that scrolls sideways by itself where it is too wide. Its rows are made before.
pub(crate) fn table(heads: &[&str], rows: &Html) -> Html {
    let mut head = Html::new();
    for name in heads {
        // A head that ends in `#` is over numbers.
        match name.strip_suffix('#') {
            Some(name) => head.put("<th scope=\"col\" class=\"num\">{}</th>", &[&name]),
            None => head.put("<th scope=\"col\">{}</th>", &[name]),
        }
    }
    html(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table><thead><tr>{}</tr></thead>\
         <tbody>{}</tbody></table></div>",
        &[&head, rows],
    )
}

/// What there is to do where there is nothing to see.
pub(crate) fn empty(what: &str, to_do: &str) -> Html {
    html("<div class=\"empty\"><p><b>{}</b></p><p>{}</p></div>", &[&what, &to_do])
}

/// Names and values.
pub(crate) fn facts(pairs: &[(&str, Html)]) -> Html {
    let mut list = Html::new();
    for (name, value) in pairs {
        list.put("<div><dt>{}</dt><dd>{}</dd></div>", &[name, value]);
    }
    html("<dl class=\"facts\">{}</dl>", &[&list])
}
