//! The `holdfast` binary: reads the command line and runs the server.

mod allocator;
mod balance;
mod clock;
mod config;
mod connection;
mod log;
mod process;
mod server;
mod worker;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

fn main() -> std::process::ExitCode {
    match config::from_command_line().and_then(server::run) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
