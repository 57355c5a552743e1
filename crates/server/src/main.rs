//! The `holdfast` binary: reads the command line and runs the server or one of its tools.

mod allocator;
mod balance;
mod clock;
mod config;
mod connection;
mod data_directory;
mod files;
mod import;
mod keeper;
mod listeners;
mod load;
mod log;
mod process;
mod server;
mod snapshots;
mod tables;
mod tools;
mod worker;

use config::Invocation;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

fn main() -> std::process::ExitCode {
    std::panic::set_hook(Box::new(log::panicked));
    let run = |invocation| match invocation {
        Invocation::Serve(loaded) => server::run(loaded),
        Invocation::Use(tool, loaded) => tools::run(tool, &loaded),
    };
    match config::from_command_line().and_then(run) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast: {error:#}");
            match error.is::<tools::LeftOut>() {
                true => tools::LeftOut::EXIT_CODE.into(),
                false => std::process::ExitCode::FAILURE,
            }
        }
    }
}
