//! Branches of cells: prefixes of their names, which are copied and removed as a whole. Holdfast only. Knows which names
//! a branch and its cells may have; refuses to know what the cells hold.

use redis::cmd;

use crate::cell::{Cell, NEEDED};
use crate::error::Error;
use crate::store::Store;

/// Cells whose names have the branch's name and `/` in front.
///
/// ```no_run
/// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
/// let main = store.branch("main")?;
/// main.cell::<u32>("limit")?.set(&10).await?;
/// main.fork("trial").await?; // every cell with its versions, as of one instant
/// let trial = store.branch("trial")?;
/// trial.cell::<u32>("limit")?.set(&99).await?; // main is as it was
/// trial.drop_cells().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Branch {
    store: Store,
    name: Vec<u8>,
}

/// The longest name of a cell within its branch, in bytes.
const NAME_BYTES_MAX: usize = 1024;

impl Store {
    /// The branch with this name, which has no `/`, no `:` and no NUL. Sends nothing to the server.
    pub fn branch(&self, name: impl AsRef<[u8]>) -> Result<Branch, Error> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(Error::Name("the name of a branch is not empty"));
        }
        if name.iter().any(|byte| b"/:\0".contains(byte)) {
            return Err(Error::Name("the name of a branch has no '/', no ':' and no NUL"));
        }
        Ok(Branch { store: self.clone(), name: name.to_vec() })
    }
}

impl Branch {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The cell with this name in the branch: 1 to 1,024 bytes, without NUL, not beginning `_strata/`. Its key is
    /// `branch/name`. Sends nothing to the server.
    pub fn cell<T>(&self, name: impl AsRef<[u8]>) -> Result<Cell<T>, Error> {
        let name = name.as_ref();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Error::Name("the name of a cell has 1 to 1,024 bytes"));
        }
        if name.contains(&0) {
            return Err(Error::Name("the name of a cell has no NUL"));
        }
        if name.starts_with(b"_strata/") {
            return Err(Error::Name("the name of a cell does not begin with '_strata/'"));
        }
        Ok(self.store.cell([&self.prefix(), name].concat()))
    }

    /// The names of the cells in the branch, without the branch's own, with SCAN's guarantee: a cell that exists all
    /// the time is listed, possibly twice.
    pub async fn cells(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.store.needs(NEEDED)?;
        let (prefix, mut found, mut cursor) = (self.prefix(), Vec::new(), 0u64);
        loop {
            let mut list = cmd("CELL.LIST");
            list.arg("PREFIX").arg(&prefix).arg("CURSOR").arg(cursor);
            let (next, names): (u64, Vec<Vec<u8>>) = self.store.ask(&list).await?;
            found.extend(names.iter().filter_map(|name| name.strip_prefix(&*prefix)).map(<[u8]>::to_vec));
            cursor = next;
            if cursor == 0 {
                return Ok(found);
            }
        }
    }

    /// Copies every cell to a new branch, with version, history and lifetime, as they all were at one instant. Refused
    /// if the new branch has any key. Returns how many cells were copied.
    pub async fn fork(&self, to: impl AsRef<[u8]>) -> Result<u64, Error> {
        self.store.needs(NEEDED)?;
        let fork = self.store.branch(to)?;
        self.store.ask(cmd("CELL.FORK").arg(self.prefix()).arg(fork.prefix())).await
    }

    /// Removes all cells of the branch; returns how many.
    pub async fn drop_cells(&self) -> Result<u64, Error> {
        self.store.needs(NEEDED)?;
        self.store.ask(cmd("CELL.DROP").arg(self.prefix())).await
    }

    fn prefix(&self) -> Vec<u8> {
        [&self.name, b"/".as_slice()].concat()
    }
}
