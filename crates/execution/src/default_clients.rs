//! Clients that become the default user without asking for it, because it no longer needs a password. Refuses to know why
//! it does not.

use crate::clients::Peer;
use crate::engine::Engine;

/// Counts clients among those of the default user that had not authenticated, if they need not. Called after a change of
/// users. The limit of clients does not apply: they were there before.
pub fn count(engine: &Engine) {
    if engine.acl.default_needs_no_password() {
        let account = &engine.acl.default_user().account;
        let clients = engine.clients.all().into_iter().filter(|handle| handle.peer == Peer::Client);
        clients.for_each(|handle| handle.enter_if_none(account));
    }
}
