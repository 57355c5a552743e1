//! The user that a client's certificate names. Knows names that the connection has verified; refuses to know certificates.

use crate::client::Client;

/// The only user there is.
const DEFAULT_USER: &str = "default";

/// Authenticates a new client as the first of `names` that is a user, without a password (`tls-auth-clients-user`). If none
/// is, nothing changes: the client authenticates like any other. Returns the user.
pub fn authenticate_by_certificate(client: &mut Client, names: &[String]) -> Option<String> {
    let user = names.iter().find(|name| *name == DEFAULT_USER)?;
    client.authenticated = true;
    Some(user.clone())
}
