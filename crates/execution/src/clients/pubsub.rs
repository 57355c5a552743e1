//! Subscriptions: channels, patterns and shard channels. Knows subscribers and the form of messages; refuses to know
//! how they are delivered.

use crate::clients::{ClientHandle, NameKind};
use algorithms::glob::Pattern;
use locks::{RwLock, rank};
use resp::{Protocol, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What a client can subscribe to. Shard channels are separate from channels: in a cluster they belong to one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Channel,
    Pattern,
    Shard,
}

impl Topic {
    fn name_kind(self) -> NameKind {
        match self {
            Topic::Channel | Topic::Shard => NameKind::Channel,
            Topic::Pattern => NameKind::Pattern,
        }
    }
}

const TOPICS: [Topic; 3] = [Topic::Channel, Topic::Pattern, Topic::Shard];

/// The subscribers of each name, ordered by client number, so that one among thousands is found quickly. The name is
/// shared with the clients' own sets.
type Subscribers = BTreeMap<Arc<[u8]>, Audience>;

#[derive(Default)]
struct Audience {
    handles: Vec<Arc<ClientHandle>>,
    /// The compiled pattern, for pattern subscriptions.
    pattern: Option<Box<Pattern>>,
}

/// All subscriptions.
#[derive(Default)]
pub struct PubSub {
    channels: RwLock<Subscribers, { rank::SUBSCRIBERS }>,
    patterns: RwLock<Subscribers, { rank::SUBSCRIBERS }>,
    shards: RwLock<Subscribers, { rank::SUBSCRIBERS }>,
    /// How many patterns have subscribers. Most servers have none, and skip the search.
    pattern_count: AtomicUsize,
}

/// The subscriptions of one client: channels, patterns, shard channels. Sets, since a client may have very many. A
/// client without subscriptions pays one pointer.
#[derive(Default)]
pub struct Subscriptions(Option<Box<[Names; 3]>>);

type Names = BTreeSet<Arc<[u8]>>;

impl Subscriptions {
    fn of(&self, topic: Topic) -> Option<&Names> {
        self.0.as_ref().map(|sets| &sets[topic as usize])
    }

    fn of_mut(&mut self, topic: Topic) -> &mut Names {
        &mut self.0.get_or_insert_default()[topic as usize]
    }

    /// The names subscribed to, sorted.
    pub fn names(&self, topic: Topic) -> Vec<Arc<[u8]>> {
        self.of(topic).into_iter().flatten().cloned().collect()
    }

    /// Any one of the subscriptions.
    fn any(&self) -> Option<(Topic, Arc<[u8]>)> {
        TOPICS.into_iter().find_map(|topic| Some((topic, self.of(topic)?.first()?.clone())))
    }

    /// How many there are, as the replies to SUBSCRIBE and UNSUBSCRIBE count: channels and patterns together, shard
    /// channels by themselves.
    pub fn count(&self, topic: Topic) -> usize {
        let [channels, patterns, shards] = self.counts();
        match topic {
            Topic::Channel | Topic::Pattern => channels + patterns,
            Topic::Shard => shards,
        }
    }

    /// How many of each kind there are.
    pub fn counts(&self) -> [usize; 3] {
        TOPICS.map(|topic| self.of(topic).map_or(0, Names::len))
    }

    /// True when the client has subscribed to nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none() || self.counts() == [0; 3]
    }
}

impl PubSub {
    fn subscribers(&self, topic: Topic) -> &RwLock<Subscribers, { rank::SUBSCRIBERS }> {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
            Topic::Shard => &self.shards,
        }
    }

    /// Subscribes a client. No effect when it has subscribed already.
    pub fn subscribe(&self, topic: Topic, name: &[u8], own: &mut Subscriptions, handle: &Arc<ClientHandle>) {
        if own.of(topic).is_some_and(|names| names.contains(name)) {
            return;
        }
        // Before the lock: compiling a long pattern takes a while.
        let compiled = (topic == Topic::Pattern).then(|| Box::new(Pattern::new(name, false)));
        let mut subscribers = self.subscribers(topic).write();
        let name = match subscribers.get_key_value(name) {
            Some((known, _)) => known.clone(),
            None => name.into(),
        };
        let Audience { handles, pattern } = subscribers.entry(name.clone()).or_default();
        if pattern.is_none() {
            *pattern = compiled;
        }
        if let Err(place) = handles.binary_search_by_key(&handle.id, |known| known.id) {
            handles.insert(place, handle.clone());
        }
        self.note_patterns(topic, &subscribers);
        drop(subscribers);
        handle.add_name(topic.name_kind().bytes(name.len()));
        own.of_mut(topic).insert(name);
        handle.note_subscriptions(own.counts());
    }

    /// Ends a subscription, if there is one.
    pub fn unsubscribe(&self, topic: Topic, name: &[u8], own: &mut Subscriptions, handle: &Arc<ClientHandle>) {
        if !own.of_mut(topic).remove(name) {
            return;
        }
        handle.remove_names(topic.name_kind().bytes(name.len()));
        handle.note_subscriptions(own.counts());
        let mut subscribers = self.subscribers(topic).write();
        let Some(Audience { handles, .. }) = subscribers.get_mut(name) else { return };
        if let Ok(place) = handles.binary_search_by_key(&handle.id, |known| known.id) {
            handles.remove(place);
        }
        if handles.len() <= handles.capacity() / 8 {
            // Free the memory of a channel that had many subscribers before.
            handles.shrink_to(2 * handles.len());
        }
        if handles.is_empty() {
            subscribers.remove(name);
        }
        self.note_patterns(topic, &subscribers);
    }

    /// Ends up to `count_max` subscriptions of a client. Returns how many it ended.
    pub fn unsubscribe_some(&self, own: &mut Subscriptions, handle: &Arc<ClientHandle>, count_max: usize) -> usize {
        for count in 0..count_max {
            let Some((topic, name)) = own.any() else { return count };
            self.unsubscribe(topic, &name, own, handle);
        }
        count_max
    }

    fn note_patterns(&self, topic: Topic, subscribers: &Subscribers) {
        if topic == Topic::Pattern {
            self.pattern_count.store(subscribers.len(), Relaxed);
        }
    }

    /// Sends a message to all subscribers of the channel. Returns their number. A subscriber whose output exceeds
    /// `bytes_max` is disconnected. The message is held until the journal batch `sequence` is persisted.
    pub fn publish(&self, channel: &[u8], message: &[u8], bytes_max: u64, sequence: u64) -> usize {
        let mut heard = 0;
        if let Some(audience) = self.channels.read().get(channel) {
            heard += deliver(&audience.handles, &[b"message", channel, message], bytes_max, sequence);
        }
        if self.pattern_count.load(Relaxed) > 0 {
            for (name, Audience { handles, pattern }) in self.patterns.read().iter() {
                if pattern.as_ref().is_some_and(|pattern| pattern.matches(channel)) {
                    heard += deliver(handles, &[b"pmessage", name, channel, message], bytes_max, sequence);
                }
            }
        }
        heard
    }

    /// Sends a message to all subscribers of a shard channel. Patterns do not apply.
    pub fn publish_to_shard(&self, channel: &[u8], message: &[u8], bytes_max: u64) -> usize {
        let shards = self.shards.read();
        shards
            .get(channel)
            .map_or(0, |audience| deliver(&audience.handles, &[b"smessage", channel, message], bytes_max, 0))
    }

    /// Names with subscribers that match a pattern, if one is given.
    pub fn names(&self, topic: Topic, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let subscribers = self.subscribers(topic).read();
        let pattern = pattern.map(|pattern| Pattern::new(pattern, false));
        let wanted = |name: &[u8]| pattern.as_ref().is_none_or(|pattern| pattern.matches(name));
        subscribers.keys().filter(|name| wanted(name)).cloned().collect()
    }

    /// How many clients have subscribed to a name.
    pub fn subscriber_count(&self, topic: Topic, name: &[u8]) -> usize {
        self.subscribers(topic).read().get(name).map_or(0, |audience| audience.handles.len())
    }

    /// How many names of a kind have subscribers.
    pub fn len(&self, topic: Topic) -> usize {
        self.subscribers(topic).read().len()
    }

    /// True when there are no subscriptions.
    pub fn is_empty(&self) -> bool {
        TOPICS.iter().all(|topic| self.len(*topic) == 0)
    }
}

/// Sends a message to each subscriber with an open connection. Returns their number. The message is encoded once for
/// each protocol in use.
fn deliver(handles: &[Arc<ClientHandle>], parts: &[&[u8]], bytes_max: u64, sequence: u64) -> usize {
    let (mut resp2, mut resp3) = (Vec::new(), Vec::new());
    let mut count = 0;
    for handle in handles.iter().filter(|handle| !handle.is_killed()) {
        count += 1;
        // Again when the client has changed its protocol in between.
        loop {
            let protocol = handle.protocol();
            let bytes = match protocol {
                Protocol::Resp3 => &mut resp3,
                Protocol::Resp2 => &mut resp2,
            };
            if bytes.is_empty() {
                let mut message = Reply::new(bytes, protocol);
                message.push(parts.len());
                parts.iter().for_each(|part| message.bulk(part));
            }
            if handle.send_if(sequence, bytes, bytes_max, |handle| handle.protocol() == protocol) {
                break;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(id: u64) -> Arc<ClientHandle> {
        Arc::new(ClientHandle::new(id, String::new(), String::new(), 1, 0, Box::new(|| {})))
    }

    #[test]
    fn subscriptions_end_a_few_at_a_time() {
        let pubsub = PubSub::default();
        let (gone, stays) = (handle(7), handle(3));
        let (mut of_gone, mut of_stays) = (Subscriptions::default(), Subscriptions::default());
        for number in 0..10u8 {
            for topic in TOPICS {
                pubsub.subscribe(topic, &[number], &mut of_gone, &gone);
                pubsub.subscribe(topic, &[number], &mut of_stays, &stays);
            }
        }
        pubsub.subscribe(Topic::Channel, &[0], &mut of_gone, &gone);
        assert_eq!((of_gone.counts(), pubsub.subscriber_count(Topic::Channel, &[0])), ([10; 3], 2));
        assert_eq!(pubsub.unsubscribe_some(&mut of_gone, &gone, 12), 12);
        assert_eq!(of_gone.counts(), [0, 8, 10]);
        assert_eq!(pubsub.unsubscribe_some(&mut of_gone, &gone, 100), 18);
        assert!(of_gone.is_empty() && of_stays.counts() == [10; 3]);
        assert!((0..10u8).all(|number| pubsub.subscriber_count(Topic::Shard, &[number]) == 1));
        assert_eq!(pubsub.unsubscribe_some(&mut of_stays, &stays, 100), 30);
        assert!(pubsub.is_empty());
    }

    #[test]
    fn a_closed_connection_gets_no_message_and_is_not_counted() {
        let pubsub = PubSub::default();
        let (closed, open) = (handle(1), handle(2));
        for handle in [&closed, &open] {
            pubsub.subscribe(Topic::Channel, b"news", &mut Subscriptions::default(), handle);
        }
        closed.kill();
        assert_eq!(pubsub.publish(b"news", b"text", 0, 0), 1);
        assert!(open.has_mail() && !closed.has_mail());
    }
}
