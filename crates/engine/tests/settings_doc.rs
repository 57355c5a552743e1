//! Keeps docs/SETTINGS.md equal to the table of settings.

use engine::settings::{Access, Row, TABLE};
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SETTINGS.md");
const BLESS: &str = "HOLDFAST_TEST_BLESS";

#[test]
fn the_page_lists_every_setting_and_says_which_have_no_effect() {
    let rendered = page();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(PAGE, rendered).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        rendered == stored,
        "docs/SETTINGS.md differs from the table of settings.\n\
         Rewrite it with {BLESS}=1 cargo test -p engine --test settings_doc"
    );
}

fn page() -> String {
    let shown = || TABLE.iter().filter(|row| !row.hidden);
    let (without, with): (Vec<&Row>, Vec<&Row>) = shown().partition(|row| row.is_without_effect);
    format!(
        "# Settings\n\n\
         All settings, from the table in `crates/execution/src/settings/table.rs`.\n\
         [config/holdfast.toml](../config/holdfast.toml) says what each does. CONFIG SET cannot change *start only* settings,\n\
         and changes *protected* ones only where `enable-protected-configs` allows it.\n\n\
         ## Settings with an effect\n\n\
         {}\n\
         ## Accepted without effect\n\n\
         Tools written for Redis set these {}. They are accepted, checked, stored and returned by CONFIG GET, and nothing\n\
         but a line of INFO depends on them. A start logs a warning for each that differs from its default.\n\n\
         {}",
        rows(&with),
        without.len(),
        rows(&without)
    )
}

fn rows(rows: &[&Row]) -> String {
    let mut text = "| setting | default | changed by CONFIG SET |\n| --- | --- | --- |\n".to_owned();
    for row in rows {
        let alias = row.alias.map(|alias| format!(" (also `{alias}`)")).unwrap_or_default();
        let default = if row.default.is_empty() { "empty".to_owned() } else { format!("`{}`", row.default) };
        let access = match row.access {
            Access::Live => "yes",
            Access::Protected => "protected",
            Access::Pinned | Access::Immutable => "start only",
        };
        writeln!(text, "| `{}`{alias} | {default} | {access} |", row.name).unwrap();
    }
    text
}
