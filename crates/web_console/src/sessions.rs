//! Who has signed in. A session is a random name in a cookie, a user, and a second random name that every form must have. It
//! ends when it is not used, when it is old, and with its user. Refuses to know HTTP and passwords.

use engine::acl::User;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most sessions at a time. The one that was not used for longest makes room.
pub(crate) const SESSIONS_MAX: usize = 64;
/// Those of one user: nobody ends the sessions of others by signing in often.
pub(crate) const SESSIONS_PER_USER_MAX: usize = 8;
/// A session ends that is not used for so long.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// A session ends at that age, however much it is used.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// The most notices that wait for the next page.
const NOTICES_MAX: usize = 8;

/// 32 random bytes as hexadecimal digits.
pub(crate) fn random_name() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that does not depend on where the two differ.
pub(crate) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differ = |sum: u8, (one, other): (&u8, &u8)| std::hint::black_box(sum | (one ^ other));
    one.len() == other.len() && one.iter().zip(other).fold(0, differ) == 0
}

/// What a request may know of its session.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) user: Arc<User>,
    /// The name that forms must have.
    pub(crate) token: Arc<str>,
}

/// What a page tells after an action.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notice {
    pub(crate) is_good: bool,
    pub(crate) text: String,
}

struct Entry {
    session: Session,
    began: Instant,
    used: Instant,
    /// The passwords that its user had then. With others, or when it is off, the session ends.
    passwords: (bool, Vec<[u8; 32]>),
    notices: Vec<Notice>,
}

/// All sessions, by the name in the cookie. Its hash is keyed: how long a search takes tells nothing of names.
#[derive(Default)]
pub(crate) struct Sessions(HashMap<String, Entry>);

impl Sessions {
    /// Begins a session; its name. `None` if the system has no random numbers.
    pub(crate) fn begin(&mut self, user: Arc<User>, now: Instant) -> Option<String> {
        self.0.retain(|_, entry| entry.lives(now));
        let own = self.0.values().filter(|entry| Arc::ptr_eq(&entry.session.user, &user)).count();
        let is_candidate = |entry: &Entry| own < SESSIONS_PER_USER_MAX || Arc::ptr_eq(&entry.session.user, &user);
        if (own >= SESSIONS_PER_USER_MAX || self.0.len() >= SESSIONS_MAX)
            && let Some(oldest) = self
                .0
                .iter()
                .filter(|(_, entry)| is_candidate(entry))
                .min_by_key(|(_, entry)| entry.used)
                .map(|(name, _)| name.clone())
        {
            self.0.remove(&oldest);
        }
        let (name, token) = (random_name()?, random_name()?.into());
        let passwords = passwords_of(&user);
        let session = Session { user, token };
        self.0.insert(name.clone(), Entry { session, began: now, used: now, passwords, notices: Vec::new() });
        Some(name)
    }

    /// The session of that name. `is_use`: a person asks, not a page that renews itself.
    pub(crate) fn find(&mut self, name: &[u8], now: Instant, is_use: bool) -> Option<Session> {
        let name = std::str::from_utf8(name).ok()?;
        let entry = self.0.get_mut(name)?;
        if !entry.lives(now) {
            self.0.remove(name);
            return None;
        }
        if is_use {
            entry.used = now;
        }
        Some(entry.session.clone())
    }

    pub(crate) fn end(&mut self, name: &[u8]) {
        if let Ok(name) = std::str::from_utf8(name) {
            self.0.remove(name);
        }
    }

    /// Keeps a notice for the next page of the session with this token.
    pub(crate) fn note(&mut self, token: &str, notice: Notice) {
        if let Some(entry) = self.0.values_mut().find(|entry| &*entry.session.token == token)
            && entry.notices.len() < NOTICES_MAX
        {
            entry.notices.push(notice);
        }
    }

    pub(crate) fn take_notices(&mut self, token: &str) -> Vec<Notice> {
        let entry = self.0.values_mut().find(|entry| &*entry.session.token == token);
        entry.map(|entry| std::mem::take(&mut entry.notices)).unwrap_or_default()
    }
}

impl Entry {
    fn lives(&self, now: Instant) -> bool {
        let user = &self.session.user;
        now.duration_since(self.began) < AGE_MAX
            && now.duration_since(self.used) < IDLE_MAX
            && !user.is_removed()
            && user.rights().is_on
            && passwords_of(user) == self.passwords
    }
}

fn passwords_of(user: &User) -> (bool, Vec<[u8; 32]>) {
    let rights = user.rights();
    (rights.no_password, rights.passwords.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::acl::Acl;

    /// No users. Rights are sets of commands, so these are listed first.
    fn acl() -> Acl {
        engine::command::registry();
        Acl::default()
    }

    fn user(acl: &Acl) -> Arc<User> {
        acl.set(b"alice", &[b"on".to_vec(), b">secret".to_vec()], true).ok().unwrap()
    }

    #[test]
    fn a_session_ends_when_it_is_not_used_and_when_it_is_old() {
        let (acl, mut sessions, now) = (acl(), Sessions::default(), Instant::now());
        let name = sessions.begin(user(&acl), now).unwrap();
        let after = |wait| now + wait;
        let almost = IDLE_MAX - Duration::from_secs(1);
        assert!(sessions.find(name.as_bytes(), after(almost), true).is_some());
        assert!(sessions.find(name.as_bytes(), after(almost * 2), false).is_some(), "a page that renews itself");
        assert!(sessions.find(name.as_bytes(), after(almost * 2 + Duration::from_secs(2)), true).is_none());
        let name = sessions.begin(user(&acl), now).unwrap();
        let mut at = Duration::ZERO;
        while at < AGE_MAX {
            assert!(sessions.find(name.as_bytes(), after(at), true).is_some(), "{at:?}");
            at += almost;
        }
        assert!(sessions.find(name.as_bytes(), after(at), true).is_none());
    }

    #[test]
    fn a_session_ends_with_its_user() {
        type Change = (&'static str, fn(&Acl));
        let changes: [Change; 4] = [
            ("off", |acl| drop(acl.set(b"alice", &[b"off".to_vec()], true))),
            ("another password", |acl| drop(acl.set(b"alice", &[b"resetpass".to_vec(), b">new".to_vec()], true))),
            ("removed", |acl| drop(acl.remove(b"alice"))),
            ("made anew", |acl| {
                acl.remove(b"alice");
                user(acl);
            }),
        ];
        for (what, change) in changes {
            let (acl, mut sessions, now) = (acl(), Sessions::default(), Instant::now());
            let name = sessions.begin(user(&acl), now).unwrap();
            assert!(sessions.find(name.as_bytes(), now, true).is_some());
            change(&acl);
            assert!(sessions.find(name.as_bytes(), now, true).is_none(), "{what}");
        }
    }

    #[test]
    fn there_are_not_too_many() {
        let (acl, mut sessions, now) = (acl(), Sessions::default(), Instant::now());
        let first = sessions.begin(user(&acl), now).unwrap();
        for number in 1..=SESSIONS_MAX as u64 {
            let name = format!("user{}", number / SESSIONS_PER_USER_MAX as u64);
            let other = acl.find(name.as_bytes());
            let other = other.unwrap_or_else(|| acl.set(name.as_bytes(), &[b"on".to_vec()], true).ok().unwrap());
            sessions.begin(other, now + Duration::from_secs(number)).unwrap();
        }
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
        assert!(sessions.find(first.as_bytes(), now, true).is_none(), "the one that was not used for longest");
    }

    #[test]
    fn a_user_that_signs_in_often_ends_its_own_sessions_alone() {
        let (acl, mut sessions, now) = (acl(), Sessions::default(), Instant::now());
        let bob = acl.set(b"bob", &[b"on".to_vec()], true).ok().unwrap();
        let other = sessions.begin(bob, now).unwrap();
        let alice = user(&acl);
        let first = sessions.begin(alice.clone(), now).unwrap();
        for number in 1..=SESSIONS_MAX as u64 {
            sessions.begin(alice.clone(), now + Duration::from_secs(number)).unwrap();
        }
        assert_eq!(sessions.0.len(), SESSIONS_PER_USER_MAX + 1);
        assert!(sessions.find(other.as_bytes(), now, true).is_some());
        assert!(sessions.find(first.as_bytes(), now, true).is_none());
    }

    #[test]
    fn names_are_long_and_different() {
        let (acl, mut sessions, now) = (acl(), Sessions::default(), Instant::now());
        let name = sessions.begin(user(&acl), now).unwrap();
        let session = sessions.find(name.as_bytes(), now, true).unwrap();
        assert_eq!((name.len(), session.token.len()), (64, 64));
        assert_ne!(name, *session.token);
        for wrong in [&b""[..], b"x", &name.as_bytes()[1..], session.token.as_bytes(), b"\xff"] {
            assert!(sessions.find(wrong, now, true).is_none());
        }
    }

    #[test]
    fn notices_are_told_once_and_to_their_session() {
        let (acl, mut sessions, now) = (acl(), Sessions::default(), Instant::now());
        let token = |sessions: &mut Sessions| {
            let name = sessions.begin(user(&acl), now).unwrap();
            sessions.find(name.as_bytes(), now, true).unwrap().token
        };
        let (one, other) = (token(&mut sessions), token(&mut sessions));
        for _ in 0..100 {
            sessions.note(&one, Notice { is_good: true, text: "done".into() });
        }
        assert_eq!(sessions.take_notices(&other), []);
        assert_eq!(sessions.take_notices(&one).len(), NOTICES_MAX);
        assert_eq!(sessions.take_notices(&one), []);
    }

    #[test]
    fn comparison() {
        assert!(is_equal(b"ab", b"ab") && is_equal(b"", b""));
        assert!(!is_equal(b"ab", b"ac") && !is_equal(b"ab", b"abc") && !is_equal(b"", b"a"));
    }
}
