//! A store over a connection to Holdfast or to a plain Redis. Knows which commands the server has, and the
//! alternatives.

use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

#[cfg(feature = "tls")]
use redis::TlsCertificates;
use redis::aio::ConnectionManager;
use redis::{
    Client, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo, ProtocolVersion, RedisResult, Script, Value, cmd,
    pipe,
};

use crate::addresses::Url;
use crate::answer::Answer;
use crate::asker::{Asker, read};
use crate::claim::Claim;
use crate::claims::Claims;
use crate::error::Error;
use crate::exchange::{Exchange, Outcome};
use crate::filter::Filter;
use crate::links::Links;
use crate::own_connections::OwnConnections;
use crate::query::{Found, Page, Query};
use crate::record::{Fields, Record, ttl};
use crate::records;
use crate::send::send;
use crate::state_store::{Scan, StateStore};
use crate::sweep::{Fate, Sweep};
use crate::target::{Target, Writer};

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server's address, as the redis crate takes it: `redis://user:password@host:port/db`. The protocol is RESP3, as
    /// in the other packages, so that each can continue the sessions of the others; `?protocol=resp2` chooses the older
    /// one. `rediss://` is a connection with TLS, with the feature `tls`. `holdfast://` and `holdfasts://` are the same
    /// two.
    ///
    /// With several hosts, `redis://user:password@a:6379,b:6379/db`, the store finds the server that writes, and finds it
    /// again when another one has taken over.
    pub url: String,
    /// Servers of which one writes, as `host:port`, in the place of the host of `url`; the rest of it is for all. Empty
    /// if the URL names the servers.
    pub addresses: Vec<String>,
    /// With several servers: how long a request waits for one that writes before it is [`Error::NoWriter`].
    pub writer_timeout: Duration,
    /// With TLS: the authority that has signed the server's certificate, if it is not one that the system trusts, and the
    /// certificate and private key that the client shows. All are in PEM.
    #[cfg(feature = "tls")]
    pub certificates: Option<TlsCertificates>,
    /// Uses only commands that every Redis has, also on Holdfast.
    pub plain: bool,
    /// How long a request may take before it is [`Error::Unavailable`].
    pub response_timeout: Duration,
}

impl Config {
    /// The defaults: Holdfast's commands where the server knows them, ten seconds for a request, half a minute for a
    /// writer.
    pub fn new(url: impl Into<String>) -> Config {
        Config {
            url: url.into(),
            addresses: Vec::new(),
            writer_timeout: Duration::from_secs(30),
            #[cfg(feature = "tls")]
            certificates: None,
            plain: false,
            response_timeout: Duration::from_secs(10),
        }
    }

    fn target(&self) -> RedisResult<Target> {
        let url = Url::parse(&self.url);
        let servers = url.servers(&self.addresses)?;
        let Some(first) = servers.first() else { return Ok(Target::One(Box::new(self.client(&url.own())?))) };
        self.client(&url.of(first))?; // a URL that is wrong is so at once
        let config = self.clone();
        let make = move |address: &_| config.client(&url.of(address));
        Ok(Target::Several(Box::new(Writer::new(servers, self.writer_timeout, make))))
    }

    #[cfg(not(feature = "tls"))]
    fn client(&self, url: &str) -> RedisResult<Client> {
        Client::open(connection_info(url)?)
    }

    #[cfg(feature = "tls")]
    fn client(&self, url: &str) -> RedisResult<Client> {
        let info = connection_info(url)?;
        if !matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. }) {
            return Client::open(info);
        }
        // Unless the program has chosen another. If it does so at the same moment, its choice holds.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let certificates = self.certificates.clone();
        let system = TlsCertificates { client_tls: None, root_cert: None };
        Client::build_with_tls(info, certificates.unwrap_or(system))
    }
}

/// A store over one connection, which all its clones share and which reconnects automatically, to the one of several
/// servers that writes; waiting requests and transactions use other connections. Needs a tokio runtime.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    links: Links,
    own_connections: OwnConnections,
    claims: Claims,
    /// Which of [`OWN`] the server has.
    knows: Vec<&'static str>,
}

/// A record of an index: its key, its score and its fields.
pub type Indexed = (Vec<u8>, f64, Fields);

/// Holdfast's commands that a store uses where the server has them.
const OWN: [&str; 11] = [
    "hcas",
    "hput",
    "hfind",
    "idx.range",
    "sweep",
    "claim",
    "cell.cas",
    "run.append",
    "reg.put",
    "session.call",
    "txn.begin",
];

/// The number of keys that one page of a scan examines, or on Holdfast the number of records that it returns.
const PAGE: usize = 500;

impl Store {
    /// Connects, and asks the server which of Holdfast's commands it has. If there is no server, or it is not trusted, that
    /// is [`Error::Unavailable`] at once, with the address. With several hosts in the URL, retries until one writes, for
    /// up to [`Config::writer_timeout`].
    pub async fn connect(url: &str) -> Result<Store, Error> {
        Store::connect_with(&Config::new(url)).await
    }

    /// Like [`connect`](Store::connect), with options.
    pub async fn connect_with(config: &Config) -> Result<Store, Error> {
        let target = Arc::new(config.target()?);
        let links = Links::connect(target.clone(), config.response_timeout).await?;
        let mut knows = OWN.to_vec();
        if config.plain {
            knows.clear();
        } else {
            let (mut command, own) = (cmd("COMMAND"), &knows);
            let command = &*command.arg("INFO").arg(own);
            let ask = |mut connection| async move { send::<Vec<Value>>(command, &mut connection).await };
            let rows = links.run(ask).await?;
            let mut known = rows.iter().map(|row| matches!(row, Value::Array(row) if !row.is_empty()));
            knows.retain(|_| known.next() == Some(true));
        }
        let own_connections = OwnConnections::new(target.clone(), config.response_timeout);
        let claims = Claims::new(OwnConnections::new(target, config.response_timeout));
        Ok(Store { inner: Arc::new(Inner { links, own_connections, claims, knows }) })
    }

    /// True when the server has all of Holdfast's commands that a store uses, and they are used.
    pub fn is_holdfast(&self) -> bool {
        self.inner.knows.len() == OWN.len()
    }

    /// The connection, for other commands. With several servers it is that to the writer of the last request, and
    /// does not move to another one: take it again after an error.
    pub fn connection(&self) -> Result<ConnectionManager, Error> {
        self.inner.links.connection()
    }

    /// Changes a record atomically if it has the expected values.
    pub async fn exchange(&self, key: &[u8], exchange: &Exchange) -> Result<Outcome, Error> {
        if self.knows("hcas") {
            return records::exchange(&*self.inner, key, exchange).await;
        }
        let script = &exchange.script(key)?;
        let run = |mut connection| async move { Ok(script.invoke_async(&mut connection).await?) };
        Ok(exchange.outcome(self.inner.links.run(run).await?))
    }

    /// Records of an index with a score from `min` to `max`, written as in ZRANGEBYSCORE (`5`, `(5`, `-inf`), in order
    /// of score, then key: the oldest jobs first. The limit counts those that pass the filters. Needs Holdfast.
    ///
    /// ```no_run
    /// # async fn example(store: holdfast_client::Store, long_ago_ms: u64) -> Result<(), holdfast_client::Error> {
    /// use holdfast_client::Filter;
    ///
    /// let open = [Filter::not_in("state", ["completed", "failed", "cancelled"])];
    /// let stuck = store.range(b"idx:updated_at", "-inf", &format!("({long_ago_ms}"), &open, Some(100)).await?;
    /// # let _ = stuck;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn range(
        &self,
        index: &[u8],
        min: &str,
        max: &str,
        filters: &[Filter],
        limit: Option<usize>,
    ) -> Result<Vec<Indexed>, Error> {
        self.needs("idx.range")?;
        let mut range = cmd("IDX.RANGE");
        range.arg(index).arg(min).arg(max);
        filters.iter().for_each(|filter| filter.write(&mut range));
        limit.iter().for_each(|limit| _ = range.arg("LIMIT").arg(limit));
        self.ask(&range).await
    }

    /// Takes the first matching records of an index: each goes to exactly one client, changed as the claim says.
    /// Returns the changed records, with the score that each had. Needs Holdfast.
    ///
    /// A waiting claim uses its own connection, so requests of other tasks are not delayed. If it is dropped, or its
    /// answer is lost ([`Error::Unavailable`]), it may have taken records, which then stay as it has written them: a queue
    /// finds them again when their lease ends. The claims of a [`Queue`](crate::Queue) give them back when they are
    /// dropped.
    pub async fn claim(&self, claim: &Claim) -> Result<Vec<Indexed>, Error> {
        self.needs("claim")?;
        let command = claim.command()?;
        if claim.block.is_zero() {
            return self.ask(&command).await;
        }
        self.connection()?; // unless the store is closed
        self.own_connections().ask(&command, claim.block).await
    }

    /// Claims, and if the future is dropped sends the commands of `give_back`.
    pub(crate) async fn claim_or_give_back(
        &self,
        claim: &Claim,
        give_back: impl FnOnce(Vec<Indexed>) -> Vec<Cmd> + Send + 'static,
    ) -> Result<Vec<Indexed>, Error> {
        self.needs("claim")?;
        let command = claim.command()?;
        self.connection()?; // unless the store is closed
        let give_back = move |reply| read(reply).map_or_else(|_| Vec::new(), give_back);
        read(self.inner.claims.ask(command, claim.block, Box::new(give_back)).await?)
    }

    /// Requeues overdue records, with a limit on how often; returns which ones, and what was written to each. Needs
    /// Holdfast.
    pub async fn sweep(&self, sweep: &Sweep) -> Result<Vec<(Vec<u8>, Fate)>, Error> {
        self.needs("sweep")?;
        self.ask(&sweep.command()?).await
    }

    /// The store as what cells, runs and exactly-once state are built on.
    pub(crate) fn asker(&self) -> Arc<dyn Asker> {
        self.inner.clone()
    }

    pub(crate) fn own_connections(&self) -> &OwnConnections {
        &self.inner.own_connections
    }

    fn knows(&self, command: &str) -> bool {
        self.inner.knows.contains(&command)
    }

    pub(crate) fn needs(&self, command: &'static str) -> Result<(), Error> {
        self.inner.needs(command)
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.inner.send(command).await
    }

    async fn write(&self, key: &[u8], fields: &Fields, lifetime: Option<Duration>) -> Result<(), Error> {
        match records::put_command(key, fields, lifetime)? {
            Some(command) if lifetime.is_none() || self.knows("hput") => self.ask(&command).await,
            // HSET, HDEL and PEXPIRE in a MULTI were rejected: on a key of another type the first ones fail and the last
            // still sets a lifetime.
            _ => self.exchange(key, &records::put_exchange(fields, lifetime)).await.map(drop),
        }
    }

    async fn find(&self, query: &Query, cursor: Option<&[u8]>, most: usize) -> Result<Page, Error> {
        let mut hfind = cmd("HFIND");
        hfind.arg(&query.prefix);
        query.filters.iter().for_each(|filter| filter.write(&mut hfind));
        hfind.arg("CURSOR").arg(cursor.unwrap_or(b"0")).arg("LIMIT").arg(most.min(PAGE));
        if let Some(fields) = &query.fields {
            hfind.arg("FIELDS").arg(fields.len()).arg(fields);
        }
        let (next, rows): (_, Vec<(Vec<u8>, Fields, i64)>) = self.ask(hfind.arg("WITHTTL")).await?;
        let found = |(key, fields, ttl_ms)| -> Found { (key, Record { fields, ttl: ttl(ttl_ms) }) };
        Ok(Page { next: next_cursor(next), records: rows.into_iter().map(found).collect() })
    }

    async fn find_by_scan(&self, query: &Query, cursor: Option<&[u8]>) -> Result<Page, Error> {
        let mut scan = cmd("SCAN");
        scan.arg(cursor.unwrap_or(b"0")).arg("MATCH").arg(glob(&query.prefix)).arg("COUNT").arg(PAGE);
        let (next, keys): (Vec<u8>, Vec<Vec<u8>>) = self.ask(scan.arg("TYPE").arg("hash")).await?;
        let mut page = Page { next: next_cursor(next), records: Vec::new() };
        if keys.is_empty() {
            return Ok(page);
        }
        let mut reads = pipe();
        keys.iter().for_each(|key| _ = reads.cmd("HGETALL").arg(key).cmd("PTTL").arg(key));
        let reads = &*reads.ignore_errors();
        let read_all = |mut connection| async move {
            let replies: Vec<RedisResult<Value>> = reads.query_async(&mut connection).await?;
            // An error that is not of one key is of the server: it may follow another one by now, or load its data.
            let errors = replies.iter().filter_map(|reply| reply.as_ref().err().cloned());
            match errors.map(Error::from).find(|error| !matches!(error, Error::WrongType(_))) {
                Some(error) => Err(error),
                None => Ok(replies),
            }
        };
        let mut replies = self.inner.links.run(read_all).await?.into_iter();
        for key in keys {
            let (Some(fields), Some(ttl_ms)) = (replies.next(), replies.next()) else { break };
            let fields = match fields.map_err(Error::from).and_then(read::<Fields>) {
                Ok(fields) if fields.is_empty() => continue, // deleted since SCAN named it
                Ok(fields) => fields,
                Err(Error::WrongType(_)) => continue, // another value has taken its place since
                Err(error) => return Err(error),
            };
            let ttl_ms: i64 = read(ttl_ms?)?;
            // -2: it was deleted since.
            if ttl_ms != -2 && query.filters.iter().all(|filter| filter.passes(&fields)) {
                page.records.push((key, Record { fields: query.wanted(fields), ttl: ttl(ttl_ms) }));
            }
        }
        Ok(page)
    }
}

impl StateStore for Store {
    fn get<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Record>> {
        Box::pin(async move {
            // Not `atomic`: that hides why EXEC was refused.
            let mut read = pipe();
            let read = read.cmd("MULTI").ignore().cmd("HGETALL").arg(key).ignore().cmd("PTTL").arg(key).ignore();
            let read = &*read.cmd("EXEC");
            let run = |mut connection| async move { Ok(read.query_async(&mut connection).await?) };
            let ((fields, ttl_ms),): ((Fields, i64),) = self.inner.links.run(run).await?;
            Ok((!fields.is_empty()).then_some(Record { fields, ttl: ttl(ttl_ms) }))
        })
    }

    fn put<'a>(&'a self, key: &'a [u8], fields: &'a Fields, ttl: Option<Duration>) -> Answer<'a, ()> {
        Box::pin(self.write(key, fields, ttl))
    }

    fn delete<'a>(&'a self, key: &'a [u8]) -> Answer<'a, bool> {
        Box::pin(async move { self.ask(cmd("DEL").arg(key)).await })
    }

    fn get_field<'a>(&'a self, key: &'a [u8], field: &'a [u8]) -> Answer<'a, Option<Vec<u8>>> {
        Box::pin(async move { self.ask(cmd("HGET").arg(key).arg(field)).await })
    }

    fn set_field<'a>(&'a self, key: &'a [u8], field: &'a [u8], value: Option<&'a [u8]>) -> Answer<'a, ()> {
        Box::pin(records::set_field(&*self.inner, key, field, value))
    }

    fn set_fields<'a>(&'a self, key: &'a [u8], fields: &'a Fields) -> Answer<'a, ()> {
        Box::pin(self.write(key, fields, None))
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a [u8],
        field: &'a [u8],
        expected: &'a [u8],
        new: &'a [u8],
    ) -> Answer<'a, bool> {
        static SWAP: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("compare_and_swap.lua")));
        Box::pin(async move {
            if self.knows("hcas") {
                return records::compare_and_swap(&*self.inner, key, field, expected, new).await;
            }
            let mut swap = SWAP.key(key);
            let swap = &*swap.arg(field).arg(expected).arg(new);
            let run = |mut connection| async move { Ok(swap.invoke_async(&mut connection).await?) };
            self.inner.links.run(run).await
        })
    }

    fn scan(&self, query: Query) -> Scan<'_> {
        Scan::new(self, query)
    }

    fn page<'a>(&'a self, query: &'a Query, cursor: Option<&'a [u8]>, most: usize) -> Answer<'a, Page> {
        if self.knows("hfind") {
            Box::pin(self.find(query, cursor, most))
        } else {
            Box::pin(self.find_by_scan(query, cursor))
        }
    }

    fn ping(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move { self.ask::<String>(&cmd("PING")).await.is_ok_and(|reply| reply == "PONG") })
    }

    fn close(&self) {
        self.inner.links.close();
        self.inner.own_connections.close();
    }
}

impl Inner {
    async fn send<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.links.run(|mut connection| async move { send(command, &mut connection).await }).await
    }
}

impl Asker for Inner {
    fn needs(&self, command: &'static str) -> Result<(), Error> {
        self.knows.contains(&command).then_some(()).ok_or(Error::NeedsHoldfast(command))
    }

    fn ask_value<'a>(&'a self, command: &'a Cmd) -> Answer<'a, Value> {
        Box::pin(self.send(command))
    }

    fn ask_waiting<'a>(&'a self, command: &'a Cmd, wait: Duration) -> Answer<'a, Value> {
        Box::pin(async move {
            self.links.connection()?; // unless the store is closed
            self.own_connections.ask(command, wait).await
        })
    }
}

/// RESP3, unless the URL chooses a protocol.
fn connection_info(url: &str) -> RedisResult<ConnectionInfo> {
    let info = url.into_connection_info()?;
    if url.split_once('?').is_some_and(|(_, options)| options.contains("protocol=")) {
        return Ok(info);
    }
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Ok(info.set_redis_settings(settings))
}

fn next_cursor(cursor: Vec<u8>) -> Option<Vec<u8>> {
    (cursor != b"0").then_some(cursor)
}

/// A glob pattern for keys with this prefix, whatever bytes it has.
fn glob(prefix: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(prefix.len() + 1);
    for byte in prefix {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.push(b'*');
    pattern
}
