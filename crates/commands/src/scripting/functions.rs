//! FUNCTION, FCALL and FCALL_RO. Libraries are stored in `execution::scripts`.

use super::eval::{not_killed, pass_key_count, refuse, run};
use algorithms::glob::Pattern;
use execution::acl::Context;
use execution::args::is_word;
use execution::client::Client;
use execution::commit;
use execution::conditions;
use execution::context::{After, ScriptCx, ServerCx, StartThread};
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::gates;
use execution::revealed;
use execution::scripts;
use execution::scripts::run::LUA_STATE_BYTES_KEPT;
use execution::scripts::{Catalogue, Change, Library, ProgramKind};
use execution::sessions::HookEvent;
use execution::view::View;
use formats::payload;
use keyspace::{Definable, Effect, Locked};
use lua::ScriptFlags;
use numbers::parse_i64;
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) fn fcall(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    call(cx, false)
}

pub(super) fn fcall_ro(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    call(cx, true)
}

fn call(cx: &mut ScriptCx<'_, '_>, read_only: bool) -> CommandResult {
    let name = cx.args.bytes()?;
    let Some(program) = cx.engine.scripting.functions.find(name) else {
        revealed::await_definitions(cx)?;
        return refuse(cx, CommandError::fixed("ERR Function not found"));
    };
    let Some(count) = parse_i64(cx.args.bytes()?) else {
        return refuse(cx, CommandError::fixed("ERR Bad number of keys provided"));
    };
    let is_part = cx.held.is_some();
    let ran = match pass_key_count(cx, count) {
        Ok(count) => run(cx, &program, name, count, read_only),
        Err(error) => refuse(cx, error),
    };
    match ran {
        // It reveals the flags of the function.
        Err(error) if !is_part && error != CommandError::AwaitsScript => {
            revealed::await_definitions(cx)?;
            Err(error)
        }
        result => result,
    }
}

pub(super) fn of_function(engine: &Engine, name: &[u8]) -> Option<ScriptFlags> {
    engine.scripting.functions.find(name)?.flags()
}

pub(super) fn load(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    if begins_elsewhere(cx) {
        return Ok(());
    }
    let mut replace = false;
    while cx.args.left() > 1 {
        let option = cx.args.bytes()?;
        if !is_word(option, "REPLACE") {
            let option = String::from_utf8_lossy(option).into_owned();
            return Err(CommandError::said(format!("ERR Unknown option given: {option}")));
        }
        replace = true;
    }
    let code = cx.args.bytes()?;
    let library = understand(cx, code)?;
    change(cx, |before| {
        if !replace && before.library(library.name.as_bytes()).is_some() {
            return Err(refused(format!("Library '{}' already exists", library.name)));
        }
        match before.clash(&library) {
            Some(name) => Err(refused(format!("Function {name} already exists"))),
            None => Ok(vec![Change::Set(library.clone())]),
        }
    })?;
    cx.reply.bulk(library.name.as_bytes());
    Ok(())
}

/// Moves the request to the script thread, which serves no clients: the code of a library may take long, or never end.
/// True when it moves.
fn begins_elsewhere(cx: &mut ScriptCx<'_, '_>) -> bool {
    let must_detach = cx.held.is_none() && cx.worker.must_detach();
    if must_detach {
        cx.after = After::Detach(StartThread::OnScriptThread);
    }
    must_detach
}

pub(super) fn delete(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let name = cx.args.bytes()?;
    change(cx, |before| match before.library(name) {
        Some(library) => Ok(vec![Change::Delete(library.name.clone())]),
        None if name == Library::built_in().name.as_bytes() => {
            Err(refused(format!("Library '{}' is part of the server and stays", Library::built_in().name)))
        }
        None => Err(CommandError::fixed("ERR Library not found")),
    })?;
    cx.reply.ok();
    Ok(())
}

pub(super) fn flush(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    if cx.args.left() > 1 {
        return Err(wrong_count(cx));
    }
    match cx.args.try_next() {
        Some(word) if !is_word(word, "SYNC") && !is_word(word, "ASYNC") => {
            return Err(CommandError::fixed("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
        }
        _ => {}
    }
    change(cx, |before| Ok(all_deleted(before)))?;
    cx.reply.ok();
    Ok(())
}

/// What happens to existing libraries when others are restored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Append,
    Replace,
    Flush,
}

pub(super) fn restore(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    if begins_elsewhere(cx) {
        return Ok(());
    }
    if cx.args.left() > 2 {
        return Err(wrong_count(cx));
    }
    let payload = cx.args.bytes()?;
    let policy = match cx.args.try_next() {
        None => Policy::Append,
        Some(word) if is_word(word, "APPEND") => Policy::Append,
        Some(word) if is_word(word, "REPLACE") => Policy::Replace,
        Some(word) if is_word(word, "FLUSH") => Policy::Flush,
        Some(_) => {
            return Err(CommandError::fixed(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let bytes_max = usize::try_from(cx.engine.settings.proto_max_bulk_len()).unwrap_or(usize::MAX);
    let codes = payload::decode_functions(payload, bytes_max).map_err(|error| refused(error.to_string()))?;
    // Restore into an empty catalogue first: errors in the payload are reported before conflicts with loaded libraries.
    let (mut restored, mut libraries) = (Catalogue::default(), Vec::new());
    for code in codes {
        let library = understand(cx, &code)?;
        if restored.library(library.name.as_bytes()).is_some() {
            return Err(refused(format!("Library '{}' already exists", library.name)));
        }
        if let Some(name) = restored.clash(&library) {
            return Err(refused(format!("Function {name} already exists")));
        }
        restored.apply(Change::Set(library.clone()));
        libraries.push(library);
    }
    change(cx, |before| {
        let mut changes = if policy == Policy::Flush { all_deleted(before) } else { Vec::new() };
        let taken = libraries.iter().find(|library| before.library(library.name.as_bytes()).is_some());
        if let Some(library) = taken
            && policy == Policy::Append
        {
            return Err(refused(format!("Library {} already exists", library.name)));
        }
        // Libraries that will be replaced cannot conflict.
        let going = libraries.iter().map(|library| Change::Delete(library.name.clone()));
        let mut left = before.clone();
        changes.iter().cloned().chain(going).for_each(|change| drop(left.apply(change)));
        if let Some(name) = libraries.iter().find_map(|library| left.clash(library)) {
            return Err(refused(format!("Function {name} already exists")));
        }
        changes.extend(libraries.iter().cloned().map(Change::Set));
        Ok(changes)
    })?;
    cx.reply.ok();
    Ok(())
}

/// Loads a library into the worker's Lua state.
fn understand(cx: &mut ScriptCx<'_, '_>, code: &[u8]) -> Result<Arc<Library>, CommandError> {
    let lua = cx.worker.lua();
    let library = lua.understand(code).map_err(refused);
    // The next call loads again what it needs.
    if lua.state.footprint_bytes() > LUA_STATE_BYTES_KEPT {
        scripts::tidy::free_lua(cx.engine, cx.worker);
    }
    library
}

fn all_deleted(before: &Catalogue) -> Vec<Change> {
    before.libraries().map(|library| Change::Delete(library.name.clone())).collect()
}

fn refused(text: String) -> CommandError {
    CommandError::said(format!("ERR {text}"))
}

fn wrong_count(cx: &ScriptCx<'_, '_>) -> CommandError {
    let name = String::from_utf8_lossy(cx.args.request().arg(1)).into_owned();
    refused(format!("unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP."))
}

/// Refuses to change a function that a hook of sessions calls, if the user may not set hooks: a hook runs with all
/// rights when a session expires.
fn pass_hooks(engine: &Engine, client: &Client, before: &Catalogue, changes: &[Change]) -> CommandResult {
    let hooks: SmallVec<[Arc<[u8]>; 2]> =
        HookEvent::ALL.into_iter().filter_map(|event| engine.sessions.hook(event)).collect();
    let has_hook = |library: &Library| {
        let mut names = library.functions.iter().map(|function| function.info.name.as_bytes());
        names.any(|name| hooks.iter().any(|hook| **hook == *name))
    };
    let touches_hook = |change: &Change| match change {
        Change::Set(library) => {
            has_hook(library) || before.library(library.name.as_bytes()).is_some_and(|known| has_hook(known))
        }
        Change::Delete(name) => before.library(name.as_bytes()).is_some_and(|known| has_hook(known)),
    };
    match !hooks.is_empty() && changes.iter().any(touches_hook) {
        true => gates::pass_command(engine, client, "session.hook")
            .inspect_err(|denied| gates::note_if_denied(engine, client, denied, Context::TopLevel)),
        false => Ok(()),
    }
}

/// Changes libraries while everything is locked: all changes, or none.
fn change(
    cx: &mut ScriptCx<'_, '_>,
    decide: impl FnOnce(&Catalogue) -> Result<Vec<Change>, CommandError>,
) -> CommandResult {
    let (engine, worker) = (cx.engine, &mut *cx.worker);
    let mut own = match cx.held {
        Some(_) => None,
        None => Some(engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?),
    };
    let lent = cx.held.as_mut().map(Locked::lend).or(own.as_mut().map(Locked::lend));
    let mut locked = lent.expect("one of them is there");
    // An error reveals earlier changes, and so does a change without effect.
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    let catalogue = engine.scripting.functions.catalogue();
    let changes = decide(&catalogue)?;
    pass_hooks(engine, cx.client, &catalogue, &changes)?;
    let usage = engine.usage(&mut worker.random);
    let view = View::new(locked.lend(), cx.client.db, worker.now_ms, usage, &worker.metrics.stats);
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    let what = Definable::Library;
    for change in &changes {
        match change {
            Change::Set(library) => {
                engine.scripting.functions.expect(library);
                keys.record(&Effect::Define { what, name: library.name.as_bytes(), definition: &library.code })
            }
            Change::Delete(name) => keys.record(&Effect::Undefine { what, name: name.as_bytes() }),
        };
    }
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, Some(cx.client), &mut locked);
    engine.free(garbage);
    Ok(())
}

pub(super) fn dump(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let catalogue = cx.engine.scripting.functions.catalogue();
    revealed::await_definitions(cx)?;
    let payload = payload::encode_functions(catalogue.libraries().map(|library| &*library.code));
    cx.reply.bulk(&payload);
    Ok(())
}

pub(super) fn list(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let (mut with_code, mut pattern) = (false, None);
    while let Some(option) = cx.args.try_next() {
        if !with_code && is_word(option, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && is_word(option, "LIBRARYNAME") {
            let given = cx.args.try_next();
            pattern = Some(given.ok_or(CommandError::fixed("ERR library name argument was not given"))?);
        } else {
            return Err(refused(format!("Unknown argument {}", String::from_utf8_lossy(option))));
        }
    }
    let catalogue = cx.engine.scripting.functions.catalogue();
    revealed::await_definitions(cx)?;
    let shown: Vec<&Arc<Library>> = match pattern {
        None => catalogue.libraries().collect(),
        Some(pattern) => {
            let matching = Pattern::new(pattern, true);
            let loaded = catalogue.libraries().filter(|library| matching.matches(library.name.as_bytes()));
            // The built-in library is listed only when the request names it: other lists show the loaded libraries.
            let built_in = Library::built_in();
            let name = built_in.name.as_bytes();
            let is_asked_for = pattern.eq_ignore_ascii_case(name) && catalogue.library(name).is_none();
            loaded.chain(is_asked_for.then_some(built_in)).collect()
        }
    };
    cx.reply.array(shown.len());
    for library in shown {
        describe(cx, library, with_code);
    }
    Ok(())
}

fn describe(cx: &mut ScriptCx<'_, '_>, library: &Library, with_code: bool) {
    let reply = &mut cx.reply;
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(library.name.as_bytes());
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        let info = &function.info;
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(info.name.as_bytes());
        reply.bulk(b"description");
        match &info.description {
            Some(description) => reply.bulk(description),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        reply.set(info.flags.names().count());
        info.flags.names().for_each(|name| reply.simple(name));
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

pub(super) fn stats(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.engine.scripting.long.kind() == Some(ProgramKind::Script) {
        return Err(CommandError::Busy);
    }
    let (running, catalogue) = (
        cx.engine.scripting.long.running_function(cx.engine.clock.monotonic_ns()),
        cx.engine.scripting.functions.catalogue(),
    );
    let reply = &mut cx.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        None => reply.null(),
        Some(running) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&running.name);
            reply.bulk(b"command");
            reply.array(running.command.len());
            running.command.iter().for_each(|arg| reply.bulk(arg));
            reply.bulk(b"duration_ms");
            reply.integer(running.took_ms as i64);
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(catalogue.library_count() as i64);
    reply.bulk(b"functions_count");
    reply.integer(catalogue.function_count() as i64);
    Ok(())
}

pub(super) fn kill(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.scripting.long.kill(ProgramKind::Function).map_err(|why| not_killed(why, CommandError::Busy))?;
    cx.reply.ok();
    Ok(())
}
