//! What all sessions share: the server's certificate and key, the authorities of clients, versions and ciphers. Built as a
//! whole or not at all.

use crate::error::LoadError;
use crate::options::{ClientCertificates, Options, UserField};
use crate::resumption::Sessions;
use crate::session::Session;
use crate::{certificates, ciphers};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use std::sync::Arc;

/// A configuration of TLS that has been checked. Sessions keep the one that they began with.
pub struct Context {
    config: Arc<ServerConfig>,
    user_field: UserField,
}

impl Context {
    /// Reads the files that the options name.
    pub fn load(options: &Options) -> Result<Context, LoadError> {
        if options.cert_file.is_empty() {
            return Err(LoadError::NoCertificate);
        }
        if options.key_file.is_empty() {
            return Err(LoadError::NoKey);
        }
        let versions = ciphers::protocols(&options.protocols).ok_or(LoadError::Protocols)?;
        let old = ciphers::ciphers(&options.ciphers).ok_or_else(|| LoadError::Ciphers(options.ciphers.clone()))?;
        let new = ciphers::ciphersuites(&options.ciphersuites)
            .ok_or_else(|| LoadError::Ciphersuites(options.ciphersuites.clone()))?;
        let provider = Arc::new(CryptoProvider { cipher_suites: [new, old].concat(), ..aws_lc_rs::default_provider() });
        let chain = certificates::chain(&options.cert_file)?;
        let key = certificates::key(&options.key_file, &options.key_file_pass)?;
        let verifier = match options.client_certificates {
            ClientCertificates::Ignored => WebPkiClientVerifier::no_client_auth(),
            wanted => {
                if options.ca_cert_file.is_empty() && options.ca_cert_dir.is_empty() {
                    return Err(LoadError::NoAuthorities);
                }
                let roots = Arc::new(certificates::authorities(&options.ca_cert_file, &options.ca_cert_dir)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
                let verifier = match wanted {
                    ClientCertificates::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                verifier.build().map_err(|error| LoadError::Authorities {
                    path: options.ca_cert_file.clone(),
                    reason: error.to_string(),
                })?
            }
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(LoadError::Mismatch)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(LoadError::Mismatch)?;
        config.ignore_client_order = options.prefer_server_ciphers;
        match options.session_cache {
            Some((count, lifetime)) => config.session_storage = Arc::new(Sessions::new(count, lifetime)),
            None => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            }
        }
        Ok(Context { config: Arc::new(config), user_field: options.user_field })
    }

    /// The server's side of a new connection.
    pub fn accept(&self) -> Result<Session, rustls::Error> {
        Session::new(self.config.clone(), self.user_field)
    }
}
