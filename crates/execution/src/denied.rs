//! What a user has no right to, and how that is said. Knows nothing of rights.

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub object: Object,
    /// The user.
    pub user: String,
}

/// What the user has no right to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// The command of this full name.
    Command(String),
    Key(Vec<u8>),
    /// All keys that begin so.
    Prefix(Vec<u8>),
    Channel(Vec<u8>),
    /// A database: as the request names it, or the command that would use the selected one.
    Database(Vec<u8>),
    /// Any key, for an option of a command; with the text of the error.
    Anything(&'static str),
}

impl Object {
    /// What ACL LOG shows.
    pub fn shown(&self) -> Vec<u8> {
        match self {
            Object::Command(name) => name.clone().into_bytes(),
            Object::Key(name) | Object::Prefix(name) | Object::Channel(name) | Object::Database(name) => name.clone(),
            Object::Anything(_) => b"*".to_vec(),
        }
    }

    /// For errors: a key or a channel is not named.
    pub fn briefly(&self, user: &str) -> String {
        match self {
            Object::Command(_) => self.text(user),
            Object::Key(_) => "No permissions to access a key".to_owned(),
            Object::Prefix(_) => "No permissions to access all keys of a prefix".to_owned(),
            Object::Channel(_) => "No permissions to access a channel".to_owned(),
            Object::Database(_) => "No permissions to access database".to_owned(),
            Object::Anything(text) => (*text).to_owned(),
        }
    }

    /// `User bob has no permissions to …`.
    pub fn text(&self, user: &str) -> String {
        match self {
            Object::Command(name) => format!("User {user} has no permissions to run the '{name}' command"),
            Object::Key(name) => format!("User {user} has no permissions to access the '{}' key", lossy(name)),
            Object::Prefix(prefix) => {
                format!("User {user} has no permissions to access all keys that begin with '{}'", lossy(prefix))
            }
            Object::Database(name) => format!("User {user} has no permissions to access database {}", lossy(name)),
            Object::Anything(text) => (*text).to_owned(),
            Object::Channel(name) => format!("User {user} has no permissions to access the '{}' channel", lossy(name)),
        }
    }
}

fn lossy(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}
