//! Messages between clients, documented.

use super::CommandDoc;
use super::argument::{pattern, string};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("psubscribe", "2.0.0", "Listens to all channels whose names match the patterns.")
        .complexity("O(N) for N patterns")
        .arguments(&[pattern("pattern").multiple()]),
    doc("publish", "2.0.0", "Sends a message to all who listen to a channel.")
        .complexity("O(N+M) for N listeners of the channel and M patterns")
        .arguments(&[string("channel"), string("message")]),
    doc("pubsub", "2.8.0", "Groups the subcommands about channels and who listens.")
        .complexity("Depends on the subcommand"),
    doc("pubsub|channels", "2.8.0", "Lists channels that somebody listens to.")
        .complexity("O(N) for N channels")
        .arguments(&[pattern("pattern").optional()]),
    doc("pubsub|help", "6.2.0", "Lists the subcommands of PUBSUB, with a line on each.").complexity("O(1)"),
    doc("pubsub|numpat", "2.8.0", "Tells how many patterns somebody listens to.").complexity("O(1)"),
    doc("pubsub|numsub", "2.8.0", "Tells how many clients listen to each of the channels.")
        .complexity("O(N) for N channels")
        .arguments(&[string("channel").optional().multiple()]),
    doc("pubsub|shardchannels", "7.0.0", "Lists shard channels that somebody listens to.")
        .complexity("O(N) for N shard channels")
        .arguments(&[pattern("pattern").optional()]),
    doc("pubsub|shardnumsub", "7.0.0", "Tells how many clients listen to each of the shard channels.")
        .complexity("O(N) for N shard channels")
        .arguments(&[string("shardchannel").optional().multiple()]),
    doc("punsubscribe", "2.0.0", "Stops listening to the patterns, or to all of them.")
        .complexity("O(N) for N patterns")
        .arguments(&[pattern("pattern").optional().multiple()]),
    doc("spublish", "7.0.0", "Sends a message to all who listen to a shard channel.")
        .complexity("O(N) for N listeners")
        .arguments(&[string("shardchannel"), string("message")]),
    doc("ssubscribe", "7.0.0", "Listens to shard channels.")
        .complexity("O(N) for N shard channels")
        .arguments(&[string("shardchannel").multiple()]),
    doc("subscribe", "2.0.0", "Listens to channels.")
        .complexity("O(N) for N channels")
        .arguments(&[string("channel").multiple()]),
    doc("sunsubscribe", "7.0.0", "Stops listening to the shard channels, or to all of them.")
        .complexity("O(N) for N shard channels")
        .arguments(&[string("shardchannel").optional().multiple()]),
    doc("unsubscribe", "2.0.0", "Stops listening to the channels, or to all of them.")
        .complexity("O(N) for N channels")
        .arguments(&[string("channel").optional().multiple()]),
];

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("pubsub", name, since, summary)
}
