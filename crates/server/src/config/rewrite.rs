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
pub(crate) fn rewrite(path: &Path, settings: &[(&'static str, String)]) -> Result<()> {
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
    let new = file.to_string();
    if new == text {
        return Ok(());
    }
    replace(path, &new).with_context(|| format!("cannot replace {}", path.display()))
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

/// Replaces the text of a file and keeps its permissions: it may contain a password.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = path.with_extension("toml.new");
    let mut new = std::fs::File::create(&temporary)?;
    new.set_permissions(std::fs::metadata(path)?.permissions())?;
    std::io::Write::write_all(&mut new, text.as_bytes())?;
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
