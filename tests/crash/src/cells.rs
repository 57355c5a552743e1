//! What the load's commands on cells do to the model. The times of versions are the server's own, and not looked at.

use std::sync::Arc;

use wire::Reply;

use crate::commands::Call;
use crate::model::{Deadline, Entry, Place, Value, int};

/// A cell: its version, and the values that are kept, the newest first.
#[derive(Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) version: i64,
    pub(crate) values: Vec<Vec<u8>>,
}

/// How many values a cell keeps by default.
pub(crate) const VALUES_MAX: usize = 128;

impl Call<'_> {
    fn cell(&self) -> Option<&Cell> {
        self.entry().map(|entry| match &entry.value {
            Value::Cell(cell) => cell,
            _ => panic!("a command for cells on another type"),
        })
    }

    pub(crate) fn cell_value(&self) -> Option<Vec<u8>> {
        self.cell().map(|cell| cell.values[0].clone())
    }

    /// Writes the next version, and a deadline if one is given.
    fn write_cell(&mut self, value: &[u8], options: &[Vec<u8>]) -> Reply {
        if self.entry().is_none() {
            self.put(Entry { value: Value::Cell(Cell { version: 0, values: Vec::new() }), deadline: None });
        }
        let sent_ms = self.sent_ms;
        let entry = self.entry_mut().expect("it was just put");
        let Value::Cell(cell) = &mut entry.value else { panic!("a command for cells on another type") };
        cell.version += 1;
        cell.values.insert(0, value.to_vec());
        cell.values.truncate(VALUES_MAX);
        let version = cell.version;
        match options {
            [] => {}
            [word, ttl_ms] if word == b"PX" => entry.deadline = Some(Deadline::within(sent_ms, int(ttl_ms))),
            [word] if word == b"PERSIST" => entry.deadline = None,
            _ => panic!("the model does not know these options of a cell"),
        }
        Reply::Integer(version)
    }

    /// `CELL.INIT cell value`
    pub(crate) fn cell_init(&mut self, rest: &[Vec<u8>]) -> Reply {
        match self.cell() {
            Some(cell) => Reply::Integer(cell.version),
            None => self.write_cell(&rest[0], &[]),
        }
    }

    /// `CELL.SET cell value [PX ms | PERSIST]`
    pub(crate) fn cell_set(&mut self, rest: &[Vec<u8>]) -> Reply {
        self.write_cell(&rest[0], &rest[1..])
    }

    /// `CELL.CAS cell expected value [PX ms | PERSIST]`
    pub(crate) fn cell_cas(&mut self, rest: &[Vec<u8>]) -> Reply {
        match self.cell().map_or(0, |cell| cell.version) == int(&rest[0]) {
            true => self.write_cell(&rest[1], &rest[2..]),
            false => Reply::NilBulk,
        }
    }

    /// `CELL.DEL cell [IF version]`
    pub(crate) fn cell_del(&mut self, rest: &[Vec<u8>]) -> Reply {
        let expected = rest.get(1).map(|version| int(version));
        let goes = self.cell().is_some_and(|cell| expected.is_none_or(|expected| expected == cell.version));
        if goes {
            self.take();
        }
        Reply::Integer(goes.into())
    }

    /// `CELL.FORK from to`
    pub(crate) fn cell_fork(&mut self, to: &[u8]) -> Reply {
        let (db, from) = (self.db, self.key);
        let cells = self.state.entries.iter().filter(|(place, entry)| is_cell_under(place, entry, db, from));
        let copies: Vec<_> = cells
            .map(|(place, entry)| (Place::new(db, &[to, &place.key[from.len()..]].concat()), Arc::clone(entry)))
            .collect();
        let count = copies.len() as i64;
        self.state.entries.extend(copies);
        Reply::Integer(count)
    }

    /// `CELL.DROP prefix`
    pub(crate) fn cell_drop(&mut self) -> Reply {
        let (db, prefix, before) = (self.db, self.key, self.state.entries.len());
        self.state.entries.retain(|place, entry| !is_cell_under(place, entry, db, prefix));
        Reply::Integer((before - self.state.entries.len()) as i64)
    }
}

fn is_cell_under(place: &Place, entry: &Entry, db: u32, prefix: &[u8]) -> bool {
    place.db == db && place.key.starts_with(prefix) && matches!(entry.value, Value::Cell(_))
}
