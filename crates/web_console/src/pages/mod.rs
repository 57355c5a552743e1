//! A file for each page: `show` makes it, `act` does what one of its forms asks for and leads back to a page. What a page tells
//! and changes are commands.

mod cells;
mod clients;
mod cluster;
mod configuration;
mod dead;
mod groups;
mod help;
mod index;
mod info;
mod jobs;
mod key;
mod keys;
mod latency;
mod memory;
mod overview;
mod peek;
mod prompt;
mod record;
mod registers;
mod requeue;
mod runs;
mod sessions;
mod shown;
mod slow_log;
mod trouble;
mod users;
mod value;

use crate::paths::Page;
use crate::visit::{Outcome, Visit};

/// A page.
pub(crate) async fn show(page: Page, visit: &mut Visit<'_>) -> Outcome {
    match page {
        Page::Overview => overview::show(visit).await,
        Page::Jobs => jobs::show(visit).await,
        Page::Index => index::show(visit).await,
        Page::Groups => groups::show(visit).await,
        Page::Record => record::show(visit).await,
        Page::Dead => dead::show(visit).await,
        Page::Runs => runs::list(visit).await,
        Page::Run => runs::show(visit).await,
        Page::Cells => cells::list(visit).await,
        Page::Cell => cells::show(visit).await,
        Page::Registers => registers::list(visit).await,
        Page::Sessions => sessions::list(visit).await,
        Page::Session => sessions::show(visit).await,
        Page::Keys => keys::list(visit).await,
        Page::Key => key::show(visit).await,
        Page::SlowLog => slow_log::show(visit).await,
        Page::Latency => latency::show(visit).await,
        Page::Clients => clients::show(visit).await,
        Page::Configuration => configuration::show(visit).await,
        Page::Users => users::show(visit).await,
        Page::Memory => memory::show(visit).await,
        Page::Cluster => cluster::show(visit).await,
        Page::Prompt => prompt::show(visit).await,
        Page::Help => help::show(visit).await,
        Page::SignIn => visit.go(visit.link(Page::Overview)),
        Page::SignOut | Page::Style | Page::Icon | Page::Script => Ok(None),
    }
}

/// What a form of a page asks for.
pub(crate) async fn act(page: Page, visit: &mut Visit<'_>) -> Outcome {
    match page {
        Page::Groups => groups::act(visit).await,
        Page::Record => record::act(visit).await,
        Page::Dead => dead::act(visit).await,
        Page::Cells => cells::act_on_branch(visit).await,
        Page::Cell => cells::act(visit).await,
        Page::Session => sessions::act(visit).await,
        Page::Key => key::act(visit).await,
        Page::SlowLog => slow_log::act(visit).await,
        Page::Latency => latency::act(visit).await,
        Page::Clients => clients::act(visit).await,
        Page::Configuration => configuration::act(visit).await,
        Page::Users => users::act(visit).await,
        Page::Cluster => cluster::act(visit).await,
        Page::Prompt => prompt::act(visit).await,
        _ => Ok(None),
    }
}
