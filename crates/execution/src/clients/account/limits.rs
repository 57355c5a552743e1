//! The limits of a user, and their names in rules. Refuses to know what is done at a limit.

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Connections.
    Clients,
    /// Operations a second.
    Operations,
    /// Bytes of requests a second.
    BytesIn,
    /// Bytes of replies and messages a second.
    BytesOut,
    /// Bytes of a reply.
    Reply,
    /// Bytes of its clients' buffers and transactions.
    Memory,
}

impl Limit {
    pub const ALL: [Limit; 6] =
        [Limit::Clients, Limit::Operations, Limit::BytesIn, Limit::BytesOut, Limit::Reply, Limit::Memory];

    /// Its name in a rule: `limit:clients=10`.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Clients => "clients",
            Limit::Operations => "ops",
            Limit::BytesIn => "in",
            Limit::BytesOut => "out",
            Limit::Reply => "reply",
            Limit::Memory => "memory",
        }
    }

    /// The limit of that name, in any case.
    pub fn find(name: &[u8]) -> Option<Limit> {
        Limit::ALL.into_iter().find(|limit| name.eq_ignore_ascii_case(limit.name().as_bytes()))
    }

    /// True when it is in bytes, not a number of things.
    pub fn is_in_bytes(self) -> bool {
        !matches!(self, Limit::Clients | Limit::Operations)
    }
}

/// All limits of a user; 0 = none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits([u64; Limit::ALL.len()]);

impl Limits {
    pub fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    pub fn set(&mut self, limit: Limit, value: u64) {
        self.0[limit as usize] = value;
    }

    /// Those that are set, in the order in which they are shown.
    pub fn set_ones(&self) -> impl Iterator<Item = (Limit, u64)> {
        Limit::ALL.into_iter().map(|limit| (limit, self.get(limit))).filter(|(_, value)| *value > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_where_its_number_says() {
        for (at, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!((limit as usize, Limit::find(limit.name().to_uppercase().as_bytes())), (at, Some(limit)));
        }
        assert_eq!(Limit::find(b""), None);
    }
}
