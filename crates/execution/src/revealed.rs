//! Makes replies wait for the journal that reveal state found without locks. Refuses to know that state.

use crate::conditions;
use crate::context::ScriptCx;
use crate::error::CommandResult;

/// Makes a reply that reveals definitions wait for the batch that has last changed one.
///
/// IMPORTANT: called after the lookup. That finds a change before its batch is appended; both happen under all locks,
/// so this takes one of them. An error while a long script holds it: the script may have made the change.
pub fn await_definitions(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    // In a transaction or script, the reply depends on all that is locked already.
    if cx.held.is_none() {
        let first = cx.engine.keyspace.lock_shard_unless_busy(0);
        let changed_by = first.ok_or_else(|| conditions::busy(cx.engine))?.changed_by();
        cx.client.depends_on = cx.client.depends_on.max(changed_by);
    }
    Ok(())
}
