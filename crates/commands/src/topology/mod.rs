//! Clusters, replicas and modules, of which this server has none. Clients get the replies of a Redis server on which
//! all three are off.

mod answers;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { group: "cluster", category: "", commands: table::CLUSTER },
    Table { group: "cluster", category: "connection", commands: table::CLUSTER_CONNECTION },
    Table { group: "server", category: "", commands: table::REPLICATION },
];
