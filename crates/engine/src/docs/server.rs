//! The server itself, documented.

use super::CommandDoc;
use super::argument::{block, integer, key, one_of, pattern, string, token};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("bgrewriteaof", "1.0.0", "Writes a snapshot in the background, so that the journal before it can go.")
        .complexity("O(1)"),
    doc("bgsave", "1.0.0", "Writes a snapshot in the background.")
        .complexity("O(1)")
        .history(&[("3.2.2", "New option `SCHEDULE`.")])
        .arguments(&[token("schedule", "SCHEDULE").since("3.2.2").optional()]),
    doc("command", "2.8.13", "Describes all commands; its subcommands describe chosen ones.")
        .complexity("O(N) for N commands known"),
    doc("command|count", "2.8.13", "Tells how many commands there are.").complexity("O(1)"),
    doc("command|docs", "7.0.0", "Documents the given commands, or all of them.")
        .complexity("O(N) for N commands looked up")
        .arguments(&[string("command-name").optional().multiple()]),
    doc("command|getkeys", "2.8.13", "Finds the keys in a complete command line.")
        .complexity("O(N) for N arguments")
        .arguments(&[string("command"), string("arg").optional().multiple()]),
    doc("command|getkeysandflags", "7.0.0", "Finds the keys in a complete command line and says how each is used.")
        .complexity("O(N) for N arguments")
        .arguments(&[string("command"), string("arg").optional().multiple()]),
    doc("command|help", "5.0.0", "Lists the subcommands of COMMAND, with a line on each.").complexity("O(1)"),
    doc("command|info", "2.8.13", "Describes the given commands, or all of them.")
        .complexity("O(N) for N commands looked up")
        .history(&[("7.0.0", "Without arguments, describes all commands.")])
        .arguments(&[string("command-name").optional().multiple()]),
    doc("command|list", "7.0.0", "Lists the names of all commands, or of those that a filter selects.")
        .complexity("O(N) for N commands known")
        .arguments(&[one_of(
            "filterby",
            &[
                string("module-name").after("MODULE"),
                string("category").after("ACLCAT"),
                pattern("pattern").after("PATTERN"),
            ],
        )
        .after("FILTERBY")
        .optional()]),
    doc("config", "2.0.0", "Groups the subcommands about the server's settings.")
        .complexity("Depends on the subcommand"),
    doc("config|get", "2.0.0", "Reads the settings whose names match any of the patterns.")
        .complexity("O(N) for N patterns")
        .history(&[("7.0.0", "Takes several patterns in one call.")])
        .arguments(&[string("parameter").multiple()]),
    doc("config|help", "5.0.0", "Lists the subcommands of CONFIG, with a line on each.").complexity("O(1)"),
    doc("config|resetstat", "2.0.0", "Sets the counters that INFO shows back to zero.").complexity("O(1)"),
    doc("config|rewrite", "2.8.0", "Writes the settings now in force to the configuration file.").complexity("O(1)"),
    doc("config|set", "2.0.0", "Changes settings while the server runs, all of them or none.")
        .complexity("O(N) for N settings")
        .history(&[("7.0.0", "Takes several settings in one call.")])
        .arguments(&[block("data", &[string("parameter"), string("value")]).multiple()]),
    doc("dbsize", "1.0.0", "Tells how many keys the selected database has.").complexity("O(1)"),
    doc("debug", "1.0.0", "Groups the subcommands for tests and for looking inside the server.")
        .complexity("Depends on the subcommand")
        .system(),
    doc("flushall", "1.0.0", "Empties every database.")
        .complexity("O(N) for N keys in all databases")
        .history(&[("4.0.0", "New option `ASYNC`."), ("6.2.0", "New option `SYNC`.")])
        .arguments(&[one_of(
            "flush-type",
            &[token("async", "ASYNC").since("4.0.0"), token("sync", "SYNC").since("6.2.0")],
        )
        .optional()]),
    doc("flushdb", "1.0.0", "Empties the selected database.")
        .complexity("O(N) for N keys in the database")
        .history(&[("4.0.0", "New option `ASYNC`."), ("6.2.0", "New option `SYNC`.")])
        .arguments(&[one_of(
            "flush-type",
            &[token("async", "ASYNC").since("4.0.0"), token("sync", "SYNC").since("6.2.0")],
        )
        .optional()]),
    doc("info", "1.0.0", "Reports facts and counters about the server, by section.")
        .complexity("O(1)")
        .history(&[("7.0.0", "Takes several sections in one call.")])
        .arguments(&[string("section").optional().multiple()]),
    doc("lastsave", "1.0.0", "Tells when the last good snapshot was written, in unix seconds.").complexity("O(1)"),
    doc("latency", "2.8.13", "Groups the subcommands about slow events.").complexity("Depends on the subcommand"),
    doc("latency|doctor", "2.8.13", "Explains in plain words what made the server slow and what could be done.")
        .complexity("O(1)"),
    doc("latency|graph", "2.8.13", "Draws an event's recent latencies with text characters.")
        .complexity("O(1)")
        .arguments(&[string("event")]),
    doc("latency|help", "2.8.13", "Lists the subcommands of LATENCY, with a line on each.").complexity("O(1)"),
    doc("latency|histogram", "7.0.0", "Reports how the run times of commands are distributed.")
        .complexity("O(N) for N commands reported")
        .arguments(&[string("command").optional().multiple()]),
    doc("latency|history", "2.8.13", "Lists the recorded times and latencies of one event.")
        .complexity("O(1)")
        .arguments(&[string("event")]),
    doc("latency|latest", "2.8.13", "Lists, for every event, its newest and its worst latency.").complexity("O(1)"),
    doc("latency|reset", "2.8.13", "Forgets the recorded latencies of the given events, or of all.")
        .complexity("O(1)")
        .arguments(&[string("event").optional().multiple()]),
    doc("lolwut", "5.0.0", "Draws a small piece of generative art and names the server's version.")
        .arguments(&[integer("version").after("VERSION").optional()]),
    doc("memory", "4.0.0", "Groups the subcommands about memory.").complexity("Depends on the subcommand"),
    doc("memory|doctor", "4.0.0", "Explains in plain words what is unusual about the server's use of memory.")
        .complexity("O(1)"),
    doc("memory|help", "4.0.0", "Lists the subcommands of MEMORY, with a line on each.").complexity("O(1)"),
    doc("memory|malloc-stats", "4.0.0", "Reports what the memory allocator says about itself.")
        .complexity("Depends on how much memory is allocated; can be slow"),
    doc("memory|purge", "4.0.0", "Asks the memory allocator to give unused pages back to the system.")
        .complexity("Depends on how much memory is allocated; can be slow"),
    doc("memory|stats", "4.0.0", "Reports where the server's memory goes.").complexity("O(1)"),
    doc("memory|usage", "4.0.0", "Estimates how many bytes a key and its value take.")
        .complexity("O(N) for N elements sampled")
        .arguments(&[key("key", 0), integer("count").after("SAMPLES").optional()]),
    doc("monitor", "1.0.0", "Streams every command that the server runs to this connection."),
    doc("save", "1.0.0", "Writes a snapshot and replies when it is on disk.")
        .complexity("O(N) for N keys in all databases"),
    doc("shutdown", "1.0.0", "Stops the server, after saving if it is set up to save.")
        .complexity("O(N) for N keys if it saves, else O(1)")
        .history(&[("7.0.0", "New options `NOW`, `FORCE` and `ABORT`.")])
        .arguments(&[
            one_of("save-selector", &[token("nosave", "NOSAVE"), token("save", "SAVE")]).optional(),
            token("now", "NOW").since("7.0.0").optional(),
            token("force", "FORCE").since("7.0.0").optional(),
            token("abort", "ABORT").since("7.0.0").optional(),
        ]),
    doc("slowlog", "2.2.12", "Groups the subcommands about the log of slow commands.")
        .complexity("Depends on the subcommand"),
    doc("slowlog|get", "2.2.12", "Lists the newest entries of the slow log.")
        .complexity("O(N) for N entries returned")
        .history(&[("4.0.0", "Entries name the client and its address.")])
        .arguments(&[integer("count").optional()]),
    doc("slowlog|help", "6.2.0", "Lists the subcommands of SLOWLOG, with a line on each.").complexity("O(1)"),
    doc("slowlog|len", "2.2.12", "Tells how many entries the slow log has.").complexity("O(1)"),
    doc("slowlog|reset", "2.2.12", "Empties the slow log.").complexity("O(N) for N entries"),
    doc("swapdb", "4.0.0", "Exchanges the contents of two databases.")
        .complexity("O(N) for N clients that watch or wait on keys of either database")
        .arguments(&[integer("index1"), integer("index2")]),
    doc("time", "2.6.0", "Tells the server's clock in seconds and microseconds.").complexity("O(1)"),
];

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("server", name, since, summary)
}
