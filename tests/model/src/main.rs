//! Runs the models: `model [quick|full] [--traces] [words of a case's name]`. Prints each case with what was found, and
//! ends with the number of surprises: cases that hold and should not, or the other way round. Knows nothing of the
//! protocol.

mod cases;
mod expiry;
mod liveness;
mod protocol;
mod run;

use cases::Form;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let form = match arguments.first().map(String::as_str) {
        Some("quick") => Form::Quick,
        Some("full") => Form::Full,
        _ => Form::Standard,
    };
    if form != Form::Standard {
        arguments.remove(0);
    }
    let traces = arguments.iter().any(|word| word == "--traces");
    arguments.retain(|word| word != "--traces");
    let words = arguments.join(" ");

    let mut surprises = Vec::new();
    let mut ran = 0;
    for case in cases::all() {
        if case.form > form || !case.name.contains(&words) {
            continue;
        }
        ran += 1;
        if !run::run(&case, traces) {
            surprises.push(case.name);
        }
    }
    if ran == 0 {
        eprintln!("model: no case of this form has '{words}' in its name");
        return ExitCode::from(2);
    }
    println!();
    surprises.iter().for_each(|name| println!("FAILED: {name}"));
    // scripts/test counts by this line.
    println!("model: {} passed, {} failed", ran - surprises.len(), surprises.len());
    println!("{} surprises", surprises.len());
    if surprises.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
