//! Why settings and files make no configuration of TLS. Refuses to know how they are read.

/// Why the settings and files make no configuration. The sentences are for the server log, in Redis's words where it has
/// such.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("No tls-cert-file configured!")]
    NoCertificate,
    #[error("No tls-key-file configured!")]
    NoKey,
    #[error("Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled!")]
    NoAuthorities,
    #[error("tls-ca-cert-file or tls-ca-cert-dir is needed to check the certificate of the server")]
    NoServerAuthorities,
    #[error("Failed to load certificate: {path}: {reason}")]
    Certificate { path: String, reason: String },
    #[error("Failed to load private key: {path}: {reason}")]
    Key { path: String, reason: String },
    #[error("Failed to configure CA certificate(s) file/directory: {path}: {reason}")]
    Authorities { path: String, reason: String },
    #[error(
        "Invalid tls-protocols specified. Use TLSv1.2, TLSv1.3 or both, separated by a space: older versions are not safe"
    )]
    Protocols,
    #[error("Failed to configure ciphers: {0}")]
    Ciphers(String),
    #[error("Failed to configure ciphersuites: {0}")]
    Ciphersuites(String),
    #[error("{0} is no name of a host")]
    Host(String),
    #[error("The certificate, the key and the ciphers do not fit together: {0}")]
    Mismatch(rustls::Error),
}
