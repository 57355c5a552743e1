//! SORT.

mod agreement;
mod commands;
mod notifications;
