//! Forgets a client whose connection has ended: its waits, watches, subscriptions and transactions.

use crate::caching;
use crate::client::Client;
use crate::clients::ClientHandle;
use crate::clients::pubsub::Subscriptions;
use crate::engine::Engine;
use crate::interactive;
use crate::sessions;
use crate::waiting;
use crate::watches::WatchList;
use std::sync::Arc;

/// How many subscriptions are removed in one slice.
const FORGET_SLICE: usize = 512;

/// What remains of a client whose connection has ended: watches and subscriptions in shared tables.
pub struct Departed {
    handle: Arc<ClientHandle>,
    /// Those of WATCH, and those of an interactive transaction.
    watches: [Option<WatchList>; 2],
    subscriptions: Subscriptions,
}

/// Removes all subscriptions and tracking of a client at once, and its watches as UNWATCH does (RESET).
pub fn forget(engine: &Engine, client: &mut Client) {
    sessions::attachments::detach_all(engine, client);
    let mut departed = depart(engine, client);
    for list in departed.watches.iter_mut().filter_map(Option::take) {
        engine.watches.remove(&engine.keyspace, list);
    }
    while forget_some(engine, &mut departed) {}
}

/// Forgets a client whose connection ends, except watches and subscriptions, of which there may be many:
/// `forget_some` removes those.
pub fn depart(engine: &Engine, client: &mut Client) -> Departed {
    if let Some(returned) = client.away.take().and_then(|ticket| ticket.abandon()).and_then(|served| served.client) {
        *client = *returned;
    }
    waiting::outcome::stop_waiting(engine, client);
    caching::stop_tracking(engine, client);
    let watches =
        [engine.watches.take(&mut client.watches, &client.handle), interactive::roll_back_in_slices(engine, client)];
    Departed { handle: client.handle.clone(), watches, subscriptions: std::mem::take(&mut client.subscriptions) }
}

/// Removes some of a departed client's watches and subscriptions. True when there are more.
pub fn forget_some(engine: &Engine, departed: &mut Departed) -> bool {
    for watches in &mut departed.watches {
        if let Some(list) = watches.take() {
            *watches = engine.watches.remove_some(&engine.keyspace, list);
        }
        if watches.is_some() {
            return true;
        }
    }
    let ended = engine.pubsub.unsubscribe_some(&mut departed.subscriptions, &departed.handle, FORGET_SLICE);
    ended == FORGET_SLICE
}
