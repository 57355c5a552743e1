//! Output buffer limits of the client classes (`client-output-buffer-limit`). Knows nothing of clients or buffers.

use super::memory::parse_memory;
use std::fmt;

/// The class of a client, which determines the limit of its output buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientClass {
    Normal,
    Replica,
    Pubsub,
}

/// A client is dropped when its unsent replies pass `hard_bytes`, or stay above `soft_bytes` for `soft_seconds`.
/// Zero bytes mean no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferLimit {
    pub hard_bytes: u64,
    pub soft_bytes: u64,
    pub soft_seconds: u64,
}

/// Indexed by `ClientClass`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BufferLimits(pub(super) [BufferLimit; 3]);

/// Replicas are still called slaves where the limits are printed, as in Redis.
const PRINTED: [&str; 3] = ["normal", "slave", "pubsub"];

impl BufferLimits {
    /// Replaces the limits of the classes that `text` names; all of `text` must be valid.
    pub(super) fn updated(mut self, text: &str) -> Result<BufferLimits, &'static str> {
        if text.is_empty() {
            return Ok(self);
        }
        let words: Vec<&str> = text.split(' ').collect();
        let (groups, []) = words.as_chunks::<4>() else {
            return Err("Wrong number of arguments in buffer limit configuration.");
        };
        for [class, hard, soft, seconds] in groups {
            let class = class_named(class).ok_or("Invalid client class specified in buffer limit configuration.")?;
            self.0[class as usize] = limit(hard, soft, seconds)
                .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
        }
        Ok(self)
    }
}

impl fmt::Display for BufferLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (class, limit)) in PRINTED.iter().zip(&self.0).enumerate() {
            let space = if i == 0 { "" } else { " " };
            let BufferLimit { hard_bytes, soft_bytes, soft_seconds } = limit;
            write!(f, "{space}{class} {hard_bytes} {soft_bytes} {soft_seconds}")?;
        }
        Ok(())
    }
}

fn class_named(name: &str) -> Option<ClientClass> {
    match name.to_ascii_lowercase().as_str() {
        "normal" => Some(ClientClass::Normal),
        "slave" | "replica" => Some(ClientClass::Replica),
        "pubsub" => Some(ClientClass::Pubsub),
        _ => None,
    }
}

fn limit(hard: &str, soft: &str, seconds: &str) -> Option<BufferLimit> {
    let seconds: i64 = seconds.parse().ok()?;
    Some(BufferLimit {
        hard_bytes: parse_memory(hard)?,
        soft_bytes: parse_memory(soft)?,
        soft_seconds: u64::try_from(seconds).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Result<String, &'static str> {
        let start = BufferLimits::default().updated("slave 256mb 64mb 60 pubsub 32mb 8mb 60")?;
        Ok(start.updated(text)?.to_string())
    }

    #[test]
    fn classes_left_out_keep_their_limits() {
        let cases = [
            ("", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
            ("replica 1 2 3", "normal 0 0 0 slave 1 2 3 pubsub 33554432 8388608 60"),
            ("PUBSUB 1kb 2 3 normal 4 5 6", "normal 4 5 6 slave 268435456 67108864 60 pubsub 1024 2 3"),
            ("normal 1 1 1 normal 2 2 2", "normal 2 2 2 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
        ];
        for (input, printed) in cases {
            assert_eq!(set(input).as_deref(), Ok(printed), "{input}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let count = "Wrong number of arguments in buffer limit configuration.";
        for input in ["zzz", "normal 1 2", "normal 1 1 1 slave", "normal  0 0 0", " normal 1 1 1"] {
            assert_eq!(set(input), Err(count), "{input}");
        }
        let class = "Invalid client class specified in buffer limit configuration.";
        for input in ["master 1 2 3", "foo 1 2 3"] {
            assert_eq!(set(input), Err(class), "{input}");
        }
        let number = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        for input in ["normal a 0 0", "normal 0 -1 0", "normal 0 0 -1", "normal 0 0 1k"] {
            assert_eq!(set(input), Err(number), "{input}");
        }
    }
}
