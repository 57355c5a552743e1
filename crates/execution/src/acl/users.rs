//! All users of a server, by name; changes of their rights, and what was refused. Knows nothing of files.

use super::log::{AclLog, Context, Entry, Reason};
use super::rules;
use super::user::{DEFAULT_USER, Rights, User};
use crate::clients::Account;
use crate::clients::account::limits::Limit;
use crate::denied::Object;
use arc_swap::ArcSwap;
use locks::{Mutex, rank};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// So much of a name is kept in the log.
const NAME_BYTES_MAX: usize = 1024;

type ByName = BTreeMap<Box<[u8]>, Arc<User>>;

/// The users of a server.
pub struct Acl {
    users: ArcSwap<ByName>,
    default: Arc<User>,
    /// What clients take that have not authenticated. It has no limits: those would be the server's own.
    nobody: Arc<Account>,
    /// Grows with each change of any user. A client that was found to have all rights keeps the number, and is not
    /// checked while it is the same.
    generation: AtomicU64,
    /// A user has a limit of memory.
    limits_memory: AtomicBool,
    /// Held while users change.
    changing: Mutex<(), { rank::ACL_USERS }>,
    log: Mutex<AclLog, { rank::ACL_LOG }>,
    /// For INFO: what was refused, by reason.
    pub denied: [AtomicU64; Reason::COUNT],
}

impl Default for Acl {
    fn default() -> Acl {
        let default = Arc::new(User::new(DEFAULT_USER.as_bytes(), Rights::everything()));
        let users = BTreeMap::from([(default.name.clone(), default.clone())]);
        Acl {
            users: ArcSwap::from_pointee(users),
            default,
            nobody: Arc::default(),
            generation: AtomicU64::new(1),
            limits_memory: AtomicBool::new(false),
            changing: Mutex::default(),
            log: Mutex::default(),
            denied: Default::default(),
        }
    }
}

impl Acl {
    /// Changes when any user does. Never 0.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// False while no user was ever changed.
    pub fn has_changed(&self) -> bool {
        self.generation() > 1
    }

    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// The account of clients that have not authenticated.
    pub fn nobody(&self) -> &Arc<Account> {
        &self.nobody
    }

    /// True when a new connection is the default user without a password.
    pub fn default_needs_no_password(&self) -> bool {
        let rights = self.default.rights();
        rights.is_on && rights.no_password
    }

    pub fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.load().get(name).cloned()
    }

    /// All users by name.
    pub fn all(&self) -> Vec<Arc<User>> {
        self.users.load().values().cloned().collect()
    }

    /// The user that a client may be with this password.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        match self.find(name) {
            Some(user) => user.rights().accepts(password).then_some(user),
            None => {
                // As long as for a user that exists.
                self.default.rights().accepts(password);
                None
            }
        }
    }

    /// Applies rules to a user, or makes it.
    pub fn set(&self, name: &[u8], rules: &[Vec<u8>], all_channels: bool) -> Result<Arc<User>, rules::BadRule> {
        let _changing = self.changing.lock();
        let known = self.find(name);
        let before = match &known {
            Some(user) => user.rights().as_ref().clone(),
            None => Rights::new(all_channels),
        };
        let rights = rules::apply_all(&before, rules, all_channels)?;
        Ok(self.put(name, known, rights))
    }

    fn put(&self, name: &[u8], known: Option<Arc<User>>, rights: Rights) -> Arc<User> {
        let user = match known {
            Some(user) => {
                user.set_rights(Arc::new(rights));
                user
            }
            None => {
                let user = Arc::new(User::new(name, rights));
                let mut users = ByName::clone(&self.users.load());
                users.insert(name.into(), user.clone());
                self.users.store(Arc::new(users));
                user
            }
        };
        self.note_change();
        user
    }

    /// Notes that users have changed.
    fn note_change(&self) {
        let limits_memory = self.users.load().values().any(|user| user.account.limit(Limit::Memory) > 0);
        self.limits_memory.store(limits_memory, Relaxed);
        self.generation.fetch_add(1, SeqCst);
    }

    /// True when a user has a limit of memory.
    #[inline]
    pub fn limits_memory(&self) -> bool {
        self.limits_memory.load(Relaxed)
    }

    /// Sets the password of the default user (requirepass). Without one it needs none.
    pub fn set_default_password(&self, password: &[u8]) {
        let _changing = self.changing.lock();
        let mut rights = self.default.rights().as_ref().clone();
        rights.set_password(password);
        self.default.set_rights(Arc::new(rights));
        self.note_change();
    }

    /// Removes a user; `None` if there is none. The default user stays.
    pub fn remove(&self, name: &[u8]) -> Option<Arc<User>> {
        let _changing = self.changing.lock();
        let mut users = ByName::clone(&self.users.load());
        let user = users.remove(name)?;
        user.remove();
        self.users.store(Arc::new(users));
        self.note_change();
        Some(user)
    }

    /// Replaces all users. Those of the same name stay, with the new rights; returns those that are gone or have other
    /// rights. The default user must be among them.
    pub fn replace(&self, named: BTreeMap<Box<[u8]>, Rights>) -> Vec<Arc<User>> {
        assert!(named.contains_key(DEFAULT_USER.as_bytes()), "there is always a default user");
        let _changing = self.changing.lock();
        let before = self.users.load_full();
        let mut changed = Vec::new();
        let mut users = ByName::new();
        for (name, rights) in named {
            let user = match before.get(&name) {
                Some(user) => {
                    if rules::shown_access(&user.rights()) != rules::shown_access(&rights) {
                        changed.push(user.clone());
                    }
                    user.set_rights(Arc::new(rights));
                    user.clone()
                }
                None => Arc::new(User::new(&name, rights)),
            };
            users.insert(name, user);
        }
        for (_, user) in before.iter().filter(|(name, _)| !users.contains_key(*name)) {
            user.remove();
            changed.push(user.clone());
        }
        self.users.store(Arc::new(users));
        self.note_change();
        changed
    }

    // What was refused.

    /// Notes that something was refused. `client` is the line of CLIENT LIST.
    pub fn note_denied(
        &self,
        object: &Object,
        context: Context,
        user: &[u8],
        client: String,
        now_ms: u64,
        len_max: usize,
    ) {
        self.note(Reason::of(object), context, object.shown(), user, client, now_ms, len_max);
    }

    /// Notes a wrong password.
    pub fn note_wrong_password(&self, context: Context, user: &[u8], client: String, now_ms: u64, len_max: usize) {
        self.note(Reason::Auth, context, b"AUTH".to_vec(), user, client, now_ms, len_max);
    }

    /// Notes that a client's certificate names a user which it cannot become.
    pub fn note_wrong_certificate(&self, user: &[u8], client: String, now_ms: u64, len_max: usize) {
        self.note(Reason::Certificate, Context::TopLevel, Vec::new(), user, client, now_ms, len_max);
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of an entry")]
    fn note(
        &self,
        reason: Reason,
        context: Context,
        object: Vec<u8>,
        user: &[u8],
        client: String,
        now_ms: u64,
        len_max: usize,
    ) {
        self.denied[reason as usize].fetch_add(1, Relaxed);
        // Names come from clients, and may be as long as a request.
        let shortened = |name: &[u8]| name[..name.len().min(NAME_BYTES_MAX)].to_vec();
        let (object, user) = (shortened(&object), shortened(user));
        let entry =
            Entry { id: 0, count: 1, reason, context, object, user, created_ms: now_ms, updated_ms: now_ms, client };
        self.log.lock().add(entry, len_max);
    }

    pub fn log(&self, count: usize) -> Vec<Entry> {
        self.log.lock().newest(count)
    }

    pub fn clear_log(&self) {
        self.log.lock().clear();
    }
}
