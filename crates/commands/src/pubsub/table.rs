//! Messages to channels: the rows, each with its documentation: Redis's facts in our words.

use super::channels;
use crate::shared::help::help;
use crate::shared::manual;
use execution::command::{Command, Flags, at_least, container, exactly, key, keys, server};
use execution::docs::argument as arg;

pub(super) const COMMANDS: &[Command] = &[
    server("psubscribe", at_least(2), channels::psubscribe)
        .to_channel_patterns(1)
        .flag(SUBSCRIBING)
        .doc("2.0.0", "Listens to all channels whose names match the patterns.")
        .complexity("O(N) for N patterns")
        .arguments(&[arg::pattern("pattern").multiple()]),
    server("publish", exactly(3), channels::publish)
        .to_channel(1)
        .fast()
        .flag(ANYTIME)
        .flag(Flags::MAY_REPLICATE)
        .doc("2.0.0", "Sends a message to all who listen to a channel.")
        .complexity("O(N+M) for N listeners of the channel and M patterns")
        .arguments(&[arg::string("channel"), arg::string("message")]),
    server("punsubscribe", at_least(1), channels::punsubscribe)
        .flag(SUBSCRIBING)
        .doc("2.0.0", "Stops listening to the patterns, or to all of them.")
        .complexity("O(N) for N patterns")
        .arguments(&[arg::pattern("pattern").optional().multiple()]),
    container("pubsub")
        .doc("2.8.0", "Groups the subcommands about channels and who listens.")
        .complexity("Depends on the subcommand")
        .with_subcommands(&[
            server("channels", at_least(2), channels::channels)
                .flag(ANYTIME)
                .doc("2.8.0", "Lists channels that have subscribers.")
                .complexity("O(N) for N channels")
                .arguments(&[arg::pattern("pattern").optional()]),
            help(manual::help).doc("6.2.0", "Lists the subcommands of PUBSUB, with a line on each.").complexity("O(1)"),
            server("numpat", exactly(2), channels::numpat)
                .flag(ANYTIME)
                .doc("2.8.0", "Returns how many patterns clients are subscribed to.")
                .complexity("O(1)"),
            server("numsub", at_least(2), channels::numsub)
                .flag(ANYTIME)
                .doc("2.8.0", "Returns how many subscribers each of the channels has.")
                .complexity("O(N) for N channels")
                .arguments(&[arg::string("channel").optional().multiple()]),
            server("shardchannels", at_least(2), channels::shardchannels)
                .flag(ANYTIME)
                .doc("7.0.0", "Lists shard channels that have subscribers.")
                .complexity("O(N) for N shard channels")
                .arguments(&[arg::pattern("pattern").optional()]),
            server("shardnumsub", at_least(2), channels::shardnumsub)
                .flag(ANYTIME)
                .doc("7.0.0", "Returns how many subscribers each of the shard channels has.")
                .complexity("O(N) for N shard channels")
                .arguments(&[arg::string("shardchannel").optional().multiple()]),
        ]),
    server("spublish", exactly(3), channels::spublish)
        .to_channel(1)
        .fast()
        .flag(ANYTIME)
        .flag(Flags::MAY_REPLICATE)
        .channels(key(1))
        .doc("7.0.0", "Sends a message to all who listen to a shard channel.")
        .complexity("O(N) for N listeners")
        .arguments(&[arg::string("shardchannel"), arg::string("message")]),
    server("ssubscribe", at_least(2), channels::ssubscribe)
        .to_channels(1)
        .flag(SUBSCRIBING)
        .channels(keys(1, -1, 1))
        .doc("7.0.0", "Listens to shard channels.")
        .complexity("O(N) for N shard channels")
        .arguments(&[arg::string("shardchannel").multiple()]),
    server("subscribe", at_least(2), channels::subscribe)
        .to_channels(1)
        .flag(SUBSCRIBING)
        .doc("2.0.0", "Listens to channels.")
        .complexity("O(N) for N channels")
        .arguments(&[arg::string("channel").multiple()]),
    server("sunsubscribe", at_least(1), channels::sunsubscribe)
        .flag(SUBSCRIBING)
        .channels(keys(1, -1, 1))
        .doc("7.0.0", "Stops listening to the shard channels, or to all of them.")
        .complexity("O(N) for N shard channels")
        .arguments(&[arg::string("shardchannel").optional().multiple()]),
    server("unsubscribe", at_least(1), channels::unsubscribe)
        .flag(SUBSCRIBING)
        .doc("2.0.0", "Stops listening to the channels, or to all of them.")
        .complexity("O(N) for N channels")
        .arguments(&[arg::string("channel").optional().multiple()]),
];

const ANYTIME: Flags = Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE);
/// Allowed for a client that has subscribed.
const SUBSCRIBING: Flags = ANYTIME.union(Flags::NOSCRIPT).union(Flags::WHILE_SUBSCRIBED).union(Flags::SENDS_MESSAGES);
