//! What a server refuses in a pipeline, because it follows another one or loads its data, is sent again. The server here
//! is a script: it refuses exactly what a test names.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use holdfast_client::{Config, Error, Query, StateStore, Store};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// An address at which there is no server.
const DEAD: &str = "127.0.0.1:1";

const REFUSALS: [&str; 4] = [
    "MASTERDOWN This server follows another",
    "READONLY You can't write against a read only replica.",
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    "LOADING the data is read",
];

/// A writer with one record, `r`.
struct Script {
    address: SocketAddr,
    /// What it says to the next commands that read the record.
    refusals: Arc<Mutex<VecDeque<&'static str>>>,
}

impl Script {
    async fn start() -> Script {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let refusals = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn({
            let refusals = refusals.clone();
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let refusals = refusals.clone();
                    tokio::spawn(async move { serve(client, &refusals).await });
                }
            }
        });
        Script { address, refusals }
    }

    fn refuse(&self, refusals: &[&'static str]) {
        self.refusals.lock().unwrap().extend(refusals);
    }

    /// True when it has refused all that it was to.
    fn is_done(&self) -> bool {
        self.refusals.lock().unwrap().is_empty()
    }

    /// A store that reads with the commands that every Redis has.
    async fn store(&self, more: &str) -> Store {
        let config = Config { plain: true, ..Config::new(format!("redis://{}{more}", self.address)) };
        Store::connect_with(&config).await.unwrap()
    }
}

async fn serve(client: TcpStream, refusals: &Mutex<VecDeque<&'static str>>) -> io::Result<()> {
    let mut client = BufReader::new(client);
    // The replies that EXEC will have; `None` outside of MULTI.
    let mut queued: Option<Vec<String>> = None;
    let mut is_aborted = false;
    loop {
        let request = read_request(&mut client).await?;
        let is_reading = matches!(request[0].as_str(), "HGETALL" | "PTTL");
        let refusal = {
            let mut refusals = refusals.lock().unwrap();
            let is_of_exec = refusals.front().is_some_and(|refusal| refusal.starts_with("EXECABORT"));
            let is_meant = if is_of_exec { request[0] == "EXEC" } else { is_reading };
            if is_meant { refusals.pop_front() } else { None }
        };
        let reply = match (request[0].as_str(), refusal) {
            ("EXEC", Some(refusal)) => {
                queued = None;
                format!("-{refusal}\r\n")
            }
            (_, Some(refusal)) => {
                is_aborted = queued.is_some();
                format!("-{refusal}\r\n")
            }
            ("ROLE", _) => "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n".to_owned(),
            ("SCAN", _) => "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nr\r\n".to_owned(),
            ("HGETALL", _) => "*2\r\n$1\r\na\r\n$1\r\n1\r\n".to_owned(),
            ("PTTL", _) => ":-1\r\n".to_owned(),
            ("MULTI", _) => {
                (queued, is_aborted) = (Some(Vec::new()), false);
                "+OK\r\n".to_owned()
            }
            ("EXEC", _) if is_aborted => {
                (queued, is_aborted) = (None, false);
                "-EXECABORT Transaction discarded because of previous errors.\r\n".to_owned()
            }
            ("EXEC", _) => {
                let replies = queued.take().expect("EXEC comes after MULTI");
                format!("*{}\r\n{}", replies.len(), replies.concat())
            }
            _ => "+OK\r\n".to_owned(),
        };
        let reply = match &mut queued {
            Some(replies) if is_reading && refusal.is_none() => {
                replies.push(reply);
                "+QUEUED\r\n".to_owned()
            }
            _ => reply,
        };
        client.write_all(reply.as_bytes()).await?;
    }
}

async fn read_request(client: &mut BufReader<TcpStream>) -> io::Result<Vec<String>> {
    let count = read_length(client).await?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; read_length(client).await? + 2];
        client.read_exact(&mut word).await?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8(word).expect("the tests send text"));
    }
    Ok(words)
}

/// The number of a line such as `*3` or `$7`.
async fn read_length(client: &mut BufReader<TcpStream>) -> io::Result<usize> {
    let mut line = String::new();
    if client.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line[1..].trim_end().parse().expect("a request is an array of strings"))
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(test);
}

#[test]
fn a_pipeline_that_is_refused_is_sent_again() {
    run(async {
        let script = Script::start().await;
        let store = script.store(&format!(",{DEAD}")).await;
        for refusal in REFUSALS {
            for refusals in [&[refusal][..], &[refusal, refusal], &[refusal, refusal, refusal]] {
                script.refuse(refusals);
                let record = store.get(b"r").await.unwrap().expect("it has the record");
                assert_eq!((record.fields.text("a"), script.is_done()), (Some("1"), true), "{refusal}");
                script.refuse(refusals);
                let found = store.scan(Query::prefix("r")).collect().await.unwrap();
                assert_eq!(found.len(), 1, "{refusal}");
                assert_eq!((found[0].1.fields.text("a"), script.is_done()), (Some("1"), true), "{refusal}");
            }
        }
    });
}

/// Regression: the server changed its role between the commands and EXEC, and the reader got an error that says nothing.
#[test]
fn a_transaction_that_is_refused_at_its_end_is_sent_again() {
    run(async {
        let script = Script::start().await;
        let store = script.store(&format!(",{DEAD}")).await;
        for refusal in [
            "EXECABORT Transaction discarded because of: MASTERDOWN This server follows another",
            "EXECABORT Transaction discarded because of: LOADING the data is read",
        ] {
            script.refuse(&[refusal]);
            assert!(store.get(b"r").await.unwrap().is_some(), "{refusal}");
            assert!(script.is_done());
        }
        script.refuse(&["EXECABORT Transaction discarded because of: NOPERM this user may not"]);
        assert!(matches!(store.get(b"r").await.unwrap_err(), Error::Refused(_)));
    });
}

#[test]
fn a_record_of_another_type_is_passed_over_in_a_scan() {
    run(async {
        let script = Script::start().await;
        let store = script.store(&format!(",{DEAD}")).await;
        script.refuse(&["WRONGTYPE Operation against a key holding the wrong kind of value"]);
        assert!(store.scan(Query::prefix("r")).collect().await.unwrap().is_empty());
        assert!(script.is_done());
    });
}

#[test]
fn other_refusals_are_the_answer() {
    run(async {
        let script = Script::start().await;
        let several = script.store(&format!(",{DEAD}")).await;
        let one = script.store("").await;
        let other = "NOPERM this user may not";
        for (store, refusal) in REFUSALS.map(|refusal| (&one, refusal)).into_iter().chain([(&several, other)]) {
            let is_loading = refusal.starts_with("LOADING");
            script.refuse(&[refusal]);
            let read = store.get(b"r").await.unwrap_err();
            assert!(matches!(read, Error::Refused(_)) && read.is_temporary() == is_loading, "{read}");
            script.refuse(&[refusal]);
            let scanned = store.scan(Query::prefix("r")).collect().await.unwrap_err();
            assert!(matches!(scanned, Error::Refused(_)) && scanned.is_temporary() == is_loading, "{scanned}");
            assert!(script.is_done());
        }
    });
}

#[test]
fn a_wrong_address_is_an_error_at_once_and_is_named() {
    let address = wire::free_address();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let config = Config {
            response_timeout: std::time::Duration::from_secs(60),
            ..Config::new(format!("redis://{address}"))
        };
        let Err(error @ Error::Unavailable(_)) = Store::connect_with(&config).await else { panic!("nothing listens") };
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    });
}
