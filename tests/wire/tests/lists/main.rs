//! List commands.

mod agreement;
mod blocking;
mod blocking_wakes;
mod commands;
mod dump;
mod elements;
mod encoding;
mod large;
mod moves;
mod notifications;
mod pop;
mod push;
mod range;
