//! Users: what each may do, changes of them, and what was refused.

use super::value::input;
use crate::figures;
use crate::html::{Html, Long, Short, html};
use crate::layout::{empty, facts, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::request;
use crate::visit::{Outcome, Visit};

/// The most users on the page.
const USERS_MAX: usize = 200;

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let names = visit.ask(&[b"ACL", b"USERS"]).await?;
    if let Some(refused) = refused(&names) {
        return visit.page("Users", refused);
    }
    let names: Vec<Vec<u8>> = names.items().iter().take(USERS_MAX).map(|name| name.bytes().into_owned()).collect();
    let mut asked: Vec<Vec<u8>> = names.iter().map(|name| request(&[b"ACL", b"GETUSER", name])).collect();
    asked.push(request(&[b"ACL", b"LOG", b"50"]));
    let replies = visit.ask_all(&asked).await?;
    let Some((log, users)) = replies.split_last() else { return Ok(None) };
    let mut rows = Html::new();
    for (name, user) in names.iter().zip(users) {
        rows.add(&row(visit, name, user));
    }
    let mut change = Html::new();
    if visit.may(&[b"ACL", b"SETUSER", b"a"]) {
        let content = html(
            "{}{}<button>Set the rules</button>",
            &[
                &input("User", "name", b"", "worker"),
                &input("Rules", "rules", b"", "on >password ~job:* +@all -@admin"),
            ],
        );
        change.put(
            "<details class=\"ask\"><summary>Add or change a user…</summary>{}</details>",
            &[&visit.form("set", &[], &content)],
        );
    }
    if visit.may(&[b"ACL", b"SAVE"]) {
        change.add(&visit.confirmed("save", &"Write to the file of users", &"Write all users to aclfile?", &[]));
    }
    let list = table(&["User", "State", "Rules", ""], &rows);
    let main =
        html("<div class=\"actions\">{}</div>{}<h2>Refused lately</h2>{}", &[&change, &list, &refusals(visit, log)]);
    visit.page("Users", main)
}

fn row(visit: &Visit<'_>, name: &[u8], user: &Reply) -> Html {
    if let Some(error) = user.error() {
        return html("<tr><td>{}</td><td colspan=\"3\">{}</td></tr>", &[&Short(name), &Short(error)]);
    }
    let flags: Vec<String> = user.get("flags").items().iter().map(Reply::text).collect();
    let has = |flag: &str| flags.iter().any(|known| known == flag);
    let state = match (has("on"), has("nopass")) {
        (true, true) => html("<span class=\"mark bad\">on, needs no password</span>", &[]),
        (true, false) => html("<span class=\"mark good\">on</span>", &[]),
        (false, _) => html("<span class=\"mark\">off</span>", &[]),
    };
    let remove = match name != b"default" && visit.may(&[b"ACL", b"DELUSER", name]) {
        true => {
            let question = html("Delete the user <b>{}</b>, and close its connections?", &[&Short(name)]);
            visit.confirmed("delete", &"Delete", &question, &[("name", name)])
        }
        false => Html::new(),
    };
    let mut rules = rules_of(user);
    for (number, selector) in user.get("selectors").items().iter().enumerate() {
        rules.add(&html("<p><b>or, selector {}</b></p>{}", &[&(number + 1), &rules_of(selector)]));
    }
    html(
        "<tr><td><b>{}</b></td><td>{}</td><td class=\"value\">{}</td><td>{}</td></tr>",
        &[&Short(name), &state, &rules, &remove],
    )
}

/// What a user, or one of its selectors, may do. A request is allowed if one of them allows all of it.
fn rules_of(rules: &Reply) -> Html {
    facts(&["commands", "keys", "channels", "databases"].map(|name| {
        let given = rules.get(name).bytes().into_owned();
        let shown =
            if given.is_empty() { html("<span class=\"odd\">none</span>", &[]) } else { html("{}", &[&Long(&given)]) };
        (name, shown)
    }))
}

fn refusals(visit: &Visit<'_>, log: &Reply) -> Html {
    if let Some(refused) = refused(log) {
        return refused;
    }
    let mut rows = Html::new();
    for entry in log.items() {
        let age = entry.get("age-seconds").number().unwrap_or(0.0);
        rows.put(
            "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td><td class=\"value\">{}</td><td>{}</td><td class=\"value\">{}</td></tr>",
            &[
                &figures::distance(visit.now_ms() - age * 1000.0, visit.now_ms()),
                &entry.get("count").text(),
                &Short(&entry.get("reason").bytes()),
                &Short(&entry.get("object").bytes()),
                &Short(&entry.get("username").bytes()),
                &Short(&entry.get("client-info").bytes()),
            ],
        );
    }
    match rows.is_empty() {
        true => empty("Nothing was refused.", "Wrong passwords, and commands that a user may not run, are noted here."),
        false => table(&["When", "Times#", "Reason", "What", "User", "Client"], &rows),
    }
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    match form.get("action") {
        b"set" => {
            let mut words: Vec<&[u8]> = vec![b"ACL", b"SETUSER", form.typed("name")];
            words.extend(form.typed("rules").split(u8::is_ascii_whitespace).filter(|rule| !rule.is_empty()));
            let reply = visit.ask(&words).await?;
            visit.note_reply(&reply, "The user has these rules.");
        }
        b"delete" => {
            let reply = visit.ask(&[b"ACL", b"DELUSER", &form.packed("name")]).await?;
            visit.note_reply(&reply, format!("{} users were deleted.", reply.text()));
        }
        b"save" => {
            let reply = visit.ask(&[b"ACL", b"SAVE"]).await?;
            visit.note_reply(&reply, "The file of users is written.");
        }
        _ => return Ok(None),
    }
    visit.go(visit.link(Page::Users))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_part_of_what_a_user_may() {
        let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        let rules = |texts: [&str; 4]| {
            let names = ["commands", "keys", "channels", "databases"];
            names.into_iter().zip(texts).flat_map(|(name, text)| [bulk(name), bulk(text)]).collect::<Vec<_>>()
        };
        let shown = rules_of(&Reply::Map(rules(["+@all -eval", "~*", "", "db=1"])));
        for text in ["+@all -eval", "~*", "none", "db=1"] {
            assert!(shown.as_str().contains(text), "{text}: {}", shown.as_str());
        }
    }
}
