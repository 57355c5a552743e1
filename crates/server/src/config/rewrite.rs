//! CONFIG REWRITE: updates the configuration file from the settings. Knows the file's text; refuses to know what a
//! setting does.

use super::sources::as_text;
use anyhow::{Context, Result};
use engine::Settings;
use engine::settings::TABLE;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use toml_edit::DocumentMut;

/// Updates the file from `settings`, which has all settings (CONFIG REWRITE). Lines that are still true stay unchanged
/// to the byte; other values are replaced; a setting that is missing in the file and differs from its default is added.
/// `users` become its tables [[user]].
pub(crate) fn rewrite(path: &Path, settings: &[(&'static str, String)], users: &[(String, String)]) -> Result<()> {
    // A symbolic link is kept: its target is replaced.
    let path = &std::fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut file: DocumentMut = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    let known = |name: &str| Settings::find(name.as_bytes()).map(|row| row.name);
    let values: HashMap<&str, &String> = settings.iter().map(|(name, value)| (*name, value)).collect();
    let names: Vec<String> = file.iter().map(|(name, _)| name.to_owned()).collect();
    let stated = stated(&text)?;
    for name in &names {
        let Some((row, value)) = known(name).and_then(|row| Some((row, *values.get(row)?))) else { continue };
        if stated.get(row) == Some(value) {
            continue;
        }
        // Only the value changes, so that a comment after it stays.
        if let Some(item) = file[name].as_value_mut() {
            let (decor, was_flag) = (item.decor().clone(), item.is_bool());
            *item = toml_value(value, was_flag);
            *item.decor_mut() = decor;
        }
    }
    for row in TABLE {
        let Some(value) = values.get(row.name).filter(|value| value.as_str() != row.default) else { continue };
        if !names.iter().any(|name| known(name) == Some(row.name)) {
            file[row.name] = toml_edit::value(toml_value(value, false));
        }
    }
    write_users(&mut file, users);
    let new = file.to_string();
    if new == text {
        return Ok(());
    }
    replace(path, new.as_bytes()).with_context(|| format!("cannot replace {}", path.display()))
}

/// The values that a file gives to settings, as CONFIG GET prints them: `1mb` is 1048576.
fn stated(text: &str) -> Result<HashMap<&'static str, String>> {
    let table: toml::Table = text.parse()?;
    let settings = Settings::new();
    let named = table.iter().filter_map(|(name, value)| {
        settings.load(name.as_bytes(), as_text(value).ok()?.as_bytes()).ok()?;
        Settings::find(name.as_bytes()).map(|row| row.name)
    });
    let named: HashSet<&str> = named.collect();
    Ok(settings.all().into_iter().filter(|(name, _)| named.contains(name)).collect())
}

/// Makes the tables [[user]] say the same as `users`.
fn write_users(file: &mut DocumentMut, users: &[(String, String)]) {
    let text = |table: &toml_edit::Table, name: &str| table.get(name).and_then(|item| item.as_str().map(str::to_owned));
    let stated: Vec<(String, String)> =
        file.get("user").and_then(|item| item.as_array_of_tables()).map_or_else(Vec::new, |tables| {
            tables
                .iter()
                .map(|table| (text(table, "name").unwrap_or_default(), text(table, "rules").unwrap_or_default()))
                .collect()
        });
    if stated == users {
        return;
    }
    file.remove("user");
    let mut tables = toml_edit::ArrayOfTables::new();
    for (name, rules) in users {
        let mut table = toml_edit::Table::new();
        table["name"] = toml_edit::value(name);
        table["rules"] = toml_edit::value(rules);
        tables.push(table);
    }
    if !tables.is_empty() {
        file.insert("user", toml_edit::Item::ArrayOfTables(tables));
    }
}

/// Replaces the text of a file and keeps its permissions: it may contain a password. A new file is its owner's alone.
pub(crate) fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let mut new = std::fs::File::create(&temporary)?;
    let permissions = std::fs::metadata(path).map(|metadata| metadata.permissions());
    new.set_permissions(permissions.unwrap_or_else(|_| std::os::unix::fs::PermissionsExt::from_mode(0o600)))?;
    std::io::Write::write_all(&mut new, text)?;
    new.sync_all()?;
    std::fs::rename(&temporary, path)
}

fn toml_value(value: &str, as_flag: bool) -> toml_edit::Value {
    if as_flag && (value == "yes" || value == "no") {
        return (value == "yes").into();
    }
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => number.into(),
        _ => value.into(),
    }
}
