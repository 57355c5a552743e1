//! Whether the server can serve clients. Knows the load at the start, the states of the journal and of a log that several
//! machines share; refuses to know HTTP.

use engine::Engine;
use engine::persistence::journal_state::JournalState;
use engine::persistence::{ClusterReport, Replication, Role};

/// A follower that is further behind, or has heard nothing of its log for longer, sends its clients elsewhere. It is longer
/// than NATS takes to choose another leader: followers answer through that.
const BEHIND_MS_MAX: u64 = 15_000;

/// Why clients should go elsewhere; `None` when the server is ready. Anyone may ask, so it names no file and no error of
/// the operating system: INFO has those.
pub(crate) fn not_ready(engine: &Engine) -> Option<&'static str> {
    if engine.restrictions.is_loading() {
        return Some("loading: the data is being read");
    }
    match engine.persistence.state() {
        JournalState::Off | JournalState::Starting | JournalState::Sound | JournalState::Following => {
            let cluster = engine.persistence.cluster()?;
            not_ready_in_cluster(&cluster, &engine.persistence.replication())
        }
        JournalState::StartFailed => Some("journal: it could not be started, and writes are refused"),
        JournalState::Failed => Some("journal: it has failed, and writes are refused"),
        JournalState::Restarting => Some("journal: it has failed, and is being restarted"),
        JournalState::Closing => Some("stopping"),
        JournalState::Fenced => Some("fenced: another server has taken the journal over"),
    }
}

fn not_ready_in_cluster(cluster: &ClusterReport, replication: &Replication) -> Option<&'static str> {
    match (&replication.role, cluster.lease_left_ms) {
        (Role::Writer { .. }, Some(0)) => Some("lease: it has ended, and replies wait until the log answers"),
        (Role::Writer { .. }, _) => None,
        (Role::Follower(_), _) if cluster.silent_ms > BEHIND_MS_MAX => Some("log: nothing is heard of it"),
        (Role::Follower(writer), _) if writer.lag_ms > BEHIND_MS_MAX => Some("behind: the last changes are missing"),
        (Role::Follower(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::persistence::WriterReport;

    #[test]
    fn a_writer_needs_its_lease_and_a_follower_news() {
        let of = |role: &Role, lease_left_ms, silent_ms| {
            let cluster = ClusterReport { lease_left_ms, silent_ms, ..ClusterReport::default() };
            let replication = Replication { role: role.clone(), ..Replication::default() };
            not_ready_in_cluster(&cluster, &replication).map(|reason| reason.split(':').next().unwrap())
        };
        let writer = Role::default();
        assert_eq!((of(&writer, Some(2500), 100), of(&writer, Some(0), 100)), (None, Some("lease")));
        let follower = |lag_ms| Role::Follower(WriterReport { lag_ms, ..WriterReport::default() });
        assert_eq!((of(&follower(0), None, 100), of(&follower(0), None, 9000)), (None, None));
        assert_eq!((of(&follower(0), None, 20_000), of(&follower(20_000), None, 1)), (Some("log"), Some("behind")));
    }
}
