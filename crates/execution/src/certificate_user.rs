//! The user that a client's certificate names. Knows names that the connection has verified; refuses to know certificates.

use crate::client::Client;
use crate::engine::Engine;

/// Makes a new client the first of `names` that is a user which is on, without a password (`tls-auth-clients-user`). If none
/// is, nothing changes: the client authenticates like any other. Returns the user.
pub fn authenticate_by_certificate(engine: &Engine, client: &mut Client, names: &[String]) -> Option<String> {
    let users = names.iter().filter_map(|name| engine.acl.find(name.as_bytes()));
    let user = users.into_iter().find(|user| user.rights().is_on)?;
    let name = user.shown_name();
    client.become_user(user);
    Some(name)
}
