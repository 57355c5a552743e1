//! HELP of a container, generated from the table and its documentation.

use execution::command::registry;
use execution::context::ServerCx;
use execution::docs::{Argument, ArgumentKind};
use execution::error::CommandResult;

/// The handler of `<container> HELP`, for any container.
pub(crate) fn help(cx: &mut ServerCx<'_>) -> CommandResult {
    let container = registry().find(cx.args.request().arg(0)).expect("a subcommand is found by its container");
    let name = container.command.name.to_uppercase();
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for row in &container.subcommands {
        let doc = &row.command.docs;
        let mut words = vec![row.command.name.to_uppercase()];
        words.extend(doc.arguments.iter().map(syntax));
        lines.push(words.join(" "));
        lines.push(format!("    {}", doc.summary));
    }
    cx.reply.array(lines.len());
    lines.iter().for_each(|line| cx.reply.simple(line));
    Ok(())
}

/// The syntax of an argument: `<timeout>`, `ID <client-id>`, `(ON|OFF)`, `[WRITE|ALL]`.
fn syntax(argument: &Argument) -> String {
    let members = |separator: &str| argument.arguments.iter().map(syntax).collect::<Vec<_>>().join(separator);
    let token = argument.token.unwrap_or_default();
    let value = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::OneOf if argument.optional && token.is_empty() => members("|"),
        ArgumentKind::OneOf => format!("({})", members("|")),
        ArgumentKind::Block => members(" "),
        _ => format!("<{}>", argument.display_text),
    };
    let mut text = format!("{token} {value}").trim().to_owned();
    if argument.multiple {
        text.push_str(" ...");
    }
    if argument.optional { format!("[{text}]") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_read_as_in_a_manual() {
        for (name, expected) in [
            ("client|pause", "<timeout> [WRITE|ALL]"),
            ("client|reply", "(ON|OFF|SKIP)"),
            ("client|unblock", "<client-id> [TIMEOUT|ERROR]"),
            ("client|setinfo", "(LIB-NAME <libname>|LIB-VER <libver>)"),
            ("command|docs", "[<command-name> ...]"),
        ] {
            let arguments =
                crate::registry().find_full(name.as_bytes()).map_or(&[][..], |row| row.command.docs.arguments);
            assert_eq!(arguments.iter().map(syntax).collect::<Vec<_>>().join(" "), expected);
        }
    }
}
