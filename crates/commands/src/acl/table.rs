//! ACL: the rows, each with its documentation: Redis's facts in our words.

use super::{file, usage, users};
use crate::shared::help::help;
use crate::shared::manual;
use execution::command::{Command, Flags, at_least, container, exactly, server};
use execution::docs::argument as arg;

/// Anybody may ask this of itself.
const ANYTIME: Flags = Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE);
const ADMIN: Flags = ANYTIME.union(Flags::ADMIN);

pub(super) const COMMANDS: &[Command] = &[container("acl")
    .doc("6.0.0", "Groups the subcommands about users and their rights.")
    .complexity("Depends on the subcommand")
    .with_subcommands(&[
        server("cat", at_least(2), users::cat)
            .flag(ANYTIME)
            .doc("6.0.0", "Lists the categories of commands, or the commands of one.")
            .complexity("O(N) for N categories or commands")
            .arguments(&[arg::string("category").optional()]),
        server("deluser", at_least(3), users::deluser)
            .flag(ADMIN)
            .doc("6.0.0", "Removes users, and closes their connections.")
            .complexity("O(1) for a user, and O(N) for N connections")
            .arguments(&[arg::string("username").multiple()]),
        server("dryrun", at_least(4), users::dryrun)
            .flag(ADMIN)
            .doc("7.0.0", "Says whether a user may run a command, without running it.")
            .complexity("O(1)")
            .arguments(&[arg::string("username"), arg::string("command"), arg::string("arg").optional().multiple()]),
        server("genpass", at_least(2), users::genpass)
            .flag(ANYTIME)
            .doc("6.0.0", "Returns a random password of 256 bits, or of as many as are given.")
            .complexity("O(1)")
            .arguments(&[arg::integer("bits").optional()]),
        server("getuser", exactly(3), users::getuser)
            .flag(ADMIN)
            .doc("6.0.0", "Returns the rules of a user.")
            .complexity("O(N) for N rules")
            .history(&[
                ("6.2.0", "Channels are listed."),
                ("7.0.0", "Selectors are listed, and keys and channels are in the form of rules."),
            ])
            .arguments(&[arg::string("username")]),
        help(manual::help).doc("6.0.0", "Lists the subcommands of ACL, with a line on each.").complexity("O(1)"),
        server("list", exactly(2), users::list)
            .flag(ADMIN)
            .doc("6.0.0", "Lists all users with their rules, as a file of users has them.")
            .complexity("O(N) for N users"),
        server("load", exactly(2), file::load)
            .flag(ADMIN)
            .doc("6.0.0", "Reads the users anew from the file of users.")
            .complexity("O(N) for N users"),
        server("log", at_least(2), users::log)
            .flag(ADMIN)
            .doc("6.0.0", "Lists what was refused to users lately.")
            .complexity("O(N) for N entries")
            .arguments(&[arg::one_of("operation", &[arg::integer("count"), arg::token("reset", "RESET")]).optional()]),
        server("resetusage", at_least(2), usage::reset)
            .flag(ADMIN)
            .own_doc("0.1.0", "Begins the totals of ACL USAGE anew, of all users or of those that are named.")
            .complexity("O(N) for N users")
            .arguments(&[arg::string("username").optional().multiple()]),
        server("save", exactly(2), file::save)
            .flag(ADMIN)
            .doc("6.0.0", "Writes the users to the file of users.")
            .complexity("O(N) for N users"),
        server("setuser", at_least(3), users::setuser)
            .flag(ADMIN)
            .doc("6.0.0", "Creates a user, or changes its rules.")
            .complexity("O(N) for N rules")
            .history(&[
                ("6.2.0", "Rules for channels."),
                ("7.0.0", "Selectors, and rules for reading and writing keys."),
            ])
            .arguments(&[arg::string("username"), arg::string("rule").optional().multiple()]),
        server("usage", at_least(2), usage::usage)
            .flag(ADMIN)
            .own_doc("0.1.0", "Returns what users take: connections, operations, bytes, memory, and what was refused.")
            .complexity("O(N) for N connections and users")
            .arguments(&[arg::string("username").optional().multiple()]),
        server("users", exactly(2), users::users)
            .flag(ADMIN)
            .doc("6.0.0", "Lists the names of all users.")
            .complexity("O(N) for N users"),
        server("whoami", exactly(2), users::whoami)
            .flag(ANYTIME)
            .doc("6.0.0", "Returns the name of the user that this connection is.")
            .complexity("O(1)"),
    ])];
