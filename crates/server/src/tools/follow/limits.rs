//! How long a request may be that the target takes. It closes the connection of a client that sends a longer one, and would
//! do so again on every new connection, so such a request is refused here, with the setting that stands in the way.

use crate::tools::link::{Client, Refusal, Reply};
use anyhow::{Result, anyhow, bail};

/// How much of a name an error shows.
const NAME_BYTES_SHOWN: usize = 64;

/// The settings of the target that limit a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of one argument (`proto-max-bulk-len`).
    pub(super) argument_bytes_max: u64,
    /// Of a request, and of what is queued after MULTI (`client-query-buffer-limit`).
    pub(super) request_bytes_max: u64,
}

impl Limits {
    pub(super) fn of(client: &mut Client) -> Result<Limits> {
        let mut setting = |name: &str| -> Result<u64> {
            let reply = client.must(&[b"CONFIG", b"GET", name.as_bytes()])?;
            let value = reply.items().get(1).and_then(Reply::text).and_then(|text| text.parse().ok());
            value.ok_or_else(|| anyhow!("the target does not say its {name}"))
        };
        Ok(Limits {
            argument_bytes_max: setting("proto-max-bulk-len")?,
            request_bytes_max: setting("client-query-buffer-limit")?,
        })
    }

    /// An error for a request that is too long.
    pub(super) fn check(&self, words: &[&[u8]]) -> Result<()> {
        let longest = words.iter().map(|word| word.len() as u64).max().unwrap_or(0);
        let (bytes, limit, setting) = match encoded_len(words) {
            _ if longest > self.argument_bytes_max => (longest, self.argument_bytes_max, "proto-max-bulk-len"),
            all if all > self.request_bytes_max => (all, self.request_bytes_max, "client-query-buffer-limit"),
            _ => return Ok(()),
        };
        let what = if setting == "proto-max-bulk-len" { "an argument" } else { "all" };
        bail!(
            "{} has {what} of {bytes} bytes, and the target takes {limit} at most: raise its {setting}, and start the same command again",
            words.iter().take(2).map(|word| shown(word)).collect::<Vec<_>>().join(" ")
        )
    }
}

/// The name of a key or command, shortened.
pub(super) fn shown(name: &[u8]) -> String {
    let dots = if name.len() > NAME_BYTES_SHOWN { "..." } else { "" };
    format!("{}{dots}", name[..name.len().min(NAME_BYTES_SHOWN)].escape_ascii())
}

fn encoded_len(words: &[&[u8]]) -> u64 {
    // "$", two ends of lines, and a length of up to ten digits.
    const FRAME_BYTES: u64 = 15;
    words.iter().map(|word| word.len() as u64 + FRAME_BYTES).sum::<u64>() + FRAME_BYTES
}

/// What an error of a load means. A target without memory gets none by beginning again: all data would be sent for ever.
pub(super) fn explain(error: anyhow::Error) -> anyhow::Error {
    let refusal = error.downcast_ref::<Refusal>().map(|refusal| (refusal.text.clone(), refusal.to_string()));
    match refusal {
        Some((text, said)) if text.starts_with("OOM") => {
            anyhow!("{said} All data does not fit: raise maxmemory of the target, and start the same command again")
        }
        Some((text, said)) if text.starts_with("ERR Protocol error") => {
            anyhow!("{said}: see proto-max-bulk-len and client-query-buffer-limit of the target")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_named() {
        let limits = Limits { argument_bytes_max: 10, request_bytes_max: 100 };
        assert!(limits.check(&[b"SET", b"a", b"0123456789"]).is_ok());
        let said = |words: &[&[u8]]| limits.check(words).unwrap_err().to_string();
        let argument = said(&[b"SET", b"big\n", b"0123456789a"]);
        assert!(argument.contains("SET big\\n has an argument of 11 bytes") && argument.contains("proto-max-bulk-len"));
        let request = said(&[b"RPUSH", b"k", b"012345", b"012345", b"012345"]);
        assert!(request.contains("RPUSH k has all of") && request.contains("client-query-buffer-limit"), "{request}");
    }
}
