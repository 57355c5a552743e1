//! Conversations as Redis has them, in one piece and byte by byte, and damaged ones.

use super::*;
use crate::Value;
use test_random::Random;

const ID: &str = "0123456789abcdef0123456789abcdef01234567";
const MARK: &str = "abcdefghijklmnopqrstuvwxyz0123456789ABCD";
const BYTES_MAX: usize = 1 << 20;

/// Gives one byte at a time, and reports a timeout before each.
struct Slowly<'a>(&'a [u8], bool);

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        match self.1 {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => self.0.read(&mut buffer[..1]),
        }
    }
}

/// Reads commands to the end, as words, with what each adds to the offset.
fn commands<R: Read>(stream: &mut ReplicationStream<R>) -> (Vec<(String, u64)>, Option<String>) {
    let mut read = Vec::new();
    loop {
        match stream.advance() {
            Ok(Next::Command { command, bytes }) => {
                let words: Vec<String> =
                    command.as_request().iter().map(|word| word.escape_ascii().to_string()).collect();
                read.push((words.join(" "), bytes));
            }
            Ok(Next::NotYet) => {}
            Ok(Next::Ended) => return (read, None),
            Err(error) => return (read, Some(error.to_string())),
        }
    }
}

fn rdb() -> Vec<u8> {
    let mut file = b"REDIS0010\xfa\x0erepl-stream-db\xc0\x03\xfe\x02\0\x01a\x01b\xff".to_vec();
    file.extend_from_slice(&[0; 8]);
    file
}

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n";

#[test]
fn a_full_resynchronisation_is_read() {
    let length = format!("${}\r\n", rdb().len()).into_bytes();
    let by_length = [&length[..], &rdb()].concat();
    let by_mark = [format!("$EOF:{MARK}\r\n").as_bytes(), &rdb(), MARK.as_bytes()].concat();
    for payload in [by_length, by_mark] {
        let head = format!("+PONG\r\n+OK\r\n\n+FULLRESYNC {ID} 77\r\n\n\n");
        let bytes = [head.as_bytes(), &payload, PING, b"\n", SET, PING].concat();
        let mut stream = ReplicationStream::new(&bytes[..], BYTES_MAX);
        assert_eq!(stream.line().unwrap(), "+PONG");
        assert_eq!(stream.line().unwrap(), "+OK");
        let id = ReplicationId::parse(ID).unwrap();
        assert_eq!(stream.sync_reply().unwrap(), SyncReply::Full { id, offset: 77 });
        stream.begin_payload().unwrap();
        let Some(Item::Key(item)) = stream.item().unwrap() else { panic!("a key") };
        assert_eq!((item.db, &*item.key, &item.value), (2, &b"a"[..], &Value::String(b"b".to_vec())));
        assert_eq!(stream.item().unwrap(), None);
        assert_eq!(stream.stream_db(), Some(3));
        let (read, error) = commands(&mut stream);
        let expected = [("PING", PING.len()), ("SET a \\r\\n", SET.len() + 1), ("PING", PING.len())];
        assert_eq!(read, expected.map(|(text, len)| (text.to_owned(), len as u64)));
        assert_eq!(error, None);
    }
}

#[test]
fn a_timeout_loses_nothing() {
    let bytes = [format!("\n+CONTINUE {ID}\r\n").as_bytes(), SET, b"\r\n", PING].concat();
    let mut stream = ReplicationStream::new(Slowly(&bytes, false), BYTES_MAX);
    let reply = loop {
        match stream.sync_reply() {
            Err(error) if error.is_timeout() => {}
            reply => break reply.unwrap(),
        }
    };
    assert_eq!(reply, SyncReply::Continue { id: ReplicationId::parse(ID) });
    let (read, error) = commands(&mut stream);
    assert_eq!(read.iter().map(|(_, bytes)| bytes).sum::<u64>(), (SET.len() + 2 + PING.len()) as u64);
    assert_eq!((read.len(), error), (2, None));
}

#[test]
fn replies_to_psync_are_told_apart() {
    let parse = SyncReply::parse;
    assert_eq!(parse("+CONTINUE"), Some(SyncReply::Continue { id: None }));
    assert!(matches!(parse("-NOMASTERLINK Can't SYNC while not connected with my master"), Some(SyncReply::NotNow(_))));
    assert!(matches!(parse("-LOADING Redis is loading the dataset in memory"), Some(SyncReply::NotNow(_))));
    for refusal in ["-ERR unknown command 'PSYNC'", "-NOPERM this user has no permissions to run the 'psync' command"] {
        assert_eq!(parse(refusal), Some(SyncReply::Refused(refusal[1..].to_owned())));
    }
    let short = format!("+FULLRESYNC {} 1", &ID[1..]);
    let negative = format!("+FULLRESYNC {ID} -1");
    for nonsense in ["", "+OK", "+FULLRESYNC", "+CONTINUE x", "$5", &short, &negative] {
        assert_eq!(parse(nonsense), None, "{nonsense:?}");
    }
}

#[test]
fn damage_is_an_error() {
    let read_all = |bytes: &[u8]| -> Result<(), String> {
        let mut stream = ReplicationStream::new(bytes, BYTES_MAX);
        stream.begin_payload().map_err(|error| error.to_string())?;
        while stream.item().map_err(|error| error.to_string())?.is_some() {}
        commands(&mut stream).1.map_or(Ok(()), Err)
    };
    let long = format!("${}\r\n", rdb().len() + 1).into_bytes();
    let other_mark = [format!("$EOF:{MARK}\r\n").as_bytes(), &rdb(), ID.as_bytes()].concat();
    let length = format!("${}\r\n", rdb().len()).into_bytes();
    for (what, bytes) in [
        ("no payload", b"+OK\r\n".to_vec()),
        ("a short mark", b"$EOF:abc\r\n".to_vec()),
        ("a wrong length", [&long[..], &rdb(), b"x"].concat()),
        ("another mark", other_mark),
        ("cut off", [&length[..], &rdb()[..20]].concat()),
        ("no command", [&length[..], &rdb(), b"PING\r\n"].concat()),
        ("a broken command", [&length[..], &rdb(), b"*1\r\n+PING\r\n"].concat()),
    ] {
        assert!(read_all(&bytes).is_err(), "{what}");
    }
    assert_eq!(read_all(&[&length[..], &rdb(), &PING[..9]].concat()), Ok(()), "a command that is cut off is left out");
    let endless = vec![b'a'; LINE_BYTES_MAX + 1];
    assert!(ReplicationStream::new(&endless[..], BYTES_MAX).line().is_err());
}

#[test]
fn no_bytes_panic() {
    let mut random = Random::new();
    let length = format!("${}\r\n", rdb().len()).into_bytes();
    let good = [&length[..], &rdb(), SET, PING].concat();
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(random.below(bytes.len() + 1));
        let mut stream = ReplicationStream::new(&bytes[..], BYTES_MAX);
        if stream.begin_payload().is_ok() {
            while let Ok(Some(_)) = stream.item() {}
        }
    }
}
