//! How much a client may send, and leave unread. Knows the settings; refuses to know sockets.

use engine::settings::ClientClass;
use engine::{Client, Settings};
use resp::Limits;

/// Output after which a connection yields, so that a long pipeline is sent in pieces.
pub(super) const OUTPUT_PIECE: usize = 256 * 1024;
/// So many bytes of replies may wait to be sent whatever the limits say, as in Redis: they fit its static buffer.
pub(super) const OUTPUT_UNLIMITED: usize = 16 * 1024;
/// Unsent output of a client that has yet to give the password, however generous the limits for others.
const OUTPUT_BEFORE_AUTH_MAX: u64 = 1024;
/// Input that is read ahead while a command of the client waits. With more than that no more is read, and then its end is
/// noticed by a poll of the socket.
pub(super) const INPUT_WHILE_WAITING: usize = 1024 * 1024;
/// No request is longer than this, whatever the setting says: places of arguments are counted in 32 bits, and so is the
/// length of the batch that it makes in the journal.
pub(super) const REQUEST_BYTES_MAX: u64 = u32::MAX as u64 - 64 * 1024 * 1024;

/// Most output that may wait for a client; 0 = no limit.
pub(super) fn output_max(client: &Client, settings: &Settings) -> u64 {
    match is_unauthenticated(client, settings) {
        true => OUTPUT_BEFORE_AUTH_MAX,
        false => settings.client_output_buffer_limit(class(client)).hard_bytes,
    }
}

/// The class whose limits apply to a client.
pub(super) fn class(client: &Client) -> ClientClass {
    if client.subscriptions.is_empty() { ClientClass::Normal } else { ClientClass::Pubsub }
}

/// True for a client that has yet to give the password.
pub(super) fn is_unauthenticated(client: &Client, settings: &Settings) -> bool {
    !client.authenticated && settings.requires_password()
}

/// The limits of the protocol as they are set now.
pub(super) fn request_limits(settings: &Settings) -> Limits {
    Limits {
        inline_bytes_max: settings.proto_max_inline_len() as usize,
        args_max: settings.proto_max_args() as usize,
        bulk_bytes_max: settings.proto_max_bulk_len() as usize,
        unauthenticated: false,
    }
}
