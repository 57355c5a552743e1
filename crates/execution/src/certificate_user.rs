//! The user that a client's certificate names. Knows names that the connection has verified; refuses to know certificates.

use crate::client::Client;
use crate::engine::Engine;
use crate::error::CommandError;

/// Makes a new client the first of `names` that is a user which is on, without a password (`tls-auth-clients-user`). If none
/// is, the first is noted in ACL LOG, and the client is the default user, and authenticates like any other. Returns the user;
/// an error if the user has as many clients as it may have: the connection is refused.
pub fn authenticate_by_certificate(
    engine: &Engine,
    client: &mut Client,
    names: &[String],
) -> Result<Option<String>, CommandError> {
    let users = names.iter().filter_map(|name| engine.acl.find(name.as_bytes()));
    let Some(user) = users.into_iter().find(|user| user.rights().is_on) else {
        if let Some(name) = names.first() {
            note_unusable(engine, client, name);
        }
        return client.begin_as_default(&engine.acl).map(|()| None);
    };
    let name = user.shown_name();
    client.become_user(user)?;
    Ok(Some(name))
}

fn note_unusable(engine: &Engine, client: &Client, name: &str) {
    let (line, now_ms) = ((engine.procedures.describe_client)(engine, &client.handle), engine.clock.unix_us() / 1000);
    let len_max = engine.settings.acllog_max_len() as usize;
    engine.acl.note_wrong_certificate(name.as_bytes(), line, now_ms, len_max);
}
