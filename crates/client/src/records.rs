//! Single records by Holdfast's own commands, for whatever sends a command: a transaction and a session have the same
//! operations as a store. Knows the commands; refuses to know a plain Redis ([`Store`](crate::Store) does).

use std::time::Duration;

use redis::{Cmd, cmd};

use crate::asker::Asker;
use crate::error::Error;
use crate::exchange::{Exchange, Outcome, ttl_ms};
use crate::record::{Fields, Record, ttl};

/// Fields and lifetime in one command, as a session needs it.
const GET: &str = "return {redis.call('HGETALL', KEYS[1]), redis.call('PTTL', KEYS[1])}";

pub(crate) async fn get(asker: &dyn Asker, key: &[u8]) -> Result<Option<Record>, Error> {
    let (fields, ttl_ms): (Fields, i64) = asker.ask(cmd("EVAL").arg(GET).arg(1).arg(key)).await?;
    Ok((!fields.is_empty()).then_some(Record { fields, ttl: ttl(ttl_ms) }))
}

pub(crate) async fn put(
    asker: &dyn Asker,
    key: &[u8],
    fields: &Fields,
    lifetime: Option<Duration>,
) -> Result<(), Error> {
    match put_command(key, fields, lifetime)? {
        Some(command) => asker.ask(&command).await,
        None => exchange(asker, key, &put_exchange(fields, lifetime)).await.map(drop),
    }
}

pub(crate) async fn set_field(asker: &dyn Asker, key: &[u8], field: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
    asker.ask(&set_field_command(key, field, value)).await
}

pub(crate) async fn exchange(asker: &dyn Asker, key: &[u8], exchange: &Exchange) -> Result<Outcome, Error> {
    Ok(exchange.outcome(asker.ask(&exchange.hcas(key)?).await?))
}

pub(crate) async fn compare_and_swap(
    asker: &dyn Asker,
    key: &[u8],
    field: &[u8],
    expected: &[u8],
    new: &[u8],
) -> Result<bool, Error> {
    asker.ask(cmd("HCAS").arg(key).arg(field).arg(expected).arg(new)).await
}

/// The command that writes fields and a lifetime; `None` if there are fields to remove, for which
/// [`put_exchange`] is the way.
pub(crate) fn put_command(key: &[u8], fields: &Fields, lifetime: Option<Duration>) -> Result<Option<Cmd>, Error> {
    let removes = fields.removed().next().is_some();
    if fields.is_empty() && !removes {
        return Err(Error::NoFields);
    }
    if removes {
        return Ok(None);
    }
    Ok(Some(match lifetime {
        None => cmd("HSET").arg(key).arg(&**fields).take(),
        Some(lifetime) => {
            let mut hput = cmd("HPUT");
            hput.arg(key).arg("PX").arg(ttl_ms(lifetime)?).arg("FIELDS").arg(fields.len()).arg(&**fields);
            hput
        }
    }))
}

/// Writes and removes fields, and sets the lifetime, without conditions.
pub(crate) fn put_exchange(fields: &Fields, lifetime: Option<Duration>) -> Exchange {
    Exchange { set: fields.clone(), ttl: lifetime, ..Exchange::new() }
}

pub(crate) fn set_field_command(key: &[u8], field: &[u8], value: Option<&[u8]>) -> Cmd {
    match value {
        Some(value) => cmd("HSET").arg(key).arg(field).arg(value).take(),
        None => cmd("HDEL").arg(key).arg(field).take(),
    }
}
