//! The arguments of a command, as COMMAND DOCS describes them.

/// One argument, or a group of them.
#[derive(Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub kind: ArgumentKind,
    /// What syntax summaries show in its place. COMMAND DOCS leaves it out for groups.
    pub display_text: &'static str,
    /// Which of the command's key specifications finds this key.
    pub key_spec_index: Option<usize>,
    /// The word before the argument, or the argument itself.
    pub token: Option<&'static str>,
    pub summary: Option<&'static str>,
    pub since: Option<&'static str>,
    pub deprecated_since: Option<&'static str>,
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// Is repeated together with its token.
    pub multiple_token: bool,
    /// The members of a group.
    pub arguments: &'static [Argument],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    Key,
    String,
    Integer,
    Double,
    Pattern,
    UnixTime,
    /// A word that is present or absent.
    PureToken,
    /// A group of which one member is given.
    OneOf,
    /// A group of which all members are given.
    Block,
}

impl ArgumentKind {
    /// As COMMAND DOCS spells it.
    pub fn name(self) -> &'static str {
        match self {
            ArgumentKind::Key => "key",
            ArgumentKind::String => "string",
            ArgumentKind::Integer => "integer",
            ArgumentKind::Double => "double",
            ArgumentKind::Pattern => "pattern",
            ArgumentKind::UnixTime => "unix-time",
            ArgumentKind::PureToken => "pure-token",
            ArgumentKind::OneOf => "oneof",
            ArgumentKind::Block => "block",
        }
    }

    pub fn is_group(self) -> bool {
        matches!(self, ArgumentKind::OneOf | ArgumentKind::Block)
    }
}

impl Argument {
    /// The flags that are set, as COMMAND DOCS spells them.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let flags = [(self.optional, "optional"), (self.multiple, "multiple"), (self.multiple_token, "multiple_token")];
        flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name)
    }

    const fn new(name: &'static str, kind: ArgumentKind) -> Argument {
        Argument {
            name,
            kind,
            display_text: name,
            key_spec_index: None,
            token: None,
            summary: None,
            since: None,
            deprecated_since: None,
            optional: false,
            multiple: false,
            multiple_token: false,
            arguments: &[],
        }
    }

    pub const fn shown_as(mut self, text: &'static str) -> Argument {
        self.display_text = text;
        self
    }

    /// Stands after this word.
    pub const fn after(mut self, token: &'static str) -> Argument {
        self.token = Some(token);
        self
    }

    /// The argument from which the keys of this specification are found.
    pub const fn of_keys(mut self, key_spec_index: usize) -> Argument {
        self.key_spec_index = Some(key_spec_index);
        self
    }

    pub const fn since(mut self, version: &'static str) -> Argument {
        self.since = Some(version);
        self
    }

    pub const fn deprecated_since(mut self, version: &'static str) -> Argument {
        self.deprecated_since = Some(version);
        self
    }

    pub const fn optional(mut self) -> Argument {
        self.optional = true;
        self
    }

    pub const fn multiple(mut self) -> Argument {
        self.multiple = true;
        self
    }

    pub const fn multiple_token(mut self) -> Argument {
        self.multiple_token = true;
        self
    }
}

pub const fn key(name: &'static str, key_spec_index: usize) -> Argument {
    let mut key = Argument::new(name, ArgumentKind::Key);
    key.key_spec_index = Some(key_spec_index);
    key
}

pub const fn string(name: &'static str) -> Argument {
    Argument::new(name, ArgumentKind::String)
}

pub const fn integer(name: &'static str) -> Argument {
    Argument::new(name, ArgumentKind::Integer)
}

pub const fn double(name: &'static str) -> Argument {
    Argument::new(name, ArgumentKind::Double)
}

pub const fn pattern(name: &'static str) -> Argument {
    Argument::new(name, ArgumentKind::Pattern)
}

pub const fn unix_time(name: &'static str) -> Argument {
    Argument::new(name, ArgumentKind::UnixTime)
}

pub const fn token(name: &'static str, token: &'static str) -> Argument {
    Argument::new(name, ArgumentKind::PureToken).after(token)
}

pub const fn one_of(name: &'static str, members: &'static [Argument]) -> Argument {
    let mut group = Argument::new(name, ArgumentKind::OneOf);
    group.arguments = members;
    group
}

pub const fn block(name: &'static str, members: &'static [Argument]) -> Argument {
    let mut group = Argument::new(name, ArgumentKind::Block);
    group.arguments = members;
    group
}
