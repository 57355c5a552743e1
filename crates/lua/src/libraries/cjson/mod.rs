//! The `cjson` library, with the rules of lua-cjson 2.1.0 as Redis carries it: the table. Knows nothing of Redis's
//! data.

mod decode;
mod encode;
mod settings;

use crate::vm::{Returned, Stack, function_of};
pub(crate) use settings::reset;

/// Pushes a new `cjson` table with separate settings.
pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table(0, 16);
    stack.push_value(settings::DEFAULTS);
    for (name, function) in [
        ("encode", function_of(encode::encode)),
        ("decode", function_of(decode::decode)),
        ("encode_sparse_array", function_of(settings::encode_sparse_array)),
        ("encode_max_depth", function_of(settings::encode_max_depth)),
        ("decode_max_depth", function_of(settings::decode_max_depth)),
        ("encode_number_precision", function_of(settings::encode_number_precision)),
        ("encode_keep_buffer", function_of(settings::encode_keep_buffer)),
        ("encode_invalid_numbers", function_of(settings::encode_invalid_numbers)),
        ("decode_invalid_numbers", function_of(settings::decode_invalid_numbers)),
        ("new", function_of(new)),
    ] {
        stack.copy(-1);
        stack.push_function(function, 1);
        stack.set_field(-3, name);
    }
    stack.pop(1);
    stack.push_null();
    stack.set_field(-2, "null");
    stack.push_bytes(b"cjson");
    stack.set_field(-2, "_NAME");
    stack.push_bytes(b"2.1.0");
    stack.set_field(-2, "_VERSION");
}

fn new(stack: Stack<'_>) -> Returned {
    open(stack);
    Ok(1)
}
