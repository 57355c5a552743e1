//! A client that asks and waits, or sends many requests before it reads the replies.

use super::reply::Reply;
use super::socket::Socket;
use super::way::Way;
use crate::config::ServerUrl;
use anyhow::{Context, Result};
use std::io::{BufReader, ErrorKind, Write};

pub(crate) struct Client {
    socket: BufReader<Socket>,
    unsent: Vec<u8>,
    url: ServerUrl,
}

impl Client {
    /// Connects and authenticates.
    pub(crate) fn connect(url: &ServerUrl, way: &Way) -> Result<Client> {
        let socket = BufReader::with_capacity(64 << 10, Socket::connect(url, way)?);
        let mut client = Client { socket, unsent: Vec::new(), url: url.clone() };
        if let Some(login) = login(url) {
            let login: Vec<&[u8]> = login.iter().map(|word| word.as_bytes()).collect();
            client.must(&login)?;
        }
        Ok(client)
    }

    pub(crate) fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Adds a request to those that the next flush sends.
    pub(crate) fn queue(&mut self, words: &[&[u8]]) {
        encode(words, &mut self.unsent);
    }

    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let unsent = std::mem::take(&mut self.unsent);
        let socket = self.socket.get_mut();
        let sent = socket.write_all(&unsent).and_then(|()| socket.flush());
        sent.map_err(silence).with_context(|| self.url.place.to_string())?;
        self.unsent = unsent;
        self.unsent.clear();
        Ok(())
    }

    /// The next reply.
    pub(crate) fn read(&mut self) -> Result<Reply> {
        Reply::read(&mut self.socket).map_err(silence).with_context(|| self.url.place.to_string())
    }

    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply> {
        self.queue(words);
        self.flush()?;
        self.read()
    }

    /// Asks, and fails if the reply is an error.
    pub(crate) fn must(&mut self, words: &[&[u8]]) -> Result<Reply> {
        match self.ask(words)? {
            Reply::Error(text) => Err(self.refused(&text).context(String::from_utf8_lossy(words[0]).into_owned())),
            reply => Ok(reply),
        }
    }

    /// The error for a reply that is one.
    pub(crate) fn refused(&self, text: &str) -> anyhow::Error {
        Refusal { place: self.url.place.to_string(), text: text.to_owned() }.into()
    }
}

/// What a time that is over means.
fn silence(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => error.context("it does not answer in time"),
        _ => error,
    }
}

/// A reply that is an error.
#[derive(Debug)]
pub(crate) struct Refusal {
    place: String,
    pub(crate) text: String,
}

impl Refusal {
    /// True when the server cannot take a request now.
    pub(crate) fn passes(&self) -> bool {
        passes(&self.text)
    }
}

impl std::error::Error for Refusal {}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

fn passes(error: &str) -> bool {
    let words = ["LOADING", "MISCONF", "OOM", "BUSY", "READONLY", "MASTERDOWN", "NOREPLICAS", "TRYAGAIN"];
    words.contains(&error.split(' ').next().unwrap_or_default())
}

/// The request that a server with a password wants first.
pub(crate) fn login(url: &ServerUrl) -> Option<Vec<String>> {
    let password = url.password.clone()?;
    let user = url.user.iter().cloned();
    Some(std::iter::once("AUTH".to_owned()).chain(user).chain([password]).collect())
}

/// Appends a request as clients send it.
pub(crate) fn encode(words: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// An error that says nothing about the request: the server is not able to take any now, or this user may not send it.
pub(crate) fn is_about_the_server(error: &str) -> bool {
    passes(error) || ["NOAUTH", "NOPERM"].iter().any(|word| error.starts_with(word))
}
