//! How much a client may send, and leave unread. Knows the settings; refuses to know sockets.

use engine::acl::Acl;
use engine::settings::ClientClass;
use engine::{Client, Engine, Settings};
use resp::Limits;

/// The output after which a connection yields, so that a long pipeline is sent in pieces, and the size of a piece.
pub(super) const OUTPUT_PIECE: usize = 256 * 1024;
/// So many bytes of replies may wait to be sent whatever the limits are, as in Redis: they fit its static buffer.
pub(super) const OUTPUT_UNLIMITED: usize = 16 * 1024;
/// The most unsent output of a client that has not authenticated, whatever the other limits are.
const OUTPUT_BEFORE_AUTH_MAX: u64 = 1024;
/// The most input that is read ahead while a command of the client waits. Beyond that no more is read, and the end of
/// the connection is noticed by a poll of the socket.
pub(super) const INPUT_WHILE_WAITING: usize = 1024 * 1024;
/// The longest request, whatever the setting is: positions of arguments have 32 bits, and so has the length of the
/// batch in the journal.
pub(super) const REQUEST_BYTES_MAX: u64 = u32::MAX as u64 - 64 * 1024 * 1024;

/// The most output that may wait for a client; 0 = no limit.
pub(super) fn output_max(client: &Client, engine: &Engine) -> u64 {
    match is_unauthenticated(client, &engine.acl) {
        true => OUTPUT_BEFORE_AUTH_MAX,
        false => engine.settings.client_output_buffer_limit(class(client)).hard_bytes,
    }
}

/// The class whose limits apply to a client.
pub(super) fn class(client: &Client) -> ClientClass {
    if client.subscriptions.is_empty() { ClientClass::Normal } else { ClientClass::Pubsub }
}

/// True for a client that has not authenticated yet.
pub(super) fn is_unauthenticated(client: &Client, acl: &Acl) -> bool {
    !client.authenticated && !acl.default_needs_no_password()
}

/// The current limits of the protocol.
pub(super) fn request_limits(settings: &Settings) -> Limits {
    Limits {
        inline_bytes_max: settings.proto_max_inline_len() as usize,
        args_max: settings.proto_max_args() as usize,
        bulk_bytes_max: settings.proto_max_bulk_len() as usize,
        unauthenticated: false,
    }
}
