//! Settings that are one word of several, as types. Knows where their words are listed and nothing else of the table.

/// Which keys are evicted when `maxmemory` is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxmemoryPolicy {
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
    AllkeysLru,
    AllkeysLfu,
    AllkeysRandom,
    NoEviction,
}

pub(super) const MAXMEMORY_POLICIES: &[(&str, i64)] = &[
    ("volatile-lru", MaxmemoryPolicy::VolatileLru as i64),
    ("volatile-lfu", MaxmemoryPolicy::VolatileLfu as i64),
    ("volatile-random", MaxmemoryPolicy::VolatileRandom as i64),
    ("volatile-ttl", MaxmemoryPolicy::VolatileTtl as i64),
    ("allkeys-lru", MaxmemoryPolicy::AllkeysLru as i64),
    ("allkeys-lfu", MaxmemoryPolicy::AllkeysLfu as i64),
    ("allkeys-random", MaxmemoryPolicy::AllkeysRandom as i64),
    ("noeviction", MaxmemoryPolicy::NoEviction as i64),
];

impl MaxmemoryPolicy {
    pub(super) fn from_number(number: i64) -> MaxmemoryPolicy {
        match number {
            0 => MaxmemoryPolicy::VolatileLru,
            1 => MaxmemoryPolicy::VolatileLfu,
            2 => MaxmemoryPolicy::VolatileRandom,
            3 => MaxmemoryPolicy::VolatileTtl,
            4 => MaxmemoryPolicy::AllkeysLru,
            5 => MaxmemoryPolicy::AllkeysLfu,
            6 => MaxmemoryPolicy::AllkeysRandom,
            7 => MaxmemoryPolicy::NoEviction,
            _ => unreachable!("not in MAXMEMORY_POLICIES"),
        }
    }

    /// Whether the policy chooses by how often keys are used.
    pub fn is_lfu(self) -> bool {
        matches!(self, MaxmemoryPolicy::VolatileLfu | MaxmemoryPolicy::AllkeysLfu)
    }

    /// Whether the policy chooses by when keys were last used.
    pub fn is_lru(self) -> bool {
        matches!(self, MaxmemoryPolicy::VolatileLru | MaxmemoryPolicy::AllkeysLru)
    }

    /// Whether only keys with a deadline may be evicted.
    pub fn is_volatile(self) -> bool {
        (self as i64) < MaxmemoryPolicy::AllkeysLru as i64
    }
}

/// When acknowledged writes are forced to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFsync {
    Everysec,
    Always,
    No,
}

pub(super) const APPENDFSYNC: &[(&str, i64)] = &[
    ("everysec", AppendFsync::Everysec as i64),
    ("always", AppendFsync::Always as i64),
    ("no", AppendFsync::No as i64),
];

impl AppendFsync {
    pub(super) fn from_number(number: i64) -> AppendFsync {
        match number {
            0 => AppendFsync::Everysec,
            1 => AppendFsync::Always,
            2 => AppendFsync::No,
            _ => unreachable!("not in APPENDFSYNC"),
        }
    }
}

/// Which clients may use a dangerous command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedFor {
    None,
    All,
    /// Clients on this machine.
    Local,
}

pub(super) const NO_YES_LOCAL: &[(&str, i64)] =
    &[("no", AllowedFor::None as i64), ("yes", AllowedFor::All as i64), ("local", AllowedFor::Local as i64)];

impl AllowedFor {
    pub(super) fn from_number(number: i64) -> AllowedFor {
        match number {
            0 => AllowedFor::None,
            1 => AllowedFor::All,
            2 => AllowedFor::Local,
            _ => unreachable!("not in NO_YES_LOCAL"),
        }
    }
}

/// The least important messages that the server's own log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
    Nothing,
}

/// How connections are shared among worker threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerBalance {
    /// On as few threads as the load needs.
    Elastic,
    /// Evenly on all threads.
    Spread,
    /// All on the first thread.
    Gather,
}

/// Whether a reply of a writer with a lease waits until the log has confirmed that it still is the writer.
pub(super) const READS: &[(&str, i64)] = &[("leased", 0), ("confirmed", 1)];

pub(super) const WORKER_BALANCES: &[(&str, i64)] = &[
    ("elastic", WorkerBalance::Elastic as i64),
    ("spread", WorkerBalance::Spread as i64),
    ("gather", WorkerBalance::Gather as i64),
];

impl WorkerBalance {
    pub(super) fn from_number(number: i64) -> WorkerBalance {
        match number {
            0 => WorkerBalance::Elastic,
            1 => WorkerBalance::Spread,
            2 => WorkerBalance::Gather,
            _ => unreachable!("not in WORKER_BALANCES"),
        }
    }
}

/// Whether clients have to show a certificate when they connect with TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsAuthClients {
    No,
    Yes,
    /// One that a client shows must be valid.
    Optional,
}

pub(super) const TLS_AUTH_CLIENTS: &[(&str, i64)] = &[
    ("no", TlsAuthClients::No as i64),
    ("yes", TlsAuthClients::Yes as i64),
    ("optional", TlsAuthClients::Optional as i64),
];

impl TlsAuthClients {
    pub(super) fn from_number(number: i64) -> TlsAuthClients {
        match number {
            0 => TlsAuthClients::No,
            1 => TlsAuthClients::Yes,
            2 => TlsAuthClients::Optional,
            _ => unreachable!("not in TLS_AUTH_CLIENTS"),
        }
    }
}

/// The field of a client's certificate that names its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsAuthClientsUser {
    Off,
    /// The common name of the subject.
    CommonName,
    /// The URIs among the alternative names of the subject.
    Uri,
}

pub(super) const TLS_AUTH_CLIENTS_USER: &[(&str, i64)] = &[
    ("off", TlsAuthClientsUser::Off as i64),
    ("CN", TlsAuthClientsUser::CommonName as i64),
    ("URI", TlsAuthClientsUser::Uri as i64),
];

impl TlsAuthClientsUser {
    pub(super) fn from_number(number: i64) -> TlsAuthClientsUser {
        match number {
            0 => TlsAuthClientsUser::Off,
            1 => TlsAuthClientsUser::CommonName,
            2 => TlsAuthClientsUser::Uri,
            _ => unreachable!("not in TLS_AUTH_CLIENTS_USER"),
        }
    }
}

pub(super) const LOG_FORMATS: &[(&str, i64)] = &[("text", 0), ("json", 1)];

pub(super) const LOG_LEVELS: &[(&str, i64)] = &[
    ("debug", LogLevel::Debug as i64),
    ("verbose", LogLevel::Verbose as i64),
    ("notice", LogLevel::Notice as i64),
    ("warning", LogLevel::Warning as i64),
    ("nothing", LogLevel::Nothing as i64),
];

impl LogLevel {
    pub(super) fn from_number(number: i64) -> LogLevel {
        match number {
            0 => LogLevel::Debug,
            1 => LogLevel::Verbose,
            2 => LogLevel::Notice,
            3 => LogLevel::Warning,
            4 => LogLevel::Nothing,
            _ => unreachable!("not in LOG_LEVELS"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_type() {
        for (_, number) in MAXMEMORY_POLICIES {
            assert_eq!(MaxmemoryPolicy::from_number(*number) as i64, *number);
        }
        for (_, number) in APPENDFSYNC {
            assert_eq!(AppendFsync::from_number(*number) as i64, *number);
        }
        for (_, number) in NO_YES_LOCAL {
            assert_eq!(AllowedFor::from_number(*number) as i64, *number);
        }
        for (_, number) in LOG_LEVELS {
            assert_eq!(LogLevel::from_number(*number) as i64, *number);
        }
        for (_, number) in TLS_AUTH_CLIENTS {
            assert_eq!(TlsAuthClients::from_number(*number) as i64, *number);
        }
        for (_, number) in TLS_AUTH_CLIENTS_USER {
            assert_eq!(TlsAuthClientsUser::from_number(*number) as i64, *number);
        }
    }

    #[test]
    fn volatile_policies_spare_keys_without_a_deadline() {
        for (word, number) in MAXMEMORY_POLICIES {
            let policy = MaxmemoryPolicy::from_number(*number);
            assert_eq!(policy.is_volatile(), word.starts_with("volatile-"), "{word}");
            assert_eq!(policy.is_lru(), word.ends_with("-lru"), "{word}");
            assert_eq!(policy.is_lfu(), word.ends_with("-lfu"), "{word}");
        }
    }
}
