//! Interactive transactions: TXN.BEGIN, TXN.COMMIT and TXN.ROLLBACK. Holdfast only.

mod basics;
mod conflicts;
mod failed;
mod limits;
mod model;
mod races;
mod reading;
mod rules;
mod scripts;
mod survival;
mod types;
mod visibility;
