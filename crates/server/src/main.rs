//! The `holdfast` binary: reads the command line and runs the server or one of its tools.

mod config;
mod durability;
mod network;
mod platform;
mod sentinel;
mod startup;
#[cfg(test)]
mod test_host;
mod tools;

use config::Invocation;
use startup::Beginning;

#[global_allocator]
static ALLOCATOR: platform::allocator::Counting = platform::allocator::Counting;

fn main() -> std::process::ExitCode {
    std::panic::set_hook(Box::new(platform::logging::panicked));
    let run = |invocation| match invocation {
        Invocation::Serve(loaded) => startup::run(loaded, Beginning::Start),
        Invocation::Detach => startup::detach(),
        Invocation::Upgrade(loaded) => startup::run(loaded, Beginning::Upgrade),
        Invocation::Use(tool, loaded) => tools::run(tool, &loaded),
    };
    match config::from_command_line().and_then(run) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) if error.is::<tools::SomethingIsWrong>() => std::process::ExitCode::FAILURE,
        Err(error) => {
            eprintln!("holdfast: {error:#}");
            if error.is::<tools::LeftOut>() {
                tools::LeftOut::EXIT_CODE.into()
            } else if error.is::<tools::CannotCheck>() {
                tools::CannotCheck::EXIT_CODE.into()
            } else {
                std::process::ExitCode::FAILURE
            }
        }
    }
}
