//! Commands for keys of any type. Expiry and SCAN have their own binaries.

mod databases;
mod keyspace;
mod object;
