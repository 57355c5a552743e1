//! Stopping a script: the host is asked from time to time whether it may continue. Refuses to know why it may not.

use std::ffi::c_int;
use std::time::Instant;

use crate::context::Context;
use crate::convert::push_error;
use crate::host::Tick;
use crate::vm::{HookEvery, Raise, Stack, hook_of};

/// How many instructions pass between two ticks of the host.
const TICK_INSTRUCTIONS: c_int = 100_000;

/// Sets or clears the hook of the main thread; coroutines inherit it.
#[inline]
pub(crate) fn set_hook(stack: Stack<'_>, on: bool) {
    stack.set_hook(on.then(|| (hook_of(tick), HookEvery::Instructions(TICK_INSTRUCTIONS))));
}

/// Asks the host whether the script may continue.
fn tick(stack: Stack<'_>) -> Result<(), Raise> {
    let context = Context::of(stack);
    if !context.killed.get() {
        let killed = context.host(|host| match host.tick() {
            Tick::Continue => false,
            Tick::Kill(message) => {
                kill(context, message.into_bytes());
                true
            }
        });
        match killed {
            Some(false) => return Ok(()),
            Some(true) => {}
            // Without a host nothing runs but a library that is being loaded.
            None => match context.load_deadline.get() {
                Some(deadline) if Instant::now() > deadline => kill(context, b"FUNCTION LOAD timeout".to_vec()),
                _ => return Ok(()),
            },
        }
    }
    // The script must not reach the next instruction of its own error handler: check at every line from now on.
    stack.set_hook(Some((hook_of(tick), HookEvery::Line)));
    Err(raise_kill(stack))
}

fn kill(context: &Context, message: Vec<u8>) {
    context.killed.set(true);
    *context.kill_message.borrow_mut() = message;
}

/// The error of a script that was killed.
pub(super) fn raise_kill(stack: Stack<'_>) -> Raise {
    push_error(stack, &Context::of(stack).kill_message.borrow());
    stack.raise()
}
