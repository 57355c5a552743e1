//! Applies effects to the keyspace and to definitions: indexes, functions, hooks. Works alike live, on replay and on a
//! follower. Refuses to know the journal.

use crate::engine::Engine;
use crate::indexes::definitions::{define_index, set_limits};
use crate::scripts::Defined;
use keyspace::{Applied, Definable, Effect, Locked, Thresholds};

/// Applies an effect to the keyspace and, for a definition, to the live catalogue. Works alike live, on replay and
/// on a follower.
#[inline]
pub fn apply(
    engine: &Engine,
    locked: &mut Locked<'_>,
    db: usize,
    effect: &Effect<'_>,
    thresholds: &Thresholds,
) -> Applied {
    let applied = locked.apply(db, effect, thresholds);
    match *effect {
        Effect::Define { what, name, definition } => define(engine, locked, what, name, Some(definition)),
        Effect::Undefine { what, name } => define(engine, locked, what, name, None),
        Effect::Change { .. }
        | Effect::Rate { .. }
        | Effect::Delete { .. }
        | Effect::Deadline { .. }
        | Effect::Rename { .. }
        | Effect::Copy { .. }
        | Effect::Move { .. }
        | Effect::Put { .. } => {}
        Effect::FlushDb | Effect::FlushAll => engine.databases.note(db, effect),
        Effect::SwapDb { a, b } => {
            engine.databases.note(db, effect);
            engine.instants.swap(a, b);
        }
    }
    applied
}

#[cold]
fn define(engine: &Engine, locked: &mut Locked<'_>, what: Definable, name: &[u8], definition: Option<&[u8]>) {
    match what {
        Definable::Index => define_index(engine, locked, name, definition),
        Definable::Limits => set_limits(engine, name, definition),
        // Used at the next start only.
        Definable::Fork | Definable::Restore => {}
        Definable::Hook => engine.sessions.set_hook(name, definition),
        Definable::Library => {
            let Defined { went, failure } = engine.scripting.functions.define(name, definition);
            if let Some(went) = went {
                locked.add_garbage(went);
            }
            if let Some(error) = failure {
                tracing::warn!(library = %name.escape_ascii(), %error, "a library is stored but cannot be called");
            }
        }
    }
}

/// Compiles all recovered libraries after a start, and connects the hooks to their functions. Returns the errors of
/// libraries that no longer compile; these stay stored.
pub fn revive_functions(engine: &Engine) -> Vec<String> {
    let locked = engine.keyspace.lock_shard(0);
    engine.sessions.take_hooks(locked.definitions());
    let libraries = locked.definitions().libraries();
    let kept = libraries.map(|(name, code)| (name.to_vec(), code.clone())).collect();
    drop(locked);
    engine.scripting.functions.revive(kept)
}
