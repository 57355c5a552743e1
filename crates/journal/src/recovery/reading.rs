//! Reads what a directory holds and says what is wrong with it. Streams: nothing is held in memory but the part or
//! the batch at hand. Refuses to change anything until it is asked to open the journal for writing.
//!
//! What decides between a torn tail, which is normal, and damage, which is not: when the next batch is not where it
//! should be, that batch was lost. If anything on the disk says that it was *durable*, it is damage: a later frame,
//! the header of a later segment, the name of a snapshot, or the file `MARKS`. If nothing does, no client was ever
//! promised it, nor anything after it.

use std::sync::Arc;

use super::finding::{RecoveryError, Warning};
use super::history::{History, Progress};
use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::files::DirectoryId;
use crate::files::marks::{self, Found};
use crate::files::segment::{self, HeaderError, Next, SegmentHeader, SegmentReader};
use crate::log::Batch;
use crate::sequence::Sequence;
use crate::snapshot::{Part, SnapshotInfo, SnapshotName, SnapshotReadError, SnapshotReader, is_temporary};
use crate::storage::Storage;

/// A directory being read: first the parts of the snapshot, if there is one, then the batches since.
pub struct Recovery {
    pub(super) storage: Arc<dyn Storage>,
    warnings: Vec<Warning>,
    /// What all files here carry; `None` if there are none.
    pub(super) id: Option<DirectoryId>,
    /// The highest epoch that anything here is of.
    pub(super) epoch: Epoch,
    pub(super) marks: Found,
    snapshot: Option<SnapshotReader>,
    /// Batches up to here are in every part of the snapshot.
    snapshot_min: Sequence,
    /// The snapshot, good or damaged, that proves that the journal reached furthest.
    witness: Option<SnapshotName>,
    pub(super) temporaries: Vec<String>,
    /// All segments, ascending.
    pub(super) segments: Vec<FoundSegment>,
    /// Where reading starts: what comes before is not needed with this snapshot.
    pub(super) start: usize,
    /// The segment being read, or to be read next.
    position: usize,
    reader: Option<SegmentReader>,
    /// The next batch.
    pub(super) expected: Sequence,
    /// The highest sequence that something on disk says was durable.
    pub(super) proven: Sequence,
    finished_bytes: u64,
    pub(super) end: Option<End>,
    has_failed: bool,
}

pub(super) struct FoundSegment {
    pub(super) first: Sequence,
    pub(super) name: String,
    /// `None` if it cannot be read.
    header: Option<SegmentHeader>,
    /// The length of the file, and once it is read, where its batches end.
    pub(super) bytes: u64,
}

/// Where the batches end: in this segment, before this offset. At offset 0 the segment itself does not count.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) position: usize,
    pub(super) offset: u64,
}

impl Recovery {
    /// Finds the newest good snapshot and the segments that follow it.
    pub fn open(storage: Arc<dyn Storage>) -> Result<Recovery, RecoveryError> {
        let names = storage.list().map_err(|source| RecoveryError::Io {
            operation: Operation::List,
            file: "the data directory".to_owned(),
            offset: 0,
            source,
        })?;
        let mut segments = Vec::new();
        for first in names.iter().filter_map(|name| segment::parse_file_name(name)) {
            let name = segment::file_name(first);
            let (reader, header) = open_segment(&*storage, &name, first)?;
            segments.push(FoundSegment { first, name, header: header.ok(), bytes: reader.len() });
        }
        segments.sort_unstable_by_key(|segment| segment.first);
        let mut snapshots: Vec<SnapshotName> = names.iter().filter_map(|name| SnapshotName::parse(name)).collect();
        snapshots.sort_unstable_by_key(|name| std::cmp::Reverse(name.generation));

        let marks = marks::read(&*storage).map_err(at(Operation::Read, marks::FILE_NAME, 0))?;
        let marks = marks
            .map_err(|newer| RecoveryError::NewerFormat { file: marks::FILE_NAME.to_owned(), version: newer.0 })?;
        let (id, epoch) = common_id(&*storage, &marks, &snapshots, &segments)?;
        check_epochs(&segments)?;
        let has_data = !snapshots.is_empty() || segments.iter().any(|segment| segment.bytes > segment::HEADER_LEN);
        let mut warnings = Vec::new();
        match marks {
            Found::Missing if has_data => warnings.push(Warning::MarksMissing),
            Found::Unreadable if has_data => warnings.push(Warning::MarksUnreadable),
            Found::Missing | Found::Unreadable | Found::Mark(_) => {}
        }
        let snapshot = newest_good(&*storage, &snapshots, &segments, &mut warnings)?;
        let snapshot_min = snapshot.as_ref().map_or(Sequence::NONE, |snapshot| snapshot.info().min);
        let joining = segments.partition_point(|segment| segment.first <= snapshot_min.next());
        let start = joining.saturating_sub(1);
        let expected = if joining > 0 { segments[start].first } else { snapshot_min.next() };
        let witness = snapshots.into_iter().max_by_key(|name| name.max);
        Ok(Recovery {
            storage,
            warnings,
            id,
            epoch,
            marks,
            snapshot,
            snapshot_min,
            witness,
            temporaries: names
                .into_iter()
                .filter(|name| is_temporary(name) || name == segment::TEMPORARY_NAME)
                .collect(),
            segments,
            start,
            position: start,
            reader: None,
            expected,
            proven: witness
                .map_or(Sequence::NONE, |witness| witness.max)
                .max(marks.mark().map_or(Sequence::NONE, |mark| mark.durable)),
            finished_bytes: 0,
            end: None,
            has_failed: false,
        })
    }

    /// What an operator should know; complete once all batches are read.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn advance(&mut self) -> Result<Option<(Epoch, Sequence)>, RecoveryError> {
        while self.end.is_none() {
            let Some(reader) = &mut self.reader else {
                self.enter_segment()?;
                continue;
            };
            let offset = reader.offset();
            let segment = &mut self.segments[self.position];
            let next = reader.next(self.expected).map_err(at(Operation::Read, &segment.name, offset))?;
            let detail = match next {
                Next::Frame(header) => {
                    let place = header.place;
                    self.expected = place.sequence.next();
                    self.proven = self.proven.max(place.durable);
                    if place.sequence > self.snapshot_min && header.length > 0 {
                        return Ok(Some((place.epoch, place.sequence)));
                    }
                    continue;
                }
                Next::End => "batches are missing",
                Next::Bad(detail) => detail,
            };
            match self.segments.get(self.position + 1) {
                // Nothing is missing, whatever may follow the last batch here.
                Some(following) if following.first == self.expected => self.leave_segment(offset),
                _ => self.end_at(self.position, offset, detail)?,
            }
        }
        Ok(None)
    }

    fn enter_segment(&mut self) -> Result<(), RecoveryError> {
        let position = self.position;
        let Some(segment) = self.segments.get(position) else {
            return self.end_at(position, 0, "there is no journal");
        };
        if segment.first > self.expected {
            let detail = format!("batches {} to {} are missing", self.expected, segment.first.previous());
            return self.end_at(position, 0, &detail);
        }
        let (reader, header) = open_segment(&*self.storage, &segment.name, segment.first)?;
        let header = match header {
            Ok(header) => header,
            Err(HeaderError::Newer(version)) => {
                return Err(RecoveryError::NewerFormat { file: segment.name.clone(), version });
            }
            Err(error) => return self.end_at(position, 0, &error.to_string()),
        };
        // The segment where reading starts joins the snapshot. Any other break waits for a snapshot that never came.
        if header.is_break && (position > self.start || self.snapshot.is_none()) {
            return self.end_at(position, 0, "the snapshot it needs is missing");
        }
        self.proven = self.proven.max(header.durable);
        self.reader = Some(reader);
        Ok(())
    }

    fn leave_segment(&mut self, offset: u64) {
        self.segments[self.position].bytes = offset;
        self.finished_bytes += offset;
        self.position += 1;
        self.reader = None;
    }

    /// The next batch is not at this place. Either this is where the journal ends, or something was lost.
    fn end_at(&mut self, position: usize, offset: u64, detail: &str) -> Result<(), RecoveryError> {
        // What every part of the snapshot has is not lost, even if it is not in the journal.
        let lost = self.expected.max(self.snapshot_min.next());
        if let Some(evidence) = self.find_evidence(position, offset, lost)? {
            return Err(match self.missing_segment(position, offset, lost)? {
                Some(file) => {
                    let detail = format!("the journal ends with batch {}, but {evidence}", self.reached());
                    self.instead_of_snapshot(RecoveryError::Missing { file, detail })
                }
                None => self.damage(position, offset, detail, &evidence),
            });
        }
        if let Some(segment) = self.segments.get(position).filter(|_| offset > 0) {
            let remains = self.search(segment, offset, lost)?;
            if remains.data_end > offset {
                let (file, bytes) = (segment.name.clone(), remains.data_end - offset);
                self.warnings.push(Warning::TornTail { file, offset, bytes });
            }
        }
        let dropped_from = if offset > 0 { position + 1 } else { position };
        for segment in self.segments.iter().skip(dropped_from) {
            self.warnings.push(Warning::SegmentDropped { file: segment.name.clone(), bytes: segment.bytes });
        }
        self.finished_bytes += self.segments.iter().skip(position).map(|segment| segment.bytes).sum::<u64>();
        self.reader = None;
        self.end = Some(End { position, offset });
        Ok(())
    }

    /// Whether anything says that `lost`, or a batch after it, was durable.
    fn find_evidence(&self, position: usize, offset: u64, lost: Sequence) -> Result<Option<String>, RecoveryError> {
        if let Some(mark) = self.marks.mark().filter(|mark| mark.durable >= lost) {
            return Ok(Some(match mark.is_closed {
                true => format!("MARKS says that the journal ended with {} when the server stopped", mark.durable),
                false => format!("MARKS says that {} was durable", mark.durable),
            }));
        }
        if let Some(witness) = self.witness.filter(|witness| witness.max >= lost) {
            return Ok(Some(format!("{} was made when the journal reached {}", witness.file_name(), witness.max)));
        }
        for (at, segment) in self.segments.iter().enumerate().skip(position) {
            let from = if at == position { offset } else { 0 };
            if from == 0 {
                let (_, header) = open_segment(&*self.storage, &segment.name, segment.first)?;
                if let Some(header) = header.ok().filter(|header| header.durable >= lost) {
                    let Sequence(durable) = header.durable;
                    return Ok(Some(format!("{} was begun when {durable} was durable", segment.name)));
                }
            }
            if let Some(mark_offset) = self.search(segment, from, lost)?.mark_offset {
                return Ok(Some(format!("a batch in {} at offset {mark_offset} proves it", segment.name)));
            }
        }
        Ok(None)
    }

    fn search(&self, segment: &FoundSegment, from: u64, lost: Sequence) -> Result<segment::Remains, RecoveryError> {
        let (reader, _) = open_segment(&*self.storage, &segment.name, segment.first)?;
        segment::search_remains(reader.file(), reader.len(), from, segment.first, lost).map_err(at(
            Operation::Read,
            &segment.name,
            from,
        ))
    }

    /// What to call the segment that is gone, if the marks prove that there was one behind a journal that otherwise
    /// ends as it should.
    fn missing_segment(&self, position: usize, offset: u64, lost: Sequence) -> Result<Option<String>, RecoveryError> {
        let Some(mark) = self.marks.mark().filter(|mark| mark.durable >= lost) else { return Ok(None) };
        if self.segments.iter().any(|found| found.first >= self.expected || found.first == mark.segment) {
            return Ok(None);
        }
        let ends_well = match self.segments.get(position) {
            None => true,
            Some(_) if offset == 0 => false,
            Some(segment) => {
                let remains = self.search(segment, offset, lost)?;
                remains.mark_offset.is_none() && remains.data_end == offset
            }
        };
        // The one that was being written is known by name, but it may have been empty.
        Ok(ends_well.then(|| match mark.segment <= mark.durable {
            true => segment::file_name(mark.segment),
            false => format!("the segment with batch {lost}"),
        }))
    }

    fn damage(&self, position: usize, offset: u64, detail: &str, evidence: &str) -> RecoveryError {
        // With no segment at this place, point at the end of the one before it, or else at the snapshot.
        let (file, offset) = match (self.segments.get(position), position.checked_sub(1)) {
            (Some(segment), _) => (segment.name.clone(), offset),
            (None, Some(before)) => (self.segments[before].name.clone(), self.segments[before].bytes),
            (None, None) => (self.witness.map(|name| name.file_name()).unwrap_or_default(), 0),
        };
        let detail = format!("{detail}, but batch {} was durable: {evidence}", self.expected);
        self.instead_of_snapshot(RecoveryError::Damaged { file, offset, detail })
    }

    /// What is wrong with the journal, which was read only because a snapshot is damaged, if there is one.
    fn instead_of_snapshot(&self, damaged: RecoveryError) -> RecoveryError {
        let lost_snapshot = self.warnings.iter().find_map(|warning| match warning {
            Warning::SnapshotDamaged { file, offset, detail } => Some((file.clone(), *offset, detail.clone())),
            Warning::TornTail { .. }
            | Warning::SegmentDropped { .. }
            | Warning::MarksMissing
            | Warning::MarksUnreadable => None,
        });
        match lost_snapshot {
            None => damaged,
            Some((file, offset, detail)) => {
                RecoveryError::SnapshotLost { file, offset, detail, journal: Box::new(damaged) }
            }
        }
    }
}

impl History for Recovery {
    fn snapshot(&self) -> Option<&SnapshotInfo> {
        self.snapshot.as_ref().map(SnapshotReader::info)
    }

    fn meta(&self) -> Option<&[u8]> {
        self.snapshot.as_ref().map(SnapshotReader::meta)
    }

    fn next_part(&mut self) -> Result<Option<Part<'_>>, RecoveryError> {
        let Some(snapshot) = &mut self.snapshot else { return Ok(None) };
        snapshot.next_part().map_err(|error| {
            self.has_failed = true;
            error.into()
        })
    }

    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError> {
        if self.has_failed {
            return Err(RecoveryError::Unfinished);
        }
        match self.advance() {
            Ok(Some((epoch, sequence))) => {
                let reader = self.reader.as_ref().expect("a batch comes from a segment");
                Ok(Some(Batch { epoch, sequence, payload: reader.payload() }))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.has_failed = true;
                Err(error)
            }
        }
    }

    fn reached(&self) -> Sequence {
        self.expected.previous().max(self.snapshot_min)
    }

    fn progress(&self) -> Progress {
        let snapshot = self.snapshot.as_ref();
        let needed = &self.segments[self.start..];
        let segments_total: u64 = needed.iter().map(|segment| segment.bytes).sum();
        let segments_read = self.finished_bytes + self.reader.as_ref().map_or(0, SegmentReader::offset);
        Progress {
            bytes_read: snapshot.map_or(0, SnapshotReader::offset) + segments_read,
            bytes_total: snapshot.map_or(0, |snapshot| snapshot.info().bytes) + segments_total,
        }
    }

    fn notes(&self) -> Vec<String> {
        self.warnings.iter().map(Warning::to_string).collect()
    }
}

pub(super) fn open_segment(
    storage: &dyn Storage,
    name: &str,
    first: Sequence,
) -> Result<(SegmentReader, Result<SegmentHeader, HeaderError>), RecoveryError> {
    let file = storage.open(name).map_err(at(Operation::Open, name, 0))?;
    let mut reader = SegmentReader::new(file).map_err(at(Operation::Read, name, 0))?;
    let header = reader.header(first).map_err(at(Operation::Read, name, 0))?;
    Ok((reader, header))
}

/// The id that all files carry and the highest epoch that they are of, or an error that names a file with another id. `MARKS` is asked first: it is the one file
/// that is there for as long as the directory is. A file whose id cannot be read is left to the search for damage.
fn common_id(
    storage: &dyn Storage,
    marks: &Found,
    snapshots: &[SnapshotName],
    segments: &[FoundSegment],
) -> Result<(Option<DirectoryId>, Epoch), RecoveryError> {
    let mut epoch = Epoch::NONE;
    let mut found: Option<(String, DirectoryId)> = None;
    let mut compare = |file: &str, id: DirectoryId| match &found {
        None => {
            found = Some((file.to_owned(), id));
            Ok(())
        }
        Some((_, common)) if *common == id => Ok(()),
        Some((other_file, other_id)) => Err(RecoveryError::Foreign {
            file: file.to_owned(),
            id,
            other_file: other_file.clone(),
            other_id: *other_id,
        }),
    };
    if let Some(mark) = marks.mark() {
        compare(marks::FILE_NAME, mark.id)?;
        epoch = mark.epoch;
    }
    for segment in segments {
        if let Some(header) = segment.header {
            compare(&segment.name, header.id)?;
            epoch = epoch.max(header.epoch);
        }
    }
    for name in snapshots {
        match SnapshotReader::open(storage, &name.file_name()) {
            Ok(reader) => {
                compare(&name.file_name(), reader.directory_id())?;
                epoch = epoch.max(reader.info().epoch);
            }
            Err(SnapshotReadError::Damaged { .. } | SnapshotReadError::NewerFormat { .. }) => {}
            Err(error @ SnapshotReadError::Io { .. }) => return Err(error.into()),
        }
    }
    Ok((found.map(|(_, id)| id), epoch))
}

/// Each start begins a higher epoch than any before it, so epochs do not go back from one segment to the next. Inside a
/// segment all batches have its epoch; one that has not is no batch of it.
fn check_epochs(segments: &[FoundSegment]) -> Result<(), RecoveryError> {
    let mut before: Option<(&str, Epoch)> = None;
    for segment in segments {
        let Some(header) = segment.header else { continue };
        if let Some((other_file, other_epoch)) = before.filter(|(_, before)| header.epoch < *before) {
            return Err(RecoveryError::EpochWentBack {
                file: segment.name.clone(),
                epoch: header.epoch,
                other_file: other_file.to_owned(),
                other_epoch,
            });
        }
        before = Some((&segment.name, header.epoch));
    }
    Ok(())
}

/// A snapshot is read in full before it is used only where there is something to fall back to: an older one, or a
/// journal that goes back to the very first batch. Otherwise damage is told when the parts are read, and that saves
/// reading every snapshot twice.
fn newest_good(
    storage: &dyn Storage,
    newest_first: &[SnapshotName],
    segments: &[FoundSegment],
    warnings: &mut Vec<Warning>,
) -> Result<Option<SnapshotReader>, RecoveryError> {
    let is_whole_journal = segments.first().is_some_and(|segment| segment.first == Sequence::NONE.next());
    for (at, name) in newest_first.iter().enumerate() {
        let file = name.file_name();
        let has_fallback = is_whole_journal || at + 1 < newest_first.len();
        let opened = SnapshotReader::open(storage, &file).and_then(|reader| {
            if has_fallback {
                SnapshotReader::open(storage, &file)?.verify()?;
            }
            Ok(reader)
        });
        match opened {
            Ok(reader) => return Ok(Some(reader)),
            Err(SnapshotReadError::Damaged { file, offset, detail }) => {
                warnings.push(Warning::SnapshotDamaged { file, offset, detail: detail.to_owned() });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

pub(super) fn at(operation: Operation, file: &str, offset: u64) -> impl FnOnce(std::io::Error) -> RecoveryError {
    let file = file.to_owned();
    move |source| RecoveryError::Io { operation, file, offset, source }
}
