//! Who may read metrics: the users that may run INFO. A request without credentials is the default user, as a client is that
//! has not authenticated. Knows HTTP's Basic credentials; refuses to know connections.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::Engine;
use engine::acl::{Context, User, check};
use engine::command::registry;
use resp::OwnedRequest;
use std::net::SocketAddr;
use std::sync::Arc;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It has no credentials, or wrong ones.
    Unauthorized,
    /// Its user may not run INFO.
    Forbidden,
}

/// Checks a request with this Authorization header. As in `protected-mode`, other machines need a password even if the
/// default user has lost its own since the start, unless `admin-allow-remote` is set.
pub(crate) fn pass(engine: &Engine, authorization: Option<&[u8]>, peer: SocketAddr) -> Result<(), Refusal> {
    let user = match authorization {
        None if engine.acl.default_needs_no_password() => engine.acl.default_user().clone(),
        None => return Err(Refusal::Unauthorized),
        Some(header) => {
            let (name, password) = basic(header).ok_or(Refusal::Unauthorized)?;
            engine.acl.authenticate(&name, &password).ok_or_else(|| {
                note_wrong_password(engine, &name, peer);
                Refusal::Unauthorized
            })?
        }
    };
    if user.rights().no_password && needs_password(peer, engine.settings.admin_allow_remote()) {
        return Err(Refusal::Unauthorized);
    }
    if may_run_info(engine, &user) { Ok(()) } else { Err(Refusal::Forbidden) }
}

/// True when a client at this address has to prove who it is.
fn needs_password(peer: SocketAddr, allow_remote: bool) -> bool {
    !allow_remote && !peer.ip().to_canonical().is_loopback()
}

fn may_run_info(engine: &Engine, user: &Arc<User>) -> bool {
    let row = registry().find(b"info").expect("the command exists");
    let request: OwnedRequest = std::iter::once(&b"INFO"[..]).collect();
    let rights = user.rights();
    rights.is_everything || check::check(engine, &rights, row, request.as_request(), 0).is_ok()
}

/// The user and the password of a header.
fn basic(header: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = header.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let decoded = BASE64_STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some((decoded[..colon].to_vec(), decoded[colon + 1..].to_vec()))
}

/// Notes the attempt in ACL LOG.
fn note_wrong_password(engine: &Engine, name: &[u8], peer: SocketAddr) {
    let (now_ms, len_max) = (engine.clock.unix_us() / 1000, engine.settings.acllog_max_len() as usize);
    let client = format!("addr={peer} cmd=/metrics");
    engine.acl.note_wrong_password(Context::TopLevel, name, client, now_ms, len_max);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_other_machines_need_a_password() {
        for (peer, is_far) in [
            ("127.0.0.1:1", false),
            ("127.8.0.1:1", false),
            ("[::1]:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("192.0.2.1:1", true),
            ("10.0.0.1:1", true),
            ("[::ffff:192.0.2.1]:1", true),
            ("[2001:db8::1]:1", true),
        ] {
            let peer = peer.parse().unwrap();
            assert_eq!(needs_password(peer, false), is_far, "{peer}");
            assert!(!needs_password(peer, true), "{peer}");
        }
    }

    #[test]
    fn basic_credentials() {
        let of =
            |header: &str| basic(header.as_bytes()).map(|(name, password)| [name, password].map(String::from_utf8));
        let found = |name: &str, password: &str| Some([Ok(name.to_owned()), Ok(password.to_owned())]);
        assert_eq!(of("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), found("Aladdin", "open sesame"));
        assert_eq!(of("basic YTpiOmM="), found("a", "b:c"), "a password may have colons");
        assert_eq!(of("Basic  Og== "), found("", ""));
        for header in ["", "Basic", "Basic ", "Bearer YTpi", "Basic YTpi!", "Basic YWI=", "Basic YTp"] {
            assert_eq!(of(header), None, "{header}");
        }
    }
}
