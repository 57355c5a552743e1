//! The client's side of TLS, for tools that ask a server something. Knows which files prove who is who; refuses to know
//! what is asked.

use crate::certificates;
use crate::error::LoadError;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::sync::Arc;

/// The files of a client, as the settings of a server name them.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The authorities that the server's certificate is checked against.
    pub ca_cert_file: String,
    pub ca_cert_dir: String,
    /// What the client shows; empty: nothing.
    pub cert_file: String,
    pub key_file: String,
    pub key_file_pass: String,
}

/// A connection that is encrypted.
pub type ClientStream<S> = StreamOwned<ClientConnection, S>;

/// Speaks TLS on a connection to `host`. The handshake takes place with the first bytes.
pub fn connect<S: Read + Write>(options: &ClientOptions, host: &str, socket: S) -> Result<ClientStream<S>, LoadError> {
    if options.ca_cert_file.is_empty() && options.ca_cert_dir.is_empty() {
        return Err(LoadError::NoServerAuthorities);
    }
    let roots = certificates::authorities(&options.ca_cert_file, &options.ca_cert_dir)?;
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(LoadError::Mismatch)?
        .with_root_certificates(roots);
    let config = match options.cert_file.is_empty() {
        true => config.with_no_client_auth(),
        false => {
            let chain = certificates::chain(&options.cert_file)?;
            let key = certificates::key(&options.key_file, &options.key_file_pass)?;
            config.with_client_auth_cert(chain, key).map_err(LoadError::Mismatch)?
        }
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|_| LoadError::Host(host.to_owned()))?;
    let session = ClientConnection::new(Arc::new(config), name).map_err(LoadError::Mismatch)?;
    Ok(StreamOwned::new(session, socket))
}
