//! How the sweepers of the configuration fare, for INFO. Knows reports; refuses to know what a sweep does.

use locks::{Mutex, rank};

/// How one sweeper fares.
#[derive(Clone, Debug)]
pub struct SweeperReport {
    pub index: String,
    pub db: usize,
    /// The user with whose rights it sweeps; the server itself if there is none.
    pub user: Option<String>,
    /// Sweeps since the start, and how many of them have failed.
    pub sweeps: u64,
    pub failures: u64,
    /// Why the last one has failed, if it has.
    pub failure: Option<String>,
}

/// The sweepers of the configuration.
#[derive(Default)]
pub struct Sweepers {
    reports: Mutex<Vec<SweeperReport>, { rank::SWEEPERS }>,
}

impl Sweepers {
    /// Replaces all reports.
    pub fn set(&self, reports: Vec<SweeperReport>) {
        *self.reports.lock() = reports;
    }

    /// Notes a sweep of the sweeper with this number, and why it has failed, if it has.
    pub fn note(&self, number: usize, failure: Option<String>) {
        let report = &mut self.reports.lock()[number];
        report.sweeps += 1;
        report.failures += u64::from(failure.is_some());
        report.failure = failure;
    }

    pub fn reports(&self) -> Vec<SweeperReport> {
        self.reports.lock().clone()
    }
}
