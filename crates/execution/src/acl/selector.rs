//! What one list of rules allows: commands, keys, channels and databases. Knows nothing of users.

use super::command_set::CommandSet;
use super::key_right::KeyRight;
use super::prefixes::Prefixes;
use crate::command::CommandRow;
use algorithms::glob::Pattern;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pattern of keys, and what may be done with those that match.
#[derive(Clone)]
pub struct KeyPattern {
    pub right: KeyRight,
    pub text: Box<[u8]>,
    pattern: Arc<Pattern>,
    /// How many bytes of the text are literal, if only a `*` follows them: whatever begins so matches.
    literal_len: Option<usize>,
}

impl KeyPattern {
    pub fn new(right: KeyRight, text: &[u8]) -> KeyPattern {
        let is_literal = |literal: &[u8]| !literal.iter().any(|byte| b"*?[]\\".contains(byte));
        let literal_len = match text.split_last() {
            Some((b'*', literal)) if is_literal(literal) => Some(literal.len()),
            _ => None,
        };
        KeyPattern { right, text: text.into(), pattern: Arc::new(Pattern::new(text, false)), literal_len }
    }

    fn literal_prefix(&self) -> Option<&[u8]> {
        self.literal_len.map(|len| &self.text[..len])
    }

    fn matches(&self, key: &[u8]) -> bool {
        match self.literal_prefix() {
            // As in Redis, `*` is at least one byte for a key: only `~*`, which stands for all keys, allows the empty one.
            Some(literal) => key.starts_with(literal) && !key.is_empty(),
            None => self.pattern.matches(key),
        }
    }
}

/// A pattern of channels.
#[derive(Clone)]
pub struct ChannelPattern {
    pub text: Box<[u8]>,
    pattern: Arc<Pattern>,
}

impl ChannelPattern {
    pub fn new(text: &[u8]) -> ChannelPattern {
        ChannelPattern { text: text.into(), pattern: Arc::new(Pattern::new(text, false)) }
    }
}

/// What a list of rules allows.
#[derive(Clone)]
pub struct Selector {
    pub commands: CommandSet,
    /// The rules that the commands come from, as they were given, without those that later ones replace.
    pub command_rules: Vec<(bool, Vec<u8>)>,
    /// First arguments with which a command is allowed that is not in the set.
    pub first_args: BTreeMap<usize, Vec<Box<[u8]>>>,
    pub all_keys: bool,
    pub keys: Vec<KeyPattern>,
    pub all_channels: bool,
    pub channels: Vec<ChannelPattern>,
    /// The databases, in their order; all, if there is no list.
    pub databases: Option<Vec<u32>>,
    /// The patterns among `keys` that are literal text and `*`, once all rules are applied.
    prefixes: Option<Prefixes>,
}

impl Selector {
    /// Allows nothing, but in all databases, and perhaps on all channels.
    pub fn new(all_channels: bool) -> Selector {
        Selector {
            commands: CommandSet::none(),
            command_rules: Vec::new(),
            first_args: BTreeMap::new(),
            all_keys: false,
            keys: Vec::new(),
            all_channels,
            channels: Vec::new(),
            databases: None,
            prefixes: None,
        }
    }

    /// Prepares for checks, after rules were applied.
    pub(super) fn settle(&mut self) {
        let literals = self.keys.iter().filter_map(|known| Some((known.right, known.literal_prefix()?)));
        self.prefixes = (!self.keys.is_empty()).then(|| Prefixes::new(literals));
    }

    /// For a command with one key, which this allows if it allows the key: the position of the key, and the most that a
    /// request may need. `None` if more has to be asked, or for other commands.
    pub(super) fn only_key_of(&self, row: &CommandRow) -> Option<(u8, KeyRight)> {
        let command = &row.command;
        let is_plain = self.databases.is_none() && command.searches.is_none() && command.names_channels.is_none();
        let (at, flags) = command.keys.only_key_at_most().filter(|_| is_plain && self.commands.has(row))?;
        Some((u8::try_from(at).ok()?, KeyRight::of(flags)))
    }

    /// True when a pattern of literal text and `*` allows this with a key. False says nothing.
    #[inline]
    pub fn surely_allows_key(&self, key: &[u8], right: KeyRight) -> bool {
        self.all_keys || self.prefixes.as_ref().is_some_and(|prefixes| prefixes.allow(key, right))
    }

    /// Allows everything.
    pub fn everything() -> Selector {
        Selector { commands: CommandSet::all(), all_keys: true, all_channels: true, ..Selector::new(true) }
    }

    /// True when it allows everything.
    pub fn is_everything(&self) -> bool {
        self.all_keys && self.all_channels && self.databases.is_none() && self.commands.is_all()
    }

    /// True when it allows a command with this first argument behind its name.
    pub fn allows_command(&self, row: &CommandRow, first_arg: Option<&[u8]>) -> bool {
        let allows_first_arg = || {
            let allowed = self.first_args.get(&row.index);
            allowed
                .zip(first_arg)
                .is_some_and(|(allowed, given)| allowed.iter().any(|arg| given.eq_ignore_ascii_case(arg)))
        };
        self.commands.has(row) || allows_first_arg()
    }

    /// True when it allows this with a key. One pattern has to allow all of it.
    pub fn allows_key(&self, key: &[u8], right: KeyRight) -> bool {
        self.all_keys || self.keys.iter().any(|known| known.right.contains(right) && known.matches(key))
    }

    /// True when it allows this with every key that begins with a prefix.
    pub fn allows_prefix(&self, prefix: &[u8], right: KeyRight) -> bool {
        let covers = |known: &KeyPattern| known.literal_prefix().is_some_and(|literal| prefix.starts_with(literal));
        self.all_keys || self.keys.iter().any(|known| known.right.contains(right) && covers(known))
    }

    /// True when it allows a database.
    #[inline]
    pub fn allows_database(&self, db: usize) -> bool {
        let allows = |listed: &Vec<u32>| u32::try_from(db).is_ok_and(|db| listed.contains(&db));
        self.databases.as_ref().is_none_or(allows)
    }

    /// True when it allows a channel; a pattern of channels only if it is listed itself.
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let allows = |known: &ChannelPattern| match is_pattern {
            true => *known.text == *channel,
            false => known.pattern.matches(channel),
        };
        self.all_channels || self.channels.iter().any(allows)
    }
}
