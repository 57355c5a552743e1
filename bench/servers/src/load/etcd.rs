//! Transactions on etcd as its users have them, over gRPC: read some keys, wait for them, and change them if they are still of
//! the revisions that were read. Knows nothing of what it is compared with.
//!
//! gRPC is a thin layer on HTTP/2, and two messages are all that is needed of it. A client library would add its own time to a
//! load that shares the machine with the server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::random::Random;
use super::scale::{CLIENTS, KEYS};
use crate::measure::{Latencies, Metric, Sample, proc_stat};
use crate::servers::Server;

/// Puts strings of 32 bytes under all keys.
pub(crate) fn load_etcd(server: &Server, key: fn(u64) -> String) -> Result<()> {
    let keys: Vec<u64> = (0..KEYS).collect();
    run_local(async {
        let client = Client::connect(server.port).await?;
        for keys in keys.chunks(OPERATIONS_MAX) {
            let puts = keys.iter().map(|number| put(key(*number), format!("{number:032}"))).collect();
            let answer = client.transaction(TxnRequest { success: puts, ..TxnRequest::default() }).await?;
            ensure!(answer.succeeded, "etcd refused a load without a condition");
        }
        Ok(())
    })
}

/// What etcd takes in one transaction by default.
const OPERATIONS_MAX: usize = 128;

/// As many connections as other servers get, on each of which so many transactions are under way at a time.
pub(crate) struct EtcdTransactions {
    pub(crate) key: fn(u64) -> String,
    pub(crate) in_flight: u32,
    pub(crate) transactions: u64,
}

impl EtcdTransactions {
    /// One measured run. What is counted are whole transactions; latencies are those of one of their two round trips.
    pub(crate) fn run(&self, server: &Server) -> Result<Sample> {
        run_local(async {
            let mut clients = Vec::new();
            for _ in 0..CLIENTS {
                clients.push(Client::connect(server.port).await?);
            }
            let shared = Rc::new(Shared { left: Cell::new(self.transactions), took_us: RefCell::default() });
            let server_cpu_before = proc_stat::cpu_time(server.pid)?;
            let load_cpu_before = proc_stat::cpu_time(std::process::id())?;
            let started = Instant::now();
            let lanes = clients.iter().flat_map(|client| (0..self.in_flight).map(move |_| client.clone()));
            let lanes: Vec<_> = lanes
                .enumerate()
                .map(|(lane, client)| {
                    let keys = Lane { lane: lane as u64, lanes: u64::from(CLIENTS * self.in_flight), key: self.key };
                    tokio::task::spawn_local(transactions(client, keys, Rc::clone(&shared)))
                })
                .collect();
            for lane in lanes {
                lane.await.context("a task of the load ended")??;
            }
            let took = started.elapsed();
            let load_cpu = proc_stat::cpu_time(std::process::id())? - load_cpu_before;
            let server_cpu = proc_stat::cpu_time(server.pid)? - server_cpu_before;
            let round_trips = Latencies::from_us(shared.took_us.take());
            Ok(Sample::from([
                (Metric::Throughput, self.transactions as f64 / took.as_secs_f64()),
                (Metric::LatencyP50, round_trips.quantile_us(0.5) / 1e3),
                (Metric::LatencyP99, round_trips.quantile_us(0.99) / 1e3),
                (Metric::ServerCpu, server_cpu.as_secs_f64() * 1e6 / self.transactions as f64),
                (Metric::LoadBusy, load_cpu.as_secs_f64() / took.as_secs_f64()),
            ]))
        })
    }
}

/// Runs in this thread, as the load on other servers does.
fn run_local<T>(load: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limited = async { tokio::time::timeout(RUN_MAX, load).await.context("etcd does not answer")? };
    LocalSet::new().block_on(&runtime, limited)
}

/// A run that takes longer than this hangs.
const RUN_MAX: Duration = Duration::from_secs(300);

/// Of all transactions of a run.
struct Shared {
    left: Cell<u64>,
    took_us: RefCell<Vec<u32>>,
}

impl Shared {
    fn take_one(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

/// Transactions one after the other, with keys of their own, so that none conflicts with another.
struct Lane {
    lane: u64,
    lanes: u64,
    key: fn(u64) -> String,
}

impl Lane {
    fn choose(&self, random: &mut Random) -> [String; 2] {
        let own = KEYS / self.lanes;
        let first = random.below(own);
        let second = (first + 1 + random.below(own - 1)) % own;
        [first, second].map(|number| (self.key)(number * self.lanes + self.lane))
    }
}

async fn transactions(client: Client, lane: Lane, shared: Rc<Shared>) -> Result<()> {
    let mut random = Random(lane.lane);
    while shared.take_one() {
        let keys = lane.choose(&mut random);
        let reads = keys.iter().map(|key| range(key.clone())).collect();
        let asked = Instant::now();
        // One transaction that only reads costs etcd less than two requests, and it is as linearizable.
        let read = client.transaction(TxnRequest { success: reads, ..TxnRequest::default() }).await?;
        let answered = Instant::now();
        let revisions = revisions(&read, &keys)?;
        let compare = keys.iter().zip(revisions).map(|(key, revision)| unchanged(key.clone(), revision)).collect();
        let puts = keys.into_iter().map(|key| put(key, format!("{:032}", random.below(1_000_000)))).collect();
        let written = client.transaction(TxnRequest { compare, success: puts, failure: Vec::new() }).await?;
        ensure!(written.succeeded, "a transaction conflicts, though no other has its keys");
        let mut took_us = shared.took_us.borrow_mut();
        for took in [answered - asked, answered.elapsed()] {
            took_us.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
        }
    }
    Ok(())
}

/// The revisions of the keys that were read, all of which exist with a value of 32 bytes.
fn revisions(read: &TxnResponse, keys: &[String; 2]) -> Result<Vec<i64>> {
    ensure!(read.responses.len() == keys.len(), "etcd answered {} reads of {}", read.responses.len(), keys.len());
    let revision = |(response, key): (&ResponseOp, &String)| {
        let found = response.range.as_ref().and_then(|range| range.kvs.first());
        let found = found.filter(|found| found.key == key.as_bytes() && found.value.len() == 32);
        Ok(found.with_context(|| format!("etcd has no {key}"))?.mod_revision)
    };
    read.responses.iter().zip(keys).map(revision).collect()
}

/// One connection; clones share it.
#[derive(Clone)]
struct Client {
    requests: SendRequest<Bytes>,
    uri: http::Uri,
}

impl Client {
    async fn connect(port: u16) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.context("cannot connect to etcd")?;
        stream.set_nodelay(true)?;
        let (requests, connection) = h2::client::handshake(stream).await?;
        tokio::task::spawn_local(connection);
        let uri = format!("http://127.0.0.1:{port}/etcdserverpb.KV/Txn").parse()?;
        Ok(Client { requests, uri })
    }

    async fn transaction(&self, request: TxnRequest) -> Result<TxnResponse> {
        let head = Request::post(self.uri.clone()).header("content-type", "application/grpc").header("te", "trailers");
        let mut requests = self.requests.clone().ready().await?;
        let (response, mut body) = requests.send_request(head.body(())?, false)?;
        body.send_data(framed(&request)?, true)?;
        let mut body = response.await?.into_body();
        let mut received = BytesMut::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk?;
            body.flow_control().release_capacity(chunk.len())?;
            received.extend_from_slice(&chunk);
        }
        // An error without a body has its status in the first and only headers, and no trailers.
        let trailers = body.trailers().await?.context("etcd refused a request")?;
        if trailers.get("grpc-status").is_none_or(|status| status != "0") {
            bail!("etcd answered {trailers:?}");
        }
        let (_, message) = received.split_at_checked(PREFIX).context("etcd answered without a message")?;
        Ok(TxnResponse::decode(message)?)
    }
}

/// Before each message of gRPC: whether it is compressed, and its length in four bytes.
const PREFIX: usize = 5;

fn framed(message: &TxnRequest) -> Result<Bytes> {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX + length);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length)?);
    message.encode(&mut framed)?;
    Ok(framed.freeze())
}

fn range(key: String) -> RequestOp {
    RequestOp { range: Some(RangeRequest { key: key.into_bytes() }), put: None }
}

fn put(key: String, value: String) -> RequestOp {
    RequestOp { range: None, put: Some(PutRequest { key: key.into_bytes(), value: value.into_bytes() }) }
}

/// Holds while the key's last change is the one of this revision.
fn unchanged(key: String, mod_revision: i64) -> Compare {
    Compare { target: TARGET_MOD, key: key.into_bytes(), mod_revision: Some(mod_revision) }
}

const TARGET_MOD: i32 = 2;

// The messages of etcd's rpc.proto and kv.proto, as far as they are used; unknown fields are skipped. Of a `oneof` one field
// is set, which on the wire is the same as an optional field.

#[derive(Clone, PartialEq, Message)]
struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    failure: Vec<RequestOp>,
}

/// Its first field, the result that is asked for, is left at 0: equal.
#[derive(Clone, PartialEq, Message)]
struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(int64, optional, tag = "6")]
    mod_revision: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct RequestOp {
    #[prost(message, optional, tag = "1")]
    range: Option<RangeRequest>,
    #[prost(message, optional, tag = "2")]
    put: Option<PutRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TxnResponse {
    #[prost(bool, tag = "2")]
    succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    range: Option<RangeResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(int64, tag = "3")]
    mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_etcd_reads() {
        let compare = vec![unchanged("k".into(), 300)];
        let request =
            TxnRequest { compare, success: vec![put("k".into(), "v".into())], failure: vec![range("k".into())] };
        // By hand, after rpc.proto: field and wire type, length, content.
        let compare = [0x0a, 8, 0x10, 2, 0x1a, 1, b'k', 0x30, 0xac, 2];
        let success = [0x12, 8, 0x12, 6, 0x0a, 1, b'k', 0x12, 1, b'v'];
        let failure = [0x1a, 5, 0x0a, 3, 0x0a, 1, b'k'];
        let message = [&compare[..], &success, &failure].concat();
        assert_eq!(framed(&request).unwrap(), [&[0, 0, 0, 0, message.len() as u8][..], &message].concat());
    }

    #[test]
    fn the_revisions_are_those_of_the_keys_that_were_asked_for() {
        let keys = ["a", "b"].map(str::to_owned);
        let found = |key: &str, mod_revision| ResponseOp {
            range: Some(RangeResponse { kvs: vec![KeyValue { key: key.into(), mod_revision, value: vec![b'0'; 32] }] }),
        };
        let read = |responses| revisions(&TxnResponse { succeeded: true, responses }, &keys);
        assert_eq!(read(vec![found("a", 7), found("b", 9)]).unwrap(), [7, 9]);
        assert!(read(vec![found("b", 9), found("a", 7)]).is_err());
        assert!(read(vec![found("a", 7)]).is_err());
        assert!(read(vec![found("a", 7), ResponseOp::default()]).is_err());
    }

    #[test]
    fn lanes_share_no_key() {
        let lanes = 800;
        for lane in [0, 1, 799] {
            let keys = Lane { lane, lanes, key: |number| number.to_string() };
            let mut random = Random(0);
            for _ in 0..1_000 {
                let [first, second] = keys.choose(&mut random).map(|key| key.parse::<u64>().unwrap());
                assert!(first != second && first < KEYS && second < KEYS);
                assert_eq!((first % lanes, second % lanes), (lane, lane));
            }
        }
    }
}
