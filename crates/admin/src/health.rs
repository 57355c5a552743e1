//! Whether the server can serve clients. Knows the load at the start and the states of the journal; refuses to know HTTP.

use engine::Engine;
use engine::persistence::journal_state::JournalState;

/// Why clients should go elsewhere; `None` when the server is ready. Anyone may ask, so it names no file and no error of
/// the operating system: INFO has those.
pub(crate) fn not_ready(engine: &Engine) -> Option<&'static str> {
    if engine.restrictions.is_loading() {
        return Some("loading: the data is being read");
    }
    match engine.persistence.state() {
        JournalState::Off | JournalState::Starting | JournalState::Sound | JournalState::Following => None,
        JournalState::StartFailed => Some("journal: it could not be started, and writes are refused"),
        JournalState::Failed => Some("journal: it has failed, and writes are refused"),
        JournalState::Restarting => Some("journal: it has failed, and is being restarted"),
        JournalState::Closing => Some("stopping"),
        JournalState::Fenced => Some("fenced: another server has taken the journal over"),
    }
}
