//! Scripts, documented.

use super::CommandDoc;
use super::argument::{integer, key, one_of, string, token};

pub(super) const DOCS: &[CommandDoc] = &[
    doc("eval", "2.6.0", "Runs a script, as one step.").complexity("Depends on the script").arguments(&[
        string("script"),
        integer("numkeys"),
        key("key", 0).optional().multiple(),
        string("arg").optional().multiple(),
    ]),
    doc("eval_ro", "7.0.0", "Runs a script that changes nothing.").complexity("Depends on the script").arguments(&[
        string("script"),
        integer("numkeys"),
        key("key", 0).optional().multiple(),
        string("arg").optional().multiple(),
    ]),
    doc("evalsha", "2.6.0", "Runs a script that the server knows, by its digest.")
        .complexity("Depends on the script")
        .arguments(&[
            string("sha1"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ]),
    doc("evalsha_ro", "7.0.0", "Runs a script that the server knows and that changes nothing.")
        .complexity("Depends on the script")
        .arguments(&[
            string("sha1"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ]),
    doc("fcall", "7.0.0", "Runs a function of a library, as one step.")
        .complexity("Depends on the function")
        .arguments(&[
            string("function"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ]),
    doc("fcall_ro", "7.0.0", "Runs a function that changes nothing.").complexity("Depends on the function").arguments(
        &[
            string("function"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ],
    ),
    doc("function", "7.0.0", "Groups the subcommands about libraries of functions.")
        .complexity("Depends on the subcommand"),
    doc("function|delete", "7.0.0", "Deletes a library and its functions.")
        .complexity("O(1)")
        .arguments(&[string("library-name")]),
    doc("function|dump", "7.0.0", "Gives all libraries as one payload for FUNCTION RESTORE.")
        .complexity("O(N) for N bytes of code"),
    doc("function|flush", "7.0.0", "Deletes all libraries.").complexity("O(N) for N libraries").arguments(&[one_of(
        "flush-type",
        &[token("async", "ASYNC"), token("sync", "SYNC")],
    )
    .optional()]),
    doc("function|help", "7.0.0", "Lists the subcommands of FUNCTION, with a line on each.").complexity("O(1)"),
    doc("function|kill", "7.0.0", "Stops the function that is running, if it has changed nothing yet.")
        .complexity("O(1)"),
    doc("function|list", "7.0.0", "Lists libraries with their functions.")
        .complexity("O(N) for N functions")
        .arguments(&[
            string("library-name-pattern").after("LIBRARYNAME").optional(),
            token("withcode", "WITHCODE").optional(),
        ]),
    doc("function|load", "7.0.0", "Makes a library from its code.")
        .complexity("O(N) for N bytes of code")
        .arguments(&[token("replace", "REPLACE").optional(), string("function-code")]),
    doc("function|restore", "7.0.0", "Brings libraries back from a payload of FUNCTION DUMP.")
        .complexity("O(N) for N functions in the payload")
        .arguments(&[
            string("serialized-value"),
            one_of("policy", &[token("flush", "FLUSH"), token("append", "APPEND"), token("replace", "REPLACE")])
                .optional(),
        ]),
    doc("function|stats", "7.0.0", "Tells which function runs, and how many libraries there are.").complexity("O(1)"),
    doc("script", "2.6.0", "Groups the subcommands about scripts.").complexity("Depends on the subcommand"),
    doc("script|debug", "3.2.0", "Chooses how scripts are debugged; here they are not.")
        .complexity("O(1)")
        .arguments(&[one_of("mode", &[token("yes", "YES"), token("sync", "SYNC"), token("no", "NO")])]),
    doc("script|exists", "2.6.0", "Tells which scripts the server knows.")
        .complexity("O(N) for N digests")
        .arguments(&[string("sha1").multiple()]),
    doc("script|flush", "2.6.0", "Forgets all scripts.")
        .complexity("O(N) for N scripts")
        .history(&[("6.2.0", "New options `ASYNC` and `SYNC`.")])
        .arguments(&[one_of("flush-type", &[token("async", "ASYNC"), token("sync", "SYNC")])
            .since("6.2.0")
            .optional()]),
    doc("script|help", "5.0.0", "Lists the subcommands of SCRIPT, with a line on each.").complexity("O(1)"),
    doc("script|kill", "2.6.0", "Stops the script that is running, if it has changed nothing yet.").complexity("O(1)"),
    doc("script|load", "2.6.0", "Makes a script known, to be run by its digest.")
        .complexity("O(N) for a script of N bytes")
        .arguments(&[string("script")]),
];

const fn doc(name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
    CommandDoc::new("scripting", name, since, summary)
}
