//! How servers are reached: the files of TLS, passwords, and how long to wait. Knows no addresses.

use engine::Settings;
use engine::settings::row;
use std::path::Path;
use std::time::Duration;
use tls::ClientOptions;

const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// The authorities that the system trusts, where it keeps them in one file.
const SYSTEM_AUTHORITIES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) tls: ClientOptions,
    /// The name that a certificate must have; `None`: the host.
    pub(crate) tls_name: Option<String>,
    pub(crate) connects_within: Duration,
    pub(crate) answers_within: Duration,
}

impl Way {
    /// Without authorities, those that the system trusts are used.
    pub(crate) fn new(mut tls: ClientOptions) -> Way {
        if tls.ca_cert_file.is_empty() && tls.ca_cert_dir.is_empty() {
            let found = SYSTEM_AUTHORITIES.iter().find(|file| Path::new(file).exists());
            tls.ca_cert_file = found.map(|file| (*file).to_owned()).unwrap_or_default();
        }
        Way::with(tls)
    }

    fn with(tls: ClientOptions) -> Way {
        Way { tls, tls_name: None, connects_within: CONNECTS_WITHIN, answers_within: ANSWERS_WITHIN }
    }

    /// With the files that the settings of a server name, and no others: it is that server which is asked.
    pub(crate) fn of_settings(settings: &Settings) -> Way {
        let text = |row| settings.text(row).to_string();
        Way::with(ClientOptions {
            ca_cert_file: text(row::TLS_CA_CERT_FILE),
            ca_cert_dir: text(row::TLS_CA_CERT_DIR),
            cert_file: text(row::TLS_CERT_FILE),
            key_file: text(row::TLS_KEY_FILE),
            key_file_pass: text(row::TLS_KEY_FILE_PASS),
        })
    }

    /// Waits no longer than this for a connection, and for each answer.
    pub(crate) fn within(self, connects_within: Duration, answers_within: Duration) -> Way {
        Way { connects_within, answers_within, ..self }
    }
}

/// The password: that of the command line, then REDISCLI_AUTH, then the one of the settings.
pub(crate) fn password(given: Option<&String>, settings: &Settings) -> Option<String> {
    let of_settings = || Some(settings.requirepass().to_string()).filter(|password| !password.is_empty());
    given.cloned().or_else(|| std::env::var("REDISCLI_AUTH").ok()).or_else(of_settings)
}
