//! Makes a module of each Rust block of the documents, and a table of their `main` functions. Knows what a program needs
//! to be run by a test; refuses to know what it does.

#[path = "src/fences.rs"]
#[allow(dead_code, unreachable_pub, reason = "a module of the library too, whose tests use the rest")]
mod fences;

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let (mut modules, mut table) = (String::new(), String::new());
    println!("cargo::rerun-if-changed={}", fences::root().join("docs").display()); // a new document
    for document in fences::documents() {
        println!("cargo::rerun-if-changed={}", document.path.display());
        writeln!(table, "    ({:?}, &[", document.name).expect("memory");
        for fence in document.fences().iter().filter(|fence| fence.language == "rust" && fence.not_run.is_none()) {
            let place = format!("{}:{}", document.name, fence.line);
            assert!(fence.text.contains("fn main()"), "{place}: the block has no `fn main`, and is not marked");
            let name: String = place.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
            let code = fence.text.replace("\"redis://127.0.0.1:6379\"", "crate::url()");
            let run = "pub(super) fn run_block() -> Result<(), String> { crate::Ended::result(main()) }";
            writeln!(modules, "#[allow(unused, unreachable_pub, clippy::all, non_snake_case)]\nmod {name} {{")
                .expect("memory");
            writeln!(modules, "{code}\n{run}\n}}").expect("memory");
            writeln!(table, "        ({}, {name}::run_block),", fence.line).expect("memory");
        }
        table.push_str("    ]),\n");
    }
    let code = format!(
        "{modules}\n/// The programs of each document, with their lines.\npub const DOCUMENTS: &[Programs] = &[\n{table}];\n"
    );
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("blocks.rs"), code).expect("the blocks can be written");
}
