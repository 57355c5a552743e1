//! The operator's console: pages that a browser shows, made on the server. Everything that a page shows or changes is a command,
//! which runs as the user that has signed in, over a connection like that of any client. Refuses to know HTTP's bytes, sockets of
//! browsers and what commands do.
//!
//! | file | has |
//! | --- | --- |
//! | `answer` | one request: sign-in, session, the page, headers |
//! | `console` | what is kept: sessions, the last hour, the way to this server |
//! | `paths` | which page a path is |
//! | `forms` | queries, forms and cookies of browsers |
//! | `guard` | whether a request comes from a page of this console |
//! | `sessions` | who has signed in |
//! | `visit` | what a page may use: commands as its user, links, forms |
//! | `talk`, `reply` | a connection to this server, and its replies |
//! | `layout` | the frame of every page |
//! | `html`, `figures`, `charts` | markup, numbers and drawings |
//! | `history` | the last hour |
//! | `pages` | a file for each page |
//! | `assets` | the style sheet and the script, which are part of the binary |

#![forbid(unsafe_code)]

mod answer;
mod charts;
mod console;
mod figures;
pub mod forms;
pub mod guard;
mod history;
mod html;
mod layout;
mod pages;
pub mod paths;
pub mod reply;
mod sessions;
mod talk;
mod visit;

pub use answer::{Asked, Said};
pub use console::Console;
pub use paths::is_of_console;
pub use talk::Opener;
