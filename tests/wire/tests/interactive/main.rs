//! Interactive transactions: TXN.BEGIN, TXN.COMMIT and TXN.ROLLBACK. Holdfast only.

mod basics;
mod conflicts;
mod failed;
mod limits;
mod rules;
mod scripts;
mod types;
mod visibility;
