//! The epochs that the files of a directory name, and whether they are of one history. Knows nothing of files but their
//! names.

use std::collections::BTreeMap;

use super::finding::DirectoryError;
use crate::epoch::Epoch;
use crate::fence::Fence;
use crate::files::EpochId;

/// Which id each epoch has, and which file says so. Of a directory that was copied and written in both places, the
/// copies have different epochs of one number.
#[derive(Default)]
pub(super) struct Epochs {
    ids: BTreeMap<Epoch, (EpochId, String)>,
    newest: Epoch,
}

impl Epochs {
    /// Notes the epoch of a file. An error if another file has the same epoch with another id.
    pub(super) fn note(&mut self, file: &str, epoch: Epoch, id: EpochId) -> Result<(), DirectoryError> {
        self.newest = self.newest.max(epoch);
        if id == EpochId::NONE {
            return Ok(());
        }
        let (known, other_file) = self.ids.entry(epoch).or_insert_with(|| (id, file.to_owned()));
        match known.contradicts(id) {
            true => Err(DirectoryError::Diverged {
                file: file.to_owned(),
                epoch,
                id,
                other_file: other_file.clone(),
                other_id: *known,
            }),
            false => Ok(()),
        }
    }

    /// Notes which id the epoch before that of a file has.
    pub(super) fn note_previous(&mut self, file: &str, epoch: Epoch, previous: EpochId) -> Result<(), DirectoryError> {
        match epoch.0.checked_sub(1).filter(|before| *before > 0) {
            Some(before) => {
                let newest = self.newest;
                let noted = self.note(file, Epoch(before), previous);
                self.newest = newest;
                noted
            }
            None => Ok(()),
        }
    }

    /// Raises the fence above all epochs of the directory, and returns the epoch that has the right to write.
    pub(super) fn raise(&self, fence: &Fence) -> Result<Epoch, DirectoryError> {
        fence.raise_above(self.newest).ok_or_else(|| match fence.highest() {
            epoch if epoch > self.newest => DirectoryError::NoNextEpoch { file: "FENCE".to_owned(), epoch },
            _ => DirectoryError::NoNextEpoch { file: self.newest_file().to_owned(), epoch: self.newest },
        })
    }

    /// Returns a file that names the highest epoch.
    fn newest_file(&self) -> &str {
        self.ids.get(&self.newest).map_or("a file of the journal", |(_, file)| file)
    }

    /// The highest epoch, with its id.
    pub(super) fn newest(&self) -> (Epoch, EpochId) {
        (self.newest, self.ids.get(&self.newest).map_or(EpochId::NONE, |(id, _)| *id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EpochId = EpochId([1; 16]);
    const B: EpochId = EpochId([2; 16]);

    #[test]
    fn files_of_two_histories_are_told_apart() {
        let mut epochs = Epochs::default();
        epochs.note("old", Epoch(5), EpochId::NONE).unwrap();
        epochs.note("one", Epoch(6), A).unwrap();
        epochs.note_previous("one", Epoch(6), EpochId::NONE).unwrap();
        epochs.note("two", Epoch(7), B).unwrap();
        epochs.note_previous("two", Epoch(7), A).unwrap();
        assert_eq!(epochs.newest(), (Epoch(7), B));
        assert!(matches!(epochs.note("copy", Epoch(7), A), Err(DirectoryError::Diverged { epoch: Epoch(7), .. })));
        let diverged = epochs.note_previous("copy", Epoch(7), B);
        assert!(matches!(diverged, Err(DirectoryError::Diverged { epoch: Epoch(6), .. })));
    }

    #[test]
    fn the_epoch_before_is_not_the_newest() {
        let mut epochs = Epochs::default();
        epochs.note("one", Epoch(2), B).unwrap();
        epochs.note_previous("one", Epoch(2), A).unwrap();
        assert_eq!(epochs.newest(), (Epoch(2), B));
    }
}
