//! Protocols and ciphers by the names that OpenSSL gives them. Knows which of them rustls has; refuses to know keys and
//! files.

use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion};

/// The versions of `tls-protocols`: both, if the setting is empty. Older versions are accepted beside newer ones, and
/// not spoken. `None` if a word is unknown, or if no version is left.
pub(crate) fn protocols(text: &str) -> Option<Vec<&'static SupportedProtocolVersion>> {
    let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
    for word in text.split_whitespace() {
        match word.to_ascii_lowercase().as_str() {
            "tlsv1.3" => versions.push(&TLS13),
            "tlsv1.2" => versions.push(&TLS12),
            "tlsv1" | "tlsv1.1" => {}
            _ => return None,
        }
    }
    if text.trim().is_empty() {
        versions = vec![&TLS13, &TLS12];
    }
    (!versions.is_empty()).then_some(versions)
}

/// A cipher of TLS 1.2.
struct Cipher {
    suite: CipherSuite,
    /// OpenSSL's name of it.
    name: &'static str,
    /// The words of OpenSSL's notation that include it.
    words: &'static [&'static str],
}

/// In the order in which they are preferred, as in OpenSSL.
const CIPHERS: [Cipher; 6] = [
    Cipher {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        name: "ECDHE-ECDSA-AES256-GCM-SHA384",
        words: &["ECDSA", "aECDSA", "AES", "AES256", "AESGCM", "SHA384"],
    },
    Cipher {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        name: "ECDHE-RSA-AES256-GCM-SHA384",
        words: &["aRSA", "AES", "AES256", "AESGCM", "SHA384"],
    },
    Cipher {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        name: "ECDHE-ECDSA-CHACHA20-POLY1305",
        words: &["ECDSA", "aECDSA", "CHACHA20"],
    },
    Cipher {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        name: "ECDHE-RSA-CHACHA20-POLY1305",
        words: &["aRSA", "CHACHA20"],
    },
    Cipher {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        name: "ECDHE-ECDSA-AES128-GCM-SHA256",
        words: &["ECDSA", "aECDSA", "AES", "AES128", "AESGCM", "SHA256"],
    },
    Cipher {
        suite: CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        name: "ECDHE-RSA-AES128-GCM-SHA256",
        words: &["aRSA", "AES", "AES128", "AESGCM", "SHA256"],
    },
];

/// The words that include every cipher here: all are strong, of TLS 1.2, and exchange keys by ECDHE.
const OF_ALL: &[&str] = &[
    "ALL",
    "DEFAULT",
    "HIGH",
    "ECDHE",
    "EECDH",
    "kECDHE",
    "kEECDH",
    "TLSv1.2",
    "COMPLEMENTOFDEFAULT",
    "FIPS",
    "SUITEB128",
];

impl Cipher {
    fn is_in(&self, word: &str) -> bool {
        // `ECDHE+AESGCM` means both.
        word.split('+').all(|word| self.name == word || OF_ALL.contains(&word) || self.words.contains(&word))
    }
}

/// The ciphers of `tls-ciphers`, in OpenSSL's notation: words separated by `:`, `,` or spaces; `!word` removes ciphers for
/// good, `-word` removes them, `+word` moves them to the end. As in OpenSSL, unknown words are ignored, and `None` says that
/// no cipher is left.
pub(crate) fn ciphers(text: &str) -> Option<Vec<SupportedCipherSuite>> {
    let text = if text.trim().is_empty() { "DEFAULT" } else { text };
    let (mut chosen, mut banned): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let named = |word: &str| -> Vec<usize> { (0..CIPHERS.len()).filter(|index| CIPHERS[*index].is_in(word)).collect() };
    for word in text.split([':', ',', ' ', ';']).filter(|word| !word.is_empty()) {
        match word.split_at(1) {
            ("!", word) => {
                banned.extend(named(word));
                chosen.retain(|index| !banned.contains(index));
            }
            ("-", word) => {
                let removed = named(word);
                chosen.retain(|index| !removed.contains(index));
            }
            ("+", word) => {
                let last = named(word);
                let (last, first): (Vec<usize>, Vec<usize>) = chosen.iter().partition(|index| last.contains(index));
                chosen = [first, last].concat();
            }
            // @STRENGTH and @SECLEVEL=n: all of them are strong.
            ("@", _) => {}
            _ => {
                let new: Vec<usize> =
                    named(word).into_iter().filter(|i| !chosen.contains(i) && !banned.contains(i)).collect();
                chosen.extend(new);
            }
        }
    }
    let suites: Vec<SupportedCipherSuite> =
        chosen.iter().filter_map(|index| supported(CIPHERS[*index].suite)).collect();
    (!suites.is_empty()).then_some(suites)
}

/// The ciphers of `tls-ciphersuites`: all, if the setting is empty. As in OpenSSL, `None` if a name is unknown.
pub(crate) fn ciphersuites(text: &str) -> Option<Vec<SupportedCipherSuite>> {
    const NAMES: [(&str, CipherSuite); 3] = [
        ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
        ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ];
    if text.trim().is_empty() {
        return Some(NAMES.iter().filter_map(|(_, suite)| supported(*suite)).collect());
    }
    let mut suites = Vec::new();
    for word in text.split(':').map(str::trim) {
        let (_, suite) = NAMES.iter().find(|(name, _)| *name == word)?;
        let suite = supported(*suite)?;
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    Some(suites)
}

fn supported(suite: CipherSuite) -> Option<SupportedCipherSuite> {
    ALL_CIPHER_SUITES.iter().find(|supported| supported.suite() == suite).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        let name =
            |suite: &SupportedCipherSuite| CIPHERS.iter().find(|cipher| cipher.suite == suite.suite()).unwrap().name;
        ciphers(text).unwrap_or_default().iter().map(name).collect()
    }

    #[test]
    fn ciphers_are_chosen_as_openssl_chooses_them() {
        assert_eq!(names("").len(), 6);
        assert_eq!(names("DEFAULT:!MEDIUM").len(), 6);
        assert_eq!(names("ECDHE-RSA-AES128-GCM-SHA256"), ["ECDHE-RSA-AES128-GCM-SHA256"]);
        assert_eq!(names("ECDHE+CHACHA20"), ["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"]);
        assert_eq!(names("AESGCM:!aECDSA:+AES256"), ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"]);
        assert_eq!(names("AES128:-aRSA:ALL:@STRENGTH")[0], "ECDHE-ECDSA-AES128-GCM-SHA256");
        assert_eq!(names("!AES128:ALL").len(), 4);
        assert_eq!(names("AES128-SHA256:ECDHE-RSA-AES256-GCM-SHA384"), ["ECDHE-RSA-AES256-GCM-SHA384"]);
    }

    #[test]
    fn a_choice_of_nothing_is_refused() {
        for none in ["invalid", "RC4", "DHE-RSA-AES128-GCM-SHA256", "ALL:!ALL", ":", "+"] {
            assert!(ciphers(none).is_none(), "{none}");
        }
        assert!(ciphersuites("TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256").is_none());
        assert!(ciphersuites("invalid").is_none());
        assert!(protocols("TLSv1.1").is_none());
        assert!(protocols("TLSv1.2 SSLv3").is_none());
    }

    #[test]
    fn suites_and_protocols_come_in_the_order_that_is_given() {
        let suites = ciphersuites("TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384").unwrap();
        assert_eq!(suites.len(), 2);
        assert_eq!(suites[0].suite(), CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(protocols("").unwrap().len(), 2);
        assert_eq!(protocols("TLSv1 tlsV1.3").unwrap(), [&TLS13]);
    }
}
