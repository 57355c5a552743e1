//! Commands about places.

mod add;
mod agreement;
mod indexes;
mod notifications;
mod search;
mod store;
