//! A request on its way to its handler, as one value. Knows the request and its client; refuses to know locks and
//! replies.

use crate::client::Client;
use crate::command::CommandRow;
use crate::context::After;
use crate::worker::Worker;
use keyspace::Key;
use resp::Request;

/// A request that is being executed. It sees the instant of its worker.
pub struct Call<'a, 'r> {
    pub worker: &'a mut Worker,
    pub client: &'a mut Client,
    pub row: &'static CommandRow,
    pub request: Request<'r>,
    /// Its only key and the key's position, for commands with one key at a fixed position; `None` until it is looked
    /// up.
    pub only_key: Option<(usize, Key<'r>)>,
    /// What the connection does afterwards.
    pub after: After,
}

impl<'a, 'r> Call<'a, 'r> {
    #[inline]
    pub fn new(
        worker: &'a mut Worker,
        client: &'a mut Client,
        row: &'static CommandRow,
        request: Request<'r>,
    ) -> Call<'a, 'r> {
        Call { worker, client, row, request, only_key: None, after: After::Continue }
    }

    /// Sets the only key, which the caller knows.
    #[inline]
    pub fn with_only_key(mut self, only_key: Option<(usize, Key<'r>)>) -> Call<'a, 'r> {
        self.only_key = only_key;
        self
    }

    /// Looks up the only key.
    #[inline]
    pub fn find_only_key(mut self) -> Call<'a, 'r> {
        self.only_key = self.row.only_key(self.request);
        self
    }
}
