//! TLS for the server's connections. Knows rustls, files of certificates and the names that Redis's settings use;
//! refuses to know sockets, settings and clients.
//!
//! - [`Options`] are what the settings say. [`Context::load`] reads the files and checks that all fit together.
//! - A [`Session`] is the TLS of one connection: encrypted bytes in, requests out, and back. It does no input or output.
//! - [`connect`] is the other side, for tools.

#![forbid(unsafe_code)]

mod certificates;
mod ciphers;
mod client;
mod context;
mod error;
mod names;
mod options;
mod resumption;
mod session;

pub use client::{ClientOptions, ClientStream, connect};
pub use context::Context;
pub use error::LoadError;
pub use names::{common_name, uris};
pub use options::{ClientCertificates, Options, UserField};
pub use session::{Decrypted, INCOMING_BYTES_MAX, Session, SessionError};
