//! Hash commands. Deadlines of single fields have their own binary, `hash_field_ttl`.

mod fields;
mod numbers;
mod scan;
