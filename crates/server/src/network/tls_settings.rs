//! The TLS configuration that the settings describe, and the one in use. Knows settings by name; refuses to know files.

use arc_swap::ArcSwapOption;
use engine::Settings;
use engine::settings::{TlsAuthClients, TlsAuthClientsUser, row};
use std::sync::Arc;
use std::time::Duration;
use tls::{ClientCertificates, Context, LoadError, Options, UserField};

/// The configuration that new connections get. Connections keep the one that they began with, so a change drops none.
#[derive(Default)]
pub(crate) struct CurrentTls(ArcSwapOption<Context>);

impl CurrentTls {
    pub(crate) fn get(&self) -> Option<Arc<Context>> {
        self.0.load_full()
    }

    /// Uses a configuration from now on. Returns the one before.
    pub(super) fn replace(&self, context: Option<Arc<Context>>) -> Option<Arc<Context>> {
        self.0.swap(context)
    }
}

/// Reads the files that the settings name. On an error nothing changes.
pub(super) fn load(settings: &Settings) -> Result<Arc<Context>, LoadError> {
    Context::load(&options(settings)).map(Arc::new)
}

fn options(settings: &Settings) -> Options {
    let text = |row| settings.text(row).to_string();
    let lifetime = Duration::from_secs(settings.size(row::TLS_SESSION_CACHE_TIMEOUT));
    let session_cache = (settings.size(row::TLS_SESSION_CACHE_SIZE) as usize, lifetime);
    Options {
        cert_file: text(row::TLS_CERT_FILE),
        key_file: text(row::TLS_KEY_FILE),
        key_file_pass: text(row::TLS_KEY_FILE_PASS),
        ca_cert_file: text(row::TLS_CA_CERT_FILE),
        ca_cert_dir: text(row::TLS_CA_CERT_DIR),
        client_certificates: match settings.tls_auth_clients() {
            TlsAuthClients::No => ClientCertificates::Ignored,
            TlsAuthClients::Optional => ClientCertificates::Optional,
            TlsAuthClients::Yes => ClientCertificates::Required,
        },
        protocols: text(row::TLS_PROTOCOLS),
        ciphers: text(row::TLS_CIPHERS),
        ciphersuites: text(row::TLS_CIPHERSUITES),
        prefer_server_ciphers: settings.flag(row::TLS_PREFER_SERVER_CIPHERS),
        session_cache: settings.flag(row::TLS_SESSION_CACHING).then_some(session_cache),
        user_field: match settings.tls_auth_clients_user() {
            TlsAuthClientsUser::Off => UserField::Off,
            TlsAuthClientsUser::CommonName => UserField::CommonName,
            TlsAuthClientsUser::Uri => UserField::Uri,
        },
    }
}
