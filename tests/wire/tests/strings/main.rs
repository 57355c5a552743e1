//! String commands.

mod delex;
mod get;
mod increx;
mod msetex;
mod numbers;
mod ranges;
mod set;
mod set_if;

use wire::Session;

/// Whether the server has a command that its version says nothing about; says that the test is skipped if not.
fn has_command(session: &Session, name: &str) -> bool {
    let has = session.connect().run(&format!("COMMAND INFO {name}")).items()[0].to_string().starts_with('[');
    if !has {
        wire::skip(&format!("{} has no {name}", session.product()));
    }
    has
}
