//! What the settings say about TLS, as they say it. Refuses to know what is in the files.

use std::time::Duration;

/// The settings of TLS. An empty text means that the setting is not given.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub cert_file: String,
    pub key_file: String,
    /// The password of the key file.
    pub key_file_pass: String,
    pub ca_cert_file: String,
    pub ca_cert_dir: String,
    pub client_certificates: ClientCertificates,
    /// Versions, such as `TLSv1.2 TLSv1.3`.
    pub protocols: String,
    /// Ciphers of TLS 1.2, in OpenSSL's notation.
    pub ciphers: String,
    /// Ciphers of TLS 1.3.
    pub ciphersuites: String,
    pub prefer_server_ciphers: bool,
    /// How many sessions are remembered, and for how long; `None` if none are.
    pub session_cache: Option<(usize, Duration)>,
    pub user_field: UserField,
}

/// Whether clients have to show a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are not asked for one.
    Ignored,
    /// One that they show must be valid.
    Optional,
    #[default]
    Required,
}

/// The field of a client's certificate that names its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserField {
    #[default]
    Off,
    /// The common name of the subject.
    CommonName,
    /// The URIs among the alternative names of the subject.
    Uri,
}
