//! SUBSCRIBE, PUBLISH and related commands. Subscriptions are kept in `clients::pubsub`.

use execution::clients::pubsub::Topic;
use execution::context::ServerCx;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::settings::ClientClass;
use std::sync::Arc;

pub(super) fn subscribe(cx: &mut ServerCx<'_>) -> CommandResult {
    subscribe_to(cx, Topic::Channel, b"subscribe")
}

pub(super) fn psubscribe(cx: &mut ServerCx<'_>) -> CommandResult {
    subscribe_to(cx, Topic::Pattern, b"psubscribe")
}

/// Refused in a transaction, where Redis accepts the other two.
pub(super) fn ssubscribe(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.worker.batch.is_atomic {
        return Err(CommandError::fixed("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    subscribe_to(cx, Topic::Shard, b"ssubscribe")
}

/// Subscribes to each name, with a confirmation for each.
fn subscribe_to(cx: &mut ServerCx<'_>, topic: Topic, word: &[u8]) -> CommandResult {
    for name in cx.args.rest() {
        cx.engine.pubsub.subscribe(topic, name, &mut cx.client.subscriptions, &cx.client.handle);
        confirm(cx, topic, word, Some(name));
    }
    Ok(())
}

pub(super) fn unsubscribe(cx: &mut ServerCx<'_>) -> CommandResult {
    unsubscribe_from(cx, Topic::Channel, b"unsubscribe")
}

pub(super) fn punsubscribe(cx: &mut ServerCx<'_>) -> CommandResult {
    unsubscribe_from(cx, Topic::Pattern, b"punsubscribe")
}

pub(super) fn sunsubscribe(cx: &mut ServerCx<'_>) -> CommandResult {
    unsubscribe_from(cx, Topic::Shard, b"sunsubscribe")
}

/// Unsubscribes from each name, with a confirmation for each; without names, from all subscriptions, with one
/// confirmation if there are none.
fn unsubscribe_from(cx: &mut ServerCx<'_>, topic: Topic, word: &[u8]) -> CommandResult {
    let given: Vec<Arc<[u8]>> = match cx.args.is_empty() {
        true => cx.client.subscriptions.names(topic),
        false => cx.args.rest().map(Into::into).collect(),
    };
    for name in &given {
        cx.engine.pubsub.unsubscribe(topic, name, &mut cx.client.subscriptions, &cx.client.handle);
        // Messages published before the unsubscription are delivered before its confirmation.
        cx.client.settle_messages(&mut cx.reply);
        confirm(cx, topic, word, Some(name));
    }
    if given.is_empty() {
        confirm(cx, topic, word, None);
    }
    Ok(())
}

fn confirm(cx: &mut ServerCx<'_>, topic: Topic, word: &[u8], name: Option<&[u8]>) {
    cx.reply.push(3);
    cx.reply.bulk(word);
    match name {
        Some(name) => cx.reply.bulk(name),
        None => cx.reply.null(),
    }
    cx.reply.integer(cx.client.subscriptions.count(topic) as i64);
}

pub(super) fn publish(cx: &mut ServerCx<'_>) -> CommandResult {
    let (channel, message) = (cx.args.bytes()?, cx.args.bytes()?);
    let heard = cx.engine.pubsub.publish(channel, message, unread_bytes_max(cx.engine), 0);
    cx.reply.integer(heard as i64);
    Ok(())
}

pub(super) fn spublish(cx: &mut ServerCx<'_>) -> CommandResult {
    let (channel, message) = (cx.args.bytes()?, cx.args.bytes()?);
    let heard = cx.engine.pubsub.publish_to_shard(channel, message, unread_bytes_max(cx.engine));
    cx.reply.integer(heard as i64);
    Ok(())
}

pub(crate) fn unread_bytes_max(engine: &Engine) -> u64 {
    engine.settings.client_output_buffer_limit(ClientClass::Pubsub).hard_bytes
}

pub(super) fn channels(cx: &mut ServerCx<'_>) -> CommandResult {
    list(cx, Topic::Channel)
}

pub(super) fn shardchannels(cx: &mut ServerCx<'_>) -> CommandResult {
    list(cx, Topic::Shard)
}

fn list(cx: &mut ServerCx<'_>, topic: Topic) -> CommandResult {
    let pattern = cx.args.try_next();
    cx.args.finish()?;
    let names = cx.engine.pubsub.names(topic, pattern);
    cx.reply.array(names.len());
    names.iter().for_each(|name| cx.reply.bulk(name));
    Ok(())
}

pub(super) fn numsub(cx: &mut ServerCx<'_>) -> CommandResult {
    count(cx, Topic::Channel)
}

pub(super) fn shardnumsub(cx: &mut ServerCx<'_>) -> CommandResult {
    count(cx, Topic::Shard)
}

fn count(cx: &mut ServerCx<'_>, topic: Topic) -> CommandResult {
    cx.reply.array(2 * cx.args.left());
    for name in cx.args.rest() {
        cx.reply.bulk(name);
        cx.reply.integer(cx.engine.pubsub.subscriber_count(topic, name) as i64);
    }
    Ok(())
}

pub(super) fn numpat(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.integer(cx.engine.pubsub.len(Topic::Pattern) as i64);
    Ok(())
}
