//! Indexes over records: creation, removal and names. Holdfast only.

use redis::{Arg, cmd};

use crate::error::{Error, is_plain_refusal};
use crate::index_definition::{IndexDefinition, NEEDED};
use crate::index_difference::{IndexDiffers, OnDifference, differences, keeps_limits};
use crate::limits::limit_command;
use crate::store::Store;

/// The script that puts an index in the place of another.
const REPLACE: &str = include_str!("replace_index.lua");

impl Store {
    /// Creates an index; returns when existing records are in it. Returns false if one of that name exists with this
    /// definition. One with another definition is [`Error::IndexDiffers`].
    pub async fn create_index(&self, name: impl AsRef<[u8]>, index: &IndexDefinition) -> Result<bool, Error> {
        self.create_index_with(name, index, OnDifference::Raise).await
    }

    /// Like [`create_index`](Store::create_index), and says what becomes of an index with another definition. Returns
    /// true if the index was created or replaced.
    pub async fn create_index_with(
        &self,
        name: impl AsRef<[u8]>,
        index: &IndexDefinition,
        on_difference: OnDifference,
    ) -> Result<bool, Error> {
        let name = name.as_ref();
        self.needs(NEEDED)?;
        match self.ask(&index.command(name, true)).await {
            Err(error) if is_plain_refusal(&error) => {} // another definition, or a server without IFABSENT
            made => return made,
        }
        let there = match self.index_definition(name).await? {
            Some(there) => there,
            None => match self.ask::<()>(&index.command(name, false)).await {
                Ok(()) => return Ok(true),
                // Another program has perhaps created it meanwhile.
                Err(refused) => self.index_definition(name).await?.ok_or(refused)?,
            },
        };
        let differences = differences(&there, index);
        match on_difference {
            _ if differences.is_empty() => Ok(false),
            OnDifference::Keep => Ok(false),
            OnDifference::Raise => {
                Err(Error::IndexDiffers(Box::new(IndexDiffers { index: name.to_vec(), differences })))
            }
            OnDifference::Replace => self.replace_index(name, &there, index).await,
        }
    }

    async fn replace_index(
        &self,
        name: &[u8],
        there: &IndexDefinition,
        wanted: &IndexDefinition,
    ) -> Result<bool, Error> {
        let mut commands =
            vec![cmd("IDX.DROP").arg(name).take(), wanted.command(name, false), there.command(name, false)];
        if keeps_limits(there, wanted) {
            let limits = self.limits(name).await?;
            commands.extend(limits.iter().map(|(scope, limits)| limit_command(name, scope, limits)));
        }
        let mut replace = cmd("EVAL");
        replace.arg(REPLACE).arg(0);
        for command in commands {
            let words = command.args_iter().filter_map(|word| match word {
                Arg::Simple(word) => Some(word),
                _ => None,
            });
            let words: Vec<&[u8]> = words.collect();
            replace.arg(words.len()).arg(words);
        }
        self.ask(&replace).await
    }

    /// The definition of an index; `None` if there is none of that name.
    pub(crate) async fn index_definition(&self, name: &[u8]) -> Result<Option<IndexDefinition>, Error> {
        self.needs(NEEDED)?;
        match self.ask(cmd("IDX.INFO").arg(name)).await {
            Err(error) if is_plain_refusal(&error) => Ok(None),
            definition => definition.map(Some),
        }
    }

    /// Removes an index, not its records; returns whether it existed.
    pub async fn drop_index(&self, name: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.needs(NEEDED)?;
        self.ask(cmd("IDX.DROP").arg(name.as_ref())).await
    }

    /// The names of all indexes.
    pub async fn indexes(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.needs(NEEDED)?;
        self.ask(&cmd("IDX.LIST")).await
    }
}
