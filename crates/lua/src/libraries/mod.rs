//! The libraries that scripts have beside Lua's own. Refuses to know where they are found, and everything about
//! commands.

pub(crate) mod bits;
pub(crate) mod cjson;
pub(crate) mod cmsgpack;
pub(crate) mod math;
pub(crate) mod structs;
