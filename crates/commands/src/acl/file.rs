//! The file of users: one line for each, `user NAME rules…`. Knows its lines; refuses to know where it is.

use super::users;
use execution::acl::user::DEFAULT_USER;
use execution::acl::{Rights, rules};
use execution::context::ServerCx;
use execution::default_clients;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Users by name.
pub type Named = BTreeMap<Box<[u8]>, Rights>;

const NO_FILE: CommandError = CommandError::fixed(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command \
     and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the \
     Redis configuration.",
);

/// Reads lines of users. `place` names the file in errors: all of them, one after the other.
pub fn parse_users(text: &[u8], place: &str, all_channels: bool) -> Result<Named, String> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    parse_lines(lines.map(|(number, line)| (format!("{place}:{}", number + 1), line)), all_channels)
}

/// Reads users, each with the place that names it in errors and its rules.
pub fn parse_declared_users<'a>(
    users: impl Iterator<Item = (String, &'a str, &'a str)>,
    all_channels: bool,
) -> Result<Named, String> {
    let lines: Vec<(String, String)> =
        users.map(|(place, name, rules)| (place, format!("user {name} {rules}"))).collect();
    parse_lines(lines.iter().map(|(place, line)| (place.clone(), line.as_bytes())), all_channels)
}

fn parse_lines<'a>(lines: impl Iterator<Item = (String, &'a [u8])>, all_channels: bool) -> Result<Named, String> {
    // Rules name commands: the table of commands has to be there, also before there is an engine.
    crate::registry();
    let (mut named, mut errors) = (Named::new(), String::new());
    for (place, line) in lines {
        // Names and patterns may have any bytes but spaces.
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = words.collect();
        let result = match words.as_slice() {
            [] => continue,
            [word, ..] if word.starts_with(b"#") => continue,
            [b"user", name, given @ ..] => parse_user(&named, name, given, all_channels).map(|rights| (name, rights)),
            [b"user"] => Err("line should contain a username".to_owned()),
            _ => Err("line should start with user keyword".to_owned()),
        };
        match result {
            Ok((name, rights)) => drop(named.insert((*name).into(), rights)),
            Err(why) => errors.push_str(&format!("{place}: {why}. ")),
        }
    }
    if errors.is_empty() { Ok(named) } else { Err(errors) }
}

fn parse_user(named: &Named, name: &[u8], given: &[&[u8]], all_channels: bool) -> Result<Rights, String> {
    if named.contains_key(name) {
        let name = String::from_utf8_lossy(name);
        return Err(format!("WARNING: Duplicate user '{name}' found on line"));
    }
    let joined = rules::join_selectors(given).map_err(|_| "Unmatched parenthesis in selector definition".to_owned())?;
    rules::apply_all(&Rights::new(all_channels), &joined, all_channels).map_err(|bad| {
        let rule = String::from_utf8_lossy(&bad.rule).into_owned();
        format!("Error in user declaration '{rule}': {}", bad.why)
    })
}

/// Replaces all users, and takes from clients what they have lost. If the default user is not among them, it has all
/// rights and the password of `requirepass`.
pub fn load_users(engine: &Engine, mut named: Named) {
    named.entry(DEFAULT_USER.as_bytes().into()).or_insert_with(|| {
        let mut rights = Rights::everything();
        rights.set_password(engine.settings.requirepass().as_bytes());
        rights
    });
    for user in engine.acl.replace(named) {
        let is_gone = user.is_removed();
        users::follow_change(engine, &user, is_gone);
    }
    default_clients::count(engine);
    // Limits may have changed: those that are delayed look again.
    engine.clients.all().iter().for_each(|handle| handle.wake());
}

pub(super) fn load(cx: &mut ServerCx<'_>) -> CommandResult {
    let path = cx.engine.settings.aclfile();
    if path.is_empty() {
        return Err(NO_FILE);
    }
    let failed = |errors: String| {
        CommandError::said(format!(
            "ERR {errors}WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
        ))
    };
    let text = cx
        .engine
        .host
        .read_users()
        .map_err(|error| failed(format!("Error loading ACLs, opening file '{path}': {error}. ")))?;
    let named = parse_users(&text, &path, cx.engine.settings.acl_pubsub_default()).map_err(failed)?;
    let own = cx.client.user.clone();
    load_users(cx.engine, named);
    // Its own connection may have been closed with the others of its user: it still gets this reply.
    if own
        .as_ref()
        .is_some_and(|own| own.is_removed() && !cx.engine.acl.all().iter().any(|user| Arc::ptr_eq(user, own)))
    {
        cx.after = execution::context::After::Close;
    }
    cx.reply.ok();
    Ok(())
}

pub(super) fn save(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.engine.settings.aclfile().is_empty() {
        return Err(NO_FILE);
    }
    let mut text = Vec::new();
    for user in cx.engine.acl.all() {
        text.extend(users::line(&user));
        text.push(b'\n');
    }
    if let Err(error) = cx.engine.host.write_users(&text) {
        tracing::warn!(%error, "the file of users could not be written");
        return Err(CommandError::fixed(
            "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
        ));
    }
    cx.reply.ok();
    Ok(())
}
