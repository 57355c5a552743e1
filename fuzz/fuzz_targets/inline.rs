//! Any line: splitting it must not panic, and what it was split into, quoted again, must be split into the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use resp::{Limits, Scan, Scanner};

fuzz_target!(|line: &[u8]| {
    if line.first() == Some(&b'*') {
        return; // the other kind of request
    }
    let Some(args) = split(&[line, b"\r\n"].concat()) else { return };
    let words: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    assert_eq!(split((words.join(" ") + "\n").as_bytes()), Some(args));
});

fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    match Scanner::default().scan(line, &Limits::default()) {
        Scan::Complete(request, consumed) => {
            assert!(consumed <= line.len());
            Some(request.iter().map(<[u8]>::to_vec).collect())
        }
        Scan::Empty(consumed) => {
            assert!(consumed <= line.len());
            None
        }
        Scan::Incomplete(needed) => {
            assert!(needed > line.len());
            None
        }
        Scan::Broken(_) => None,
    }
}

fn quoted(arg: &[u8]) -> String {
    let escaped: String = arg.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{escaped}\"")
}
