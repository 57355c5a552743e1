//! Code that handlers of several families share. Knows no family.

pub(crate) mod deadline;
pub(crate) mod help;
pub(crate) mod listing;
pub(crate) mod manual;
pub(crate) mod name_set;
pub(crate) mod options;
pub(crate) mod random;
pub(crate) mod reach;
pub(crate) mod returned;
pub(crate) mod scanning;
pub(crate) mod sliced_array;
pub(crate) mod slices;
pub(crate) mod version;
