//! The states of the journal, as `engine::journal_state` lists them: one test for each row of that table (`rows`), and walks
//! through all of them under load, with kills, stops and failing disks, that count what was answered (`walk`).

mod ledger;
mod load;
mod rows;
mod walk;
