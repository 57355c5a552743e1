//! Whether a user may run a request: by any one of its selectors, every database, the command, every key, and every
//! channel. Knows where a request has keys, channels and databases; refuses to know what the command does with them.

use super::key_right::KeyRight;
use super::selector::Selector;
use super::user::Rights;
use crate::command::{Access, CommandRow, DatabasesUsed, Flags, Searched};
use crate::denied::Object;
use crate::engine::Engine;
use keyspace::DATABASES;
use numbers::parse_i64;
use resp::Request;

/// Checks a request in the selected database `db`. The error is that of the selector that allows most of it.
pub fn check(
    engine: &Engine,
    rights: &Rights,
    row: &'static CommandRow,
    request: Request<'_>,
    db: usize,
) -> Result<(), Object> {
    let is_allowed =
        allows_only_key(engine, rights, row, request) || surely_allows(engine, &rights.selectors[0], row, request);
    if is_allowed { Ok(()) } else { check_all(engine, rights, row, request, db) }
}

/// True when a user's own rules allow a request with one key, for the usual ones: patterns of literal text and `*`, all
/// databases. False says nothing. Most requests are allowed by this.
#[inline]
pub fn allows_only_key(engine: &Engine, rights: &Rights, row: &CommandRow, request: Request<'_>) -> bool {
    // An index shows the names of all records that it is over.
    rights.surely_allowed_key(row, request).is_some_and(|key| !engine.indexes.may_have(key))
}

/// True when a user's own rules allow a request whose keys depend on it, for the usual ones: commands that reach nothing but
/// the keys that they name, patterns of literal text and `*`, all databases. False says nothing.
fn surely_allows(engine: &Engine, selector: &Selector, row: &'static CommandRow, request: Request<'_>) -> bool {
    let command = &row.command;
    let is_plain = selector.databases.is_none() && command.searches.is_none() && command.names_channels.is_none();
    if !is_plain || !selector.commands.has(row) || command.keys.are_channels() {
        return false;
    }
    row.found_keys(request).ranges.into_iter().all(|range| {
        let right = KeyRight::of(range.flags);
        range.positions().all(|at| {
            let key = request.arg(at);
            selector.surely_allows_key(key, right) && !engine.indexes.may_have(key)
        })
    })
}

/// True when a user may read a key in a database by some command, and so may learn that it is there.
pub fn may_know_key(rights: &Rights, db: usize, key: &[u8]) -> bool {
    rights.is_everything
        || rights
            .selectors
            .iter()
            .any(|selector| selector.allows_database(db) && selector.allows_key(key, KeyRight::READ))
}

#[inline(never)]
fn check_all(
    engine: &Engine,
    rights: &Rights,
    row: &'static CommandRow,
    request: Request<'_>,
    db: usize,
) -> Result<(), Object> {
    let mut refused: Option<(u8, usize, Object)> = None;
    for selector in &rights.selectors {
        let checked =
            check_databases(selector, row, request, db).and_then(|()| check_selector(engine, selector, row, request));
        match checked {
            Ok(()) => return Ok(()),
            Err((depth, at, object)) => {
                if refused.as_ref().is_none_or(|(known, known_at, _)| (depth, at) > (*known, *known_at)) {
                    refused = Some((depth, at, object));
                }
            }
        }
    }
    Err(refused.expect("a user has a selector").2)
}

/// Checks the databases that a request uses.
fn check_databases(
    selector: &Selector,
    row: &'static CommandRow,
    request: Request<'_>,
    db: usize,
) -> Result<(), (u8, usize, Object)> {
    if selector.databases.is_none() {
        return Ok(());
    }
    let command = || (0, 0, Object::Database(request.arg(0).to_vec()));
    let named = match row.command.databases {
        None if !row.uses_database() || selector.allows_database(db) => return Ok(()),
        Some(DatabasesUsed::All) if (0..DATABASES).all(|db| selector.allows_database(db)) => return Ok(()),
        None | Some(DatabasesUsed::All) => return Err(command()),
        Some(DatabasesUsed::SelectedAndNamed(_)) if !selector.allows_database(db) => return Err(command()),
        Some(DatabasesUsed::SelectedAndNamed(named) | DatabasesUsed::Named(named)) => named(request),
    };
    for at in named.into_iter().filter(|at| *at < request.len()) {
        // What is no database is the command's to refuse.
        let db = parse_i64(request.arg(at)).and_then(|db| usize::try_from(db).ok()).filter(|db| *db < DATABASES);
        if db.is_some_and(|db| !selector.allows_database(db)) {
            return Err((0, at, Object::Database(request.arg(at).to_vec())));
        }
    }
    Ok(())
}

/// Checks a request by one selector. The error has how far it came: what was refused, and at which argument.
fn check_selector(
    engine: &Engine,
    selector: &Selector,
    row: &'static CommandRow,
    request: Request<'_>,
) -> Result<(), (u8, usize, Object)> {
    let first_arg = (request.len() > row.name_args).then(|| request.arg(row.name_args));
    if !row.command.flags.has(Flags::NO_AUTH) && !selector.allows_command(row, first_arg) {
        return Err((1, 0, Object::Command(row.full_name.clone())));
    }
    if !selector.all_keys {
        check_keys(engine, selector, row, request)?;
    }
    if !(selector.all_keys && selector.all_channels)
        && let Some(searches) = row.command.searches
    {
        searches(engine, request).into_iter().try_for_each(|searched| check_search(selector, searched))?;
    }
    if !selector.all_channels
        && let Some(channels) = row.command.names_channels
    {
        let last = if channels.is_one { channels.first + 1 } else { request.len() };
        for at in channels.first..last.min(request.len()) {
            let name = request.arg(at);
            if !selector.allows_channel(name, channels.are_patterns) {
                return Err((4, at, Object::Channel(name.to_vec())));
            }
        }
    }
    Ok(())
}

fn check_keys(
    engine: &Engine,
    selector: &Selector,
    row: &'static CommandRow,
    request: Request<'_>,
) -> Result<(), (u8, usize, Object)> {
    if !row.command.keys.are_channels() {
        for range in row.found_keys(request).ranges {
            let right = KeyRight::of(range.flags);
            for at in range.positions() {
                let key = request.arg(at);
                if !selector.allows_key(key, right) {
                    return Err((2, at, Object::Key(key.to_vec())));
                }
                // An index shows the names of all records that it is over.
                for prefix in engine.indexes.prefixes_of(key) {
                    check_search(selector, Searched::Prefix { prefix, access: Access::Read })?;
                }
            }
        }
    }
    Ok(())
}

/// Checks what a request reaches besides the keys that it names.
fn check_search(selector: &Selector, searched: Searched) -> Result<(), (u8, usize, Object)> {
    let right = |access| match access {
        Access::Read => KeyRight::READ,
        Access::Write => KeyRight::WRITE,
        Access::Change => KeyRight::all(),
    };
    match searched {
        Searched::Key { name, access } if !selector.allows_key(&name, right(access)) => Err((2, 0, Object::Key(name))),
        Searched::Prefix { prefix, access } if !selector.allows_prefix(&prefix, right(access)) => {
            Err((2, 0, Object::Prefix(prefix)))
        }
        Searched::Channel(name) if !selector.allows_channel(&name, false) => Err((4, 0, Object::Channel(name))),
        Searched::Anything(error) if !selector.allows_prefix(b"", KeyRight::READ) => {
            Err((2, 0, Object::Anything(error)))
        }
        _ => Ok(()),
    }
}
