//! The states of the journal, as `engine::journal_state` lists them: one test for each row of that table (`rows`).

mod rows;
