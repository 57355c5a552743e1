//! The numbers of a session's requests, and when a request is retried. Knows no connection and no command.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::{ErrorKind, RedisError};
use tokio::time::Instant;

use crate::addresses::is_not_let_in;
use crate::error::Error;
use crate::pause::randomized;

/// The numbers of a session's requests. A number is open while its request is held; LOW is the lowest open one.
pub(crate) struct RequestNumbers {
    /// The first number that this program gives.
    first: u64,
    following: u64,
    open: BTreeSet<u64>,
}

impl RequestNumbers {
    /// The next request gets this number.
    pub(crate) fn new(following: u64) -> RequestNumbers {
        RequestNumbers { first: following, following, open: BTreeSet::new() }
    }

    /// The number of the next request.
    pub(crate) fn following(&self) -> u64 {
        self.following
    }

    pub(crate) fn begin(&mut self) -> u64 {
        let number = self.following;
        self.open.insert(number);
        self.following += 1;
        number
    }

    /// Takes a number that an earlier program gave. False if this one has given it, or has a request under it without a
    /// reply: a number has one request.
    pub(crate) fn begin_again(&mut self, number: u64) -> bool {
        let is_own = (self.first..self.following).contains(&number) || self.open.contains(&number);
        if number == 0 || is_own {
            return false;
        }
        self.open.insert(number);
        self.following = self.following.max(number.saturating_add(1));
        true
    }

    pub(crate) fn end(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// The client has the replies of all requests below this number.
    pub(crate) fn low(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.following)
    }
}

/// The attempts of one request: whether it is retried, and what is known of it.
pub(crate) struct Insistence {
    deadline: Instant,
    tried: u32,
    /// An answer was lost.
    pub(crate) maybe_applied: bool,
}

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const DOUBLINGS_MAX: u32 = 7;

impl Insistence {
    pub(crate) fn new(retry_for: Duration) -> Insistence {
        let (now, year) = (Instant::now(), Duration::from_secs(365 * 24 * 3600));
        Insistence { deadline: now + retry_for.min(year), tried: 0, maybe_applied: false }
    }

    /// How long to wait before the next try, which grows and differs between clients; `None` if there is none.
    pub(crate) fn pause(&mut self, error: &Error) -> Option<Duration> {
        self.maybe_applied |= matches!(error, Error::Unavailable(_));
        if !error.is_temporary() || Instant::now() >= self.deadline {
            return None;
        }
        let longest = FIRST_PAUSE * 2_u32.pow(self.tried.min(DOUBLINGS_MAX));
        self.tried += 1;
        Some(randomized(longest))
    }

    /// Why a request has no answer, after the last error; or that error, if it is the answer. A server that does not
    /// let the client in has said nothing of a try before.
    pub(crate) fn cause(&self, error: Error) -> Result<RedisError, Error> {
        let is_temporary = error.is_temporary();
        match error {
            Error::Unavailable(cause) | Error::NotWriter(cause) => Ok(cause),
            Error::NoWriter(answers) => Ok((ErrorKind::Io, "none of the servers writes", answers.to_string()).into()),
            Error::Refused(cause) if is_temporary || self.maybe_applied && is_not_let_in(&cause) => Ok(cause),
            error => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::ErrorKind;

    use super::*;

    fn gone() -> Error {
        Error::from(RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe)))
    }

    fn refusal(code: &str) -> Error {
        redis::parse_redis_value(format!("-{code} a sentence\r\n").as_bytes())
            .unwrap()
            .extract_error()
            .unwrap_err()
            .into()
    }

    #[test]
    fn low_is_the_lowest_request_without_a_reply() {
        let mut numbers = RequestNumbers::new(1);
        assert_eq!(numbers.low(), 1);
        assert_eq!([(); 4].map(|()| numbers.begin()), [1, 2, 3, 4]);
        assert_eq!(numbers.low(), 1);
        numbers.end(2);
        assert_eq!(numbers.low(), 1);
        numbers.end(1);
        assert_eq!(numbers.low(), 3);
        numbers.end(4);
        numbers.end(3);
        assert_eq!((numbers.low(), numbers.begin()), (5, 5));
        assert!(!numbers.begin_again(1) && !numbers.begin_again(5), "all are this program's own");
        assert_eq!((numbers.low(), numbers.following()), (5, 6));
    }

    #[test]
    fn a_number_of_an_earlier_program_has_one_request_at_a_time() {
        let mut numbers = RequestNumbers::new(8);
        assert!(numbers.begin_again(7) && !numbers.begin_again(7) && !numbers.begin_again(0));
        assert_eq!((numbers.low(), numbers.begin(), numbers.low()), (7, 8, 7));
        assert!(!numbers.begin_again(8));
        numbers.end(7);
        assert!(numbers.begin_again(7), "the server says whether it still has its reply");
        numbers.end(7);
        assert!(numbers.begin_again(9), "the number that was next when the earlier program ended");
        assert_eq!((numbers.low(), numbers.begin()), (8, 10));
    }

    #[test]
    fn a_request_is_sent_again_when_its_answer_is_lost() {
        let mut insistence = Insistence::new(Duration::from_secs(60));
        assert!(insistence.pause(&refusal("LOADING")).is_some());
        assert!(insistence.pause(&Error::NoWriter(crate::NoWriter { answers: Vec::new() })).is_some());
        assert!(!insistence.maybe_applied);
        assert!(insistence.pause(&refusal("FENCED")).is_some());
        assert!(insistence.maybe_applied, "it may have run before another server took over");
        for _ in 0..12 {
            let pause = insistence.pause(&gone()).unwrap();
            assert!(pause >= FIRST_PAUSE / 2 && pause <= FIRST_PAUSE * 128, "{pause:?}");
        }
        assert!(insistence.maybe_applied);
        assert!(insistence.pause(&refusal("OOM")).is_none());
        assert!(Insistence::new(Duration::MAX).pause(&gone()).is_some());
    }

    #[test]
    fn the_last_error_says_whether_the_outcome_is_known() {
        let mut late = Insistence::new(Duration::ZERO);
        assert!(matches!(late.cause(refusal("NOPERM")), Err(Error::Refused(_))));
        assert!(late.pause(&gone()).is_none());
        let auth = Error::from(RedisError::from((ErrorKind::AuthenticationFailed, "who?")));
        for unknown in [gone(), refusal("LOADING"), refusal("FENCED"), auth, refusal("NOPERM")] {
            assert!(late.cause(unknown).is_ok());
        }
        assert!(matches!(late.cause(refusal("OOM")), Err(Error::Refused(_))));
    }
}
