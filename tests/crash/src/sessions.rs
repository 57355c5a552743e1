//! What the load's commands on sessions do to the model. Replies are known by what the load was told; the server shows how many it keeps,
//! and says them again when a request is repeated.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::Reply;

use crate::commands::Call;
use crate::model::{Entry, State, Value, int};
use crate::request::Command;

#[derive(Clone, Default, PartialEq)]
pub(crate) struct Session {
    pub(crate) low: i64,
    /// The requests whose replies are kept, and those replies, as far as they can be known.
    pub(crate) answers: BTreeMap<i64, (Command, Option<Reply>)>,
    /// The id of the last request to the client that there was.
    pub(crate) last_id: i64,
    pub(crate) pending: BTreeMap<i64, Vec<u8>>,
}

impl Session {
    /// True when what was found is this session: of one that was found only the number of replies is known.
    pub(crate) fn is(&self, found: &Session) -> bool {
        let seen = |session: &Session| (session.low, session.answers.len(), session.last_id);
        seen(self) == seen(found) && self.pending == found.pending
    }
}

impl State {
    /// `SESSION.CALL session id LOW low command…`: the command takes effect once, and a retry gets the reply of the first time.
    pub(crate) fn session_call(&mut self, db: u32, args: &[Vec<u8>], sent_ms: i64) -> Option<Reply> {
        let (id, low, command) = (int(&args[2]), int(&args[4]), &args[5..]);
        let known = self.session_mut(db, &args[1]).answers.get(&id).cloned();
        let reply = match known {
            Some((_, reply)) => reply,
            None => {
                let reply = self.apply(db, command, sent_ms);
                self.session_mut(db, &args[1]).answers.insert(id, (command.to_vec(), reply.clone()));
                reply
            }
        };
        let session = self.session_mut(db, &args[1]);
        session.low = session.low.max(low);
        let low = session.low;
        session.answers.retain(|id, _| *id >= low);
        reply
    }

    /// Takes the replies of sessions from a state that agrees with this one: a server shows only how many there are.
    pub(crate) fn keep_answers(&mut self, known: &State) {
        for (place, entry) in &mut self.entries {
            if let Value::Session(_) = entry.value
                && let Some(known) = known.entries.get(place)
            {
                *entry = Arc::clone(known);
            }
        }
    }

    fn session_mut(&mut self, db: u32, key: &[u8]) -> &mut Session {
        match self.entry_mut(db, key) {
            Some(Entry { value: Value::Session(session), .. }) => session,
            _ => panic!("a command for a session that is not there"),
        }
    }
}

impl Call<'_> {
    /// `SESSION.OPEN ID session TTL ms`
    pub(crate) fn session_open(&mut self, rest: &[Vec<u8>]) -> Reply {
        let mut call = Call { key: &rest[0], ..self.reborrow() };
        if call.entry().is_none() {
            call.put(Entry { value: Value::Session(Session::default()), deadline: None });
        }
        Reply::Bulk(rest[0].clone())
    }

    /// `SESSION.PUSH session payload`
    pub(crate) fn session_push(&mut self, rest: &[Vec<u8>]) -> Reply {
        let session = self.state.session_mut(self.db, self.key);
        session.last_id += 1;
        session.pending.insert(session.last_id, rest[0].clone());
        Reply::Integer(session.last_id)
    }

    /// `SESSION.ACK session id`
    pub(crate) fn session_ack(&mut self, rest: &[Vec<u8>]) -> Reply {
        let (session, upto) = (self.state.session_mut(self.db, self.key), int(&rest[0]));
        let before = session.pending.len();
        session.pending.retain(|id, _| *id > upto);
        Reply::Integer((before - session.pending.len()) as i64)
    }
}
