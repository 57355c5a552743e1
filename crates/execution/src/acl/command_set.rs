//! Sets of commands, by their position in the table, and the categories. Knows nothing of rules.

use crate::command::{ACL_CATEGORIES, CommandRow, registry};

/// A set of commands and subcommands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSet {
    bits: Box<[u64]>,
    /// Commands that a later version has are in it too.
    pub has_future: bool,
}

impl CommandSet {
    pub fn none() -> CommandSet {
        CommandSet { bits: vec![0; registry().rows().len().div_ceil(64)].into(), has_future: false }
    }

    pub fn all() -> CommandSet {
        CommandSet { bits: vec![u64::MAX; registry().rows().len().div_ceil(64)].into(), has_future: true }
    }

    #[inline]
    pub fn has(&self, row: &CommandRow) -> bool {
        self.bits[row.index / 64] >> (row.index % 64) & 1 == 1
    }

    /// True when every command is in it.
    pub fn is_all(&self) -> bool {
        self.has_future && registry().rows().iter().all(|row| self.has(row))
    }

    /// True when every command of another set is in it.
    pub fn covers(&self, other: &CommandSet) -> bool {
        let covers = |(own, other): (&u64, &u64)| own & other == *other;
        self.has_future >= other.has_future && self.bits.iter().zip(&other.bits).all(covers)
    }

    /// Adds or removes a command, with its subcommands.
    pub fn set(&mut self, row: &CommandRow, is_in: bool) {
        self.set_one(row, is_in);
        row.subcommands.iter().for_each(|sub| self.set_one(sub, is_in));
    }

    /// Adds or removes a category. False if there is none of that name, in any case.
    pub fn set_category(&mut self, name: &[u8], is_in: bool) -> bool {
        let Some(category) = find_category(name) else { return false };
        rows_of(category).for_each(|row| self.set_one(row, is_in));
        true
    }

    fn set_one(&mut self, row: &CommandRow, is_in: bool) {
        let bit = 1 << (row.index % 64);
        match is_in {
            true => self.bits[row.index / 64] |= bit,
            false => self.bits[row.index / 64] &= !bit,
        }
    }
}

/// The category of that name, without its `@`, in any case.
pub fn find_category(name: &[u8]) -> Option<&'static str> {
    ACL_CATEGORIES.iter().copied().find(|category| name.eq_ignore_ascii_case(category.as_bytes()))
}

/// The commands and subcommands of a category.
pub fn rows_of(category: &'static str) -> impl Iterator<Item = &'static CommandRow> {
    registry().rows().iter().copied().filter(move |row| row.acl_categories().iter().any(|has| &has[1..] == category))
}
