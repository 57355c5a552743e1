//! What the load's commands on lists do to the model.

use std::sync::Arc;

use wire::Reply;

use crate::commands::Call;
use crate::model::{Entry, Place, Value, int};

/// Elements in their order.
pub(crate) type List = Vec<Vec<u8>>;

impl Call<'_> {
    pub(crate) fn list(&self) -> Option<&List> {
        self.entry().map(|entry| match &entry.value {
            Value::List(list) => list,
            _ => panic!("a command for lists on another type"),
        })
    }

    /// The elements to be changed in place. An empty list is left behind only until `drop_if_no_elements`.
    fn list_mut(&mut self) -> &mut List {
        if self.entry().is_none() {
            self.put(Entry { value: Value::List(Vec::new()), deadline: None });
        }
        match &mut self.entry_mut().expect("it was just put").value {
            Value::List(list) => list,
            _ => panic!("a command for lists on another type"),
        }
    }

    fn drop_if_no_elements(&mut self) {
        if self.list().is_some_and(Vec::is_empty) {
            self.take();
        }
    }

    pub(crate) fn push(&mut self, elements: &[Vec<u8>], left: bool) -> Reply {
        let list = self.list_mut();
        for element in elements {
            let at = if left { 0 } else { list.len() };
            list.insert(at, element.clone());
        }
        Reply::Integer(list.len() as i64)
    }

    /// `LPOP key count` or `RPOP key count`
    pub(crate) fn pop(&mut self, rest: &[Vec<u8>], left: bool) -> Reply {
        if self.list().is_none() {
            return Reply::NilArray;
        }
        let taken = self.take_elements(int(&rest[0]) as usize, left);
        Reply::Array(taken.into_iter().map(Reply::Bulk).collect())
    }

    fn take_elements(&mut self, count: usize, left: bool) -> List {
        let list = self.list_mut();
        let count = count.min(list.len());
        let taken = match left {
            true => list.drain(..count).collect(),
            false => list.split_off(list.len() - count).into_iter().rev().collect(),
        };
        self.drop_if_no_elements();
        taken
    }

    /// `LMOVE source destination LEFT RIGHT`, with keys that differ: here `self.key` is the source.
    pub(crate) fn lmove(&mut self, rest: &[Vec<u8>]) -> Reply {
        if self.list().is_none() {
            return Reply::NilBulk;
        }
        let element = self.take_elements(1, true).remove(0);
        let place = Place::new(self.db, &rest[0]);
        let entry = self.state.entries.entry(place);
        let entry = entry.or_insert_with(|| Arc::new(Entry { value: Value::List(Vec::new()), deadline: None }));
        match &mut Arc::make_mut(entry).value {
            Value::List(list) => list.push(element.clone()),
            _ => panic!("a command for lists on another type"),
        }
        Reply::Bulk(element)
    }

    /// `LTRIM key 0 last`
    pub(crate) fn ltrim(&mut self, rest: &[Vec<u8>]) -> Reply {
        if self.list().is_some() {
            self.list_mut().truncate(int(&rest[1]) as usize + 1);
        }
        Reply::Simple(b"OK".to_vec())
    }

    /// `LREM key 0 element`
    pub(crate) fn lrem(&mut self, rest: &[Vec<u8>]) -> Reply {
        let Some(before) = self.list().map(Vec::len) else { return Reply::Integer(0) };
        let list = self.list_mut();
        list.retain(|element| *element != rest[1]);
        let gone = before - list.len();
        self.drop_if_no_elements();
        Reply::Integer(gone as i64)
    }

    /// `LSET key 0 element`, of a list that is there.
    pub(crate) fn lset(&mut self, rest: &[Vec<u8>]) -> Reply {
        self.list_mut()[0] = rest[1].clone();
        Reply::Simple(b"OK".to_vec())
    }

    /// `LINSERT key AFTER pivot element`
    pub(crate) fn linsert(&mut self, rest: &[Vec<u8>]) -> Reply {
        let Some(list) = self.list() else { return Reply::Integer(0) };
        let Some(at) = list.iter().position(|element| *element == rest[1]) else { return Reply::Integer(-1) };
        let list = self.list_mut();
        list.insert(at + 1, rest[2].clone());
        Reply::Integer(list.len() as i64)
    }
}
