//! Certificates and keys from files, in PEM. Knows forms of files; refuses to know what certificates are used for.

use crate::error::LoadError;
use pkcs8::EncryptedPrivateKeyInfo;
use pkcs8::der::Decode;
use rustix::fs::OFlags;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";
/// The authorities of a whole operating system take less.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The contents of a file: neither a device, which may never end, nor a pipe, which may never begin. Never waits, because it
/// runs on a thread that serves clients: some files of /proc look like regular ones, and have nothing to read yet.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let check = |found: &Metadata| match found.is_file() {
        true if found.len() > FILE_BYTES_MAX => Err(io::Error::other("it is too large")),
        true => Ok(()),
        false => Err(io::Error::other("it is not a file")),
    };
    // Before it is opened: that alone may do something to a device.
    check(&std::fs::metadata(path)?)?;
    let file = open(path)?;
    // The name may be that of something else by now.
    check(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX { Err(io::Error::other("it is too large")) } else { Ok(bytes) }
}

/// Opens a file without waiting for anything.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

/// The certificate of the server, and those that link it to an authority.
pub(crate) fn chain(path: &str) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let failed = |reason: String| LoadError::Certificate { path: path.to_owned(), reason };
    let bytes = read(path.as_ref()).map_err(|error| failed(error.to_string()))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.map_err(|error| failed(error.to_string()))?;
    if chain.is_empty() { Err(failed("there is no certificate in it".into())) } else { Ok(chain) }
}

/// The private key of the server, decrypted with the password if it is encrypted.
pub(crate) fn key(path: &str, password: &str) -> Result<PrivateKeyDer<'static>, LoadError> {
    let failed = |reason: String| LoadError::Key { path: path.to_owned(), reason };
    let text = read(path.as_ref()).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    let text = text.map_err(|error| failed(error.to_string()))?;
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        let reason = "it is encrypted in OpenSSL's old format; convert it with: openssl pkcs8 -topk8 -v2 aes-256-cbc";
        return Err(failed(reason.into()));
    }
    if let Some(begin) = text.find(&format!("-----BEGIN {ENCRYPTED}-----")) {
        if password.is_empty() {
            return Err(failed("it is encrypted, and tls-key-file-pass is not set".into()));
        }
        let pem = pkcs8::der::Document::from_pem(&text[begin..]).map_err(|error| failed(error.to_string()))?;
        let info = EncryptedPrivateKeyInfo::from_der(pem.1.as_bytes()).map_err(|error| failed(error.to_string()))?;
        let key =
            info.decrypt(password).map_err(|_| failed("it cannot be decrypted: is tls-key-file-pass right?".into()))?;
        return Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into());
    }
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| failed(error.to_string()))
}

/// The authorities whose certificates clients may show: those of the file, and of every file of the directory.
pub(crate) fn authorities(file: &str, dir: &str) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    if !file.is_empty() {
        let failed = |reason: String| LoadError::Authorities { path: file.to_owned(), reason };
        let bytes = read(file.as_ref()).map_err(|error| failed(error.to_string()))?;
        add(&mut roots, &bytes).map_err(failed)?;
    }
    if !dir.is_empty() {
        let failed = |reason: String| LoadError::Authorities { path: dir.to_owned(), reason };
        for entry in std::fs::read_dir(Path::new(dir)).map_err(|error| failed(error.to_string()))? {
            let path = entry.map_err(|error| failed(error.to_string()))?.path();
            // Other files may be there: OpenSSL looks at files by the hashes of their subjects.
            if let Ok(bytes) = read(&path) {
                let _ = add(&mut roots, &bytes);
            }
        }
    }
    match roots.is_empty() {
        true => Err(LoadError::Authorities {
            path: format!("{file} {dir}").trim().to_owned(),
            reason: "there is no certificate".into(),
        }),
        false => Ok(roots),
    }
}

fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), String> {
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_are_read_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (dir.path().join("file"), dir.path().join("link"), dir.path().join("pipe"));
        std::fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!((read(&file).unwrap(), read(&link).unwrap()), (b"text".to_vec(), b"text".to_vec()));
        mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
        symlink(&pipe, dir.path().join("to-pipe")).unwrap();
        for path in [&pipe, &dir.path().join("to-pipe"), Path::new("/dev/zero"), dir.path()] {
            assert_eq!(read(path).unwrap_err().to_string(), "it is not a file", "{}", path.display());
        }
        assert_eq!(read(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        // A pipe that takes the place of a file after it was looked at: nobody writes to it.
        assert!(open(&pipe).is_ok());
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, FILE_BYTES_MAX);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "it is too large");
        // This one says that it has no bytes.
        assert!(!read(Path::new("/proc/self/status")).unwrap().is_empty());
    }
}
