//! Memory: by part, and by the prefixes of keys.

use super::info::Info;
use super::value::{choice, reply_tree};
use crate::charts::bar;
use crate::figures;
use crate::html::{Html, Long, Short, html};
use crate::layout::{empty, facts, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::{TIME_MAX, Trouble, request};
use crate::visit::{Outcome, Visit};

/// The most segments of a prefix.
const DEPTH_MAX: u64 = 4;
const DEPTHS: &[(&str, &str)] = &[("1", "1"), ("2", "2"), ("3", "3"), ("4", "4")];

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let replies = visit
        .ask_all(&[request(&[b"INFO", b"memory"]), request(&[b"MEMORY", b"STATS"]), request(&[b"MEMORY", b"DOCTOR"])])
        .await?;
    let [info, stats, doctor] = replies.as_slice() else { return Ok(None) };
    let mut main = Html::new();
    match refused(info) {
        Some(refused) => main.add(&refused),
        None => main.add(&summary(&Info::of(info))),
    }
    if doctor.error().is_none() {
        main.put("<p>{}</p>", &[&Long(&doctor.bytes())]);
    }
    main.raw("<h2>By part</h2>");
    match refused(stats) {
        Some(refused) => main.add(&refused),
        None => {
            let total = stats.get("total.allocated").number().unwrap_or(0.0);
            let mut rows = Html::new();
            for (name, value) in stats.pairs().filter(|(_, value)| value.number().is_some()) {
                let (name, value) = (name.text(), value.number().unwrap_or(0.0));
                let is_part = [
                    "startup.allocated",
                    "replication.backlog",
                    "clients.",
                    "cluster.links",
                    "aof.buffer",
                    "lua.caches",
                    "functions.caches",
                    "dataset.bytes",
                ];
                if is_part.iter().any(|part| name.starts_with(part)) {
                    rows.put(
                        "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
                        &[&name, &figures::bytes(value), &bar(value, total)],
                    );
                }
            }
            main.add(&table(&["Part", "Memory#", ""], &rows));
            main.put("<details><summary>All figures</summary>{}</details>", &[&reply_tree(stats)]);
        }
    }
    let prefixes = by_chosen_depth(visit).await;
    main.put("<h2>By prefix of keys, database {}</h2>{}", &[&visit.db, &prefixes]);
    visit.page("Memory", main)
}

/// Keys by their prefixes: only when a depth is chosen, since the server reads every key for it.
async fn by_chosen_depth(visit: &mut Visit<'_>) -> Html {
    let depth = visit.query.number("depth").filter(|depth| (1..=DEPTH_MAX).contains(depth));
    if !visit.may(&[b"MEMORY", b"PREFIXES"]) {
        return html("<p class=\"hint\">This is for users that may run MEMORY PREFIXES and read all keys.</p>", &[]);
    }
    let chosen = depth.unwrap_or(1).to_string();
    let form = html(
        "<form class=\"search\" method=\"get\" action=\"{}\">{}<input type=\"hidden\" name=\"db\" value=\"{}\">\
         <button>Count</button> <span class=\"hint\">reads every key of the database once</span></form>",
        &[&Page::Memory.path(), &choice("Segments of a prefix", "depth", chosen.as_bytes(), DEPTHS), &visit.db],
    );
    if depth.is_none() {
        return form;
    }
    let found = match visit.ask(&[b"MEMORY", b"PREFIXES", chosen.as_bytes()]).await {
        Ok(reply) => by_prefix(&reply),
        Err(Trouble::TooLate) => html(
            "<p class=\"notice bad\">There are too many keys to count them while this page loads: the console has hung up after {} \
             seconds, and the count ends. MEMORY PREFIXES in redis-cli has no such limit; PREFIX there makes the reply shorter.</p>",
            &[&TIME_MAX.as_secs()],
        ),
        Err(trouble) => html("<p class=\"notice bad\">{}</p>", &[&trouble.to_string()]),
    };
    html("{}{}", &[&form, &found])
}

fn by_prefix(reply: &Reply) -> Html {
    if let Some(error) = reply.error() {
        return html("<p class=\"hint\">MEMORY PREFIXES has answered: {}</p>", &[&Short(error)]);
    }
    let all = reply.get("bytes").number().unwrap_or(0.0);
    let mut rows = Html::new();
    for prefix in reply.get("prefixes").items() {
        let (keys, bytes) = (prefix.at(1).number().unwrap_or(0.0), prefix.at(2).number().unwrap_or(0.0));
        rows.put(
            "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            &[&Short(&prefix.at(0).bytes()), &figures::number(keys), &figures::bytes(bytes), &bar(bytes, all)],
        );
    }
    match rows.is_empty() {
        true => {
            empty("There are no keys here.", "Another database may have some: the prompt has MEMORY PREFIXES for each.")
        }
        false => table(&["Prefix", "Keys#", "Memory#", ""], &rows),
    }
}

fn summary(info: &Info) -> Html {
    let bytes = |name| html("{}", &[&figures::bytes(info.number(name))]);
    let max = match info.number("maxmemory") {
        max if max > 0.0 => html("{}, {}", &[&figures::bytes(max), &info.get("maxmemory_policy")]),
        _ => html("no limit", &[]),
    };
    facts(&[
        ("Used", bytes("used_memory")),
        ("Highest", bytes("used_memory_peak")),
        ("Data", bytes("used_memory_dataset")),
        ("Resident", bytes("used_memory_rss")),
        ("maxmemory", max),
        ("Machine", bytes("total_system_memory")),
    ])
}
