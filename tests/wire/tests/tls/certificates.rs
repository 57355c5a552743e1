//! Authorities, certificates and keys for tests, made when they are asked for. Knows nothing of servers.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    SanType, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).unwrap();
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Authority { issuer: Issuer::new(params, key), pem, der }
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.der.clone()
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for this name, which is also the common name.
    pub(crate) fn issue(&self, name: &str) -> Issued {
        self.issue_with(name, |_| {})
    }

    pub(crate) fn issue_expired(&self, name: &str) -> Issued {
        self.issue_with(name, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2020, 2, 1);
        })
    }

    /// A certificate whose alternative name is a URI.
    pub(crate) fn issue_uri(&self, name: &str, uri: &str) -> Issued {
        self.issue_with(name, |params| params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())])
    }

    fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}

/// The files of a server, in a directory.
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) authority: PathBuf,
}

impl Files {
    pub(crate) fn write(dir: &Path, server: &Issued, clients: &Authority) -> Files {
        let files =
            Files { certificate: dir.join("server.crt"), key: dir.join("server.key"), authority: dir.join("ca.crt") };
        fs::write(&files.authority, clients.pem()).unwrap();
        files.replace(server);
        files
    }

    /// Another certificate and its key, under the same names.
    pub(crate) fn replace(&self, server: &Issued) {
        fs::write(&self.certificate, &server.certificate).unwrap();
        fs::write(&self.key, &server.key).unwrap();
    }
}
