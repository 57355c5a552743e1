//! What a row of the settings table says about a setting. Knows no setting by name.

use super::value::Kind;

/// One setting: its names, the values it accepts, its default and when it may be changed.
pub struct Row {
    pub name: &'static str,
    /// An older name for the same value; CONFIG GET lists it as a separate setting, as Redis does.
    pub alias: Option<&'static str>,
    pub kind: Kind,
    /// As CONFIG GET prints it.
    pub default: &'static str,
    pub access: Access,
    /// Left out of CONFIG GET patterns; only the exact name finds it.
    pub hidden: bool,
    /// Must not reach the slow log, MONITOR or the server's own log.
    pub sensitive: bool,
    /// Accepted, checked and reported, because tools written for Redis set it; nothing depends on it but a line of
    /// INFO.
    pub is_without_effect: bool,
    /// Names a file whose content may have changed: CONFIG SET to the same name applies the setting again.
    pub names_file: bool,
}

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// At any time.
    Live,
    /// At start only, although Redis can change it later or does not know it. CONFIG SET to the current value succeeds,
    /// so tools that write back all values they have read still work.
    Pinned,
    /// At start, and later only where `enable-protected-configs` allows it.
    Protected,
    /// At start only; CONFIG SET always fails, even to the current value.
    Immutable,
}

impl Row {
    pub(super) const fn new(name: &'static str, kind: Kind, default: &'static str) -> Row {
        Row {
            name,
            alias: None,
            kind,
            default,
            access: Access::Live,
            hidden: false,
            sensitive: false,
            is_without_effect: false,
            names_file: false,
        }
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Row {
        self.alias = Some(alias);
        self
    }

    pub(super) const fn pinned(mut self) -> Row {
        self.access = Access::Pinned;
        self
    }

    pub(super) const fn protected(mut self) -> Row {
        self.access = Access::Protected;
        self
    }

    pub(super) const fn immutable(mut self) -> Row {
        self.access = Access::Immutable;
        self
    }

    pub(super) const fn hidden(mut self) -> Row {
        self.hidden = true;
        self
    }

    pub(super) const fn without_effect(mut self) -> Row {
        self.is_without_effect = true;
        self
    }

    pub(super) const fn names_file(mut self) -> Row {
        self.names_file = true;
        self
    }

    pub(super) const fn sensitive(mut self) -> Row {
        self.sensitive = true;
        self
    }
}

pub(super) const fn yes_no(name: &'static str, default: &'static str) -> Row {
    Row::new(name, Kind::Bool, default)
}

pub(super) const fn integer(name: &'static str, min: i64, max: i64, default: &'static str) -> Row {
    Row::new(name, Kind::Integer { min, max }, default)
}

pub(super) const fn memory(name: &'static str, min: u64, max: u64, default: &'static str) -> Row {
    Row::new(name, Kind::Memory { min, max }, default)
}

pub(super) const fn choice(name: &'static str, of: &'static [(&'static str, i64)], default: &'static str) -> Row {
    Row::new(name, Kind::Choice(of), default)
}

pub(super) const fn text(name: &'static str, default: &'static str) -> Row {
    Row::new(name, Kind::Text(super::text::any), default)
}

/// Text that `check` accepts and normalises.
pub(super) const fn checked(
    name: &'static str,
    check: fn(&str) -> Result<String, &'static str>,
    default: &'static str,
) -> Row {
    Row::new(name, Kind::Text(check), default)
}
