//! Clusters, replicas and modules, of which this server has none: clients ask, and get Redis's answers for a server on which
//! all three are off.

mod answers;
mod table;

use crate::execution::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { group: "cluster", category: "", commands: table::CLUSTER },
    Table { group: "cluster", category: "connection", commands: table::CLUSTER_CONNECTION },
    Table { group: "server", category: "", commands: table::REPLICATION },
];
