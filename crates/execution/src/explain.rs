//! Completes the errors of Holdfast's own commands from the documentation in their rows. Errors of Redis's commands have
//! Redis's texts.

use crate::command::CommandRow;
use crate::error::{ArgumentError, CommandError, Hint};
use crate::usage;
use resp::Request;

impl CommandRow {
    /// The error for a request with too few or too many arguments.
    #[cold]
    pub fn wrong_arity(&self) -> CommandError {
        let error = CommandError::WrongArity(self.full_name.clone().into());
        if self.has_own_texts() { CommandError::said(format!("{error}. {}", self.usage())) } else { error }
    }

    /// Adds to an error of an own command what its text leaves out: the usage, the known options, the type of the key.
    #[cold]
    pub fn explain(&self, request: Request<'_>, error: CommandError) -> CommandError {
        if !self.has_own_texts() {
            return error;
        }
        let detail = match &error {
            CommandError::WrongType(_) => return self.explain_type(error),
            CommandError::Syntax => format!(". {}", self.usage()),
            CommandError::Arguments(wrong) => {
                let ArgumentError { hint, .. } = &**wrong;
                match *hint {
                    Hint::Usage => format!(". {}", self.usage()),
                    Hint::Options { at } => {
                        format!(". {}", usage::explain_option(self.command.docs.arguments, request, at))
                    }
                }
            }
            _ => return error,
        };
        CommandError::said(format!("{error}{detail}"))
    }

    /// Adds the type of the key to an error of an own command.
    pub fn explain_type(&self, error: CommandError) -> CommandError {
        match error {
            CommandError::WrongType(found) if self.has_own_texts() => {
                CommandError::said(format!("{error}: the key's type is {found}"))
            }
            other => other,
        }
    }

    /// True for a command that neither Redis nor Valkey has.
    fn has_own_texts(&self) -> bool {
        self.command.docs.is_own && self.command.docs.valkey_since.is_none()
    }

    fn usage(&self) -> String {
        let name = self.full_name.replace('|', " ").to_uppercase();
        let arguments = usage::syntax(self.command.docs.arguments);
        format!("Usage: {name} {arguments}").trim_end().to_owned()
    }
}
