//! Who wants to hear what: channels, patterns and shard channels. Knows subscribers and how a message looks; refuses to
//! know how it reaches them.

use crate::clients::ClientHandle;
use crate::pure::glob;
use parking_lot::RwLock;
use resp::{Protocol, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What a client can subscribe to. Shard channels are channels of their own: in a cluster they belong to one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Channel,
    Pattern,
    Shard,
}

type Subscribers = BTreeMap<Box<[u8]>, Vec<Arc<ClientHandle>>>;

/// All subscriptions.
#[derive(Default)]
pub struct PubSub {
    channels: RwLock<Subscribers>,
    patterns: RwLock<Subscribers>,
    shards: RwLock<Subscribers>,
    /// How many patterns have subscribers: most servers have none, and need not look.
    pattern_count: AtomicUsize,
}

/// What one client has subscribed to: channels, patterns, shard channels, each in the order in which it did. Most
/// clients listen to nothing, and pay a pointer for it.
#[derive(Default)]
pub struct Subscriptions(Option<Box<[Names; 3]>>);

type Names = Vec<Box<[u8]>>;

impl Subscriptions {
    fn of(&self, topic: Topic) -> &[Box<[u8]>] {
        self.0.as_ref().map_or(&[], |lists| &lists[topic as usize])
    }

    fn of_mut(&mut self, topic: Topic) -> &mut Vec<Box<[u8]>> {
        &mut self.0.get_or_insert_default()[topic as usize]
    }

    /// The names subscribed to.
    pub fn names(&self, topic: Topic) -> Vec<Box<[u8]>> {
        self.of(topic).to_vec()
    }

    /// How many there are, as the replies to SUBSCRIBE and its kin count: channels and patterns together, shard
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
        [Topic::Channel, Topic::Pattern, Topic::Shard].map(|topic| self.of(topic).len())
    }

    /// True when the client has subscribed to nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none() || self.counts() == [0; 3]
    }
}

impl PubSub {
    fn subscribers(&self, topic: Topic) -> &RwLock<Subscribers> {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
            Topic::Shard => &self.shards,
        }
    }

    /// Subscribes a client; nothing new when it has subscribed before.
    pub fn subscribe(&self, topic: Topic, name: &[u8], own: &mut Subscriptions, handle: &Arc<ClientHandle>) {
        if own.of(topic).iter().any(|known| **known == *name) {
            return;
        }
        own.of_mut(topic).push(name.into());
        handle.note_subscriptions(own.counts());
        let mut subscribers = self.subscribers(topic).write();
        subscribers.entry(name.into()).or_default().push(handle.clone());
        self.note_patterns(topic, &subscribers);
    }

    /// Ends a subscription, if there is one.
    pub fn unsubscribe(&self, topic: Topic, name: &[u8], own: &mut Subscriptions, handle: &Arc<ClientHandle>) {
        own.of_mut(topic).retain(|known| **known != *name);
        handle.note_subscriptions(own.counts());
        let mut subscribers = self.subscribers(topic).write();
        let Some(handles) = subscribers.get_mut(name) else { return };
        handles.retain(|known| known.id != handle.id);
        if handles.is_empty() {
            subscribers.remove(name);
        }
        self.note_patterns(topic, &subscribers);
    }

    /// Ends all subscriptions of a client.
    pub fn unsubscribe_all(&self, own: &mut Subscriptions, handle: &Arc<ClientHandle>) {
        for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
            for name in own.names(topic) {
                self.unsubscribe(topic, &name, own, handle);
            }
        }
    }

    fn note_patterns(&self, topic: Topic, subscribers: &Subscribers) {
        if topic == Topic::Pattern {
            self.pattern_count.store(subscribers.len(), Relaxed);
        }
    }

    /// Sends a message to all who want to hear of the channel, and says how many they are. Beyond `bytes_max` a
    /// subscriber that does not read is cut off. Nobody hears of it before the batch `sequence` of the journal is kept.
    pub fn publish(&self, channel: &[u8], message: &[u8], bytes_max: u64, sequence: u64) -> usize {
        let mut heard = 0;
        if let Some(handles) = self.channels.read().get(channel) {
            heard += deliver(handles, &[b"message", channel, message], bytes_max, sequence);
        }
        if self.pattern_count.load(Relaxed) > 0 {
            for (pattern, handles) in self.patterns.read().iter() {
                if glob::matches(pattern, channel, false) {
                    heard += deliver(handles, &[b"pmessage", pattern, channel, message], bytes_max, sequence);
                }
            }
        }
        heard
    }

    /// The same for a shard channel, which has no patterns.
    pub fn publish_to_shard(&self, channel: &[u8], message: &[u8], bytes_max: u64) -> usize {
        let shards = self.shards.read();
        shards.get(channel).map_or(0, |handles| deliver(handles, &[b"smessage", channel, message], bytes_max, 0))
    }

    /// Names with subscribers that match a pattern, if one is given.
    pub fn names(&self, topic: Topic, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let subscribers = self.subscribers(topic).read();
        let wanted = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name, false));
        subscribers.keys().filter(|name| wanted(name)).cloned().collect()
    }

    /// How many clients have subscribed to a name.
    pub fn subscriber_count(&self, topic: Topic, name: &[u8]) -> usize {
        self.subscribers(topic).read().get(name).map_or(0, Vec::len)
    }

    /// How many names of a kind have subscribers.
    pub fn len(&self, topic: Topic) -> usize {
        self.subscribers(topic).read().len()
    }

    /// True when nobody has subscribed to anything.
    pub fn is_empty(&self) -> bool {
        [Topic::Channel, Topic::Pattern, Topic::Shard].iter().all(|topic| self.len(*topic) == 0)
    }
}

/// Sends a message to each; it is written once for each protocol in use.
fn deliver(handles: &[Arc<ClientHandle>], parts: &[&[u8]], bytes_max: u64, sequence: u64) -> usize {
    let (mut resp2, mut resp3) = (Vec::new(), Vec::new());
    for handle in handles {
        let (bytes, protocol) = match handle.resp.load(Relaxed) {
            3 => (&mut resp3, Protocol::Resp3),
            _ => (&mut resp2, Protocol::Resp2),
        };
        if bytes.is_empty() {
            let mut message = Reply::new(bytes, protocol);
            message.push(parts.len());
            parts.iter().for_each(|part| message.bulk(part));
        }
        handle.send_after(sequence, bytes, bytes_max);
    }
    handles.len()
}
