//! Reads a directory and reports what is wrong with it. Streams: only the current part or batch is in memory. Refuses
//! to change anything until it is asked to open the journal for writing.
//!
//! A torn tail is normal, damage is not. The difference: when the next batch is not where it should be, it was lost. If
//! anything on the disk says that it was *durable*, that is damage: a later frame, the header of a later segment, the
//! name of a snapshot, or the file `MARKS`. Otherwise no client was ever promised that batch, or any after it.

use std::io::ErrorKind;
use std::sync::Arc;

use super::epochs::Epochs;
use super::finding::{DirectoryError, Warning};
use super::history::{History, ReadProgress, RecoveryError};
use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::fence::Fence;
use crate::file_log::LogEnd;
use crate::files::frame::{Layout, Place};
use crate::files::marks::{self, Found};
use crate::files::segment::{self, HeaderError, Next, SegmentHeader, SegmentReader};
use crate::files::{DirectoryId, EpochId};
use crate::log::Batch;
use crate::sequence::Sequence;
use crate::snapshot::{SnapshotInfo, SnapshotName, SnapshotReadError, SnapshotReader, StoredPart, is_temporary};
use crate::storage::Storage;

/// A directory being read: first the parts of the snapshot, if there is one, then the batches since.
pub struct Recovery {
    pub(super) storage: Arc<dyn Storage>,
    warnings: Vec<Warning>,
    /// The id of all files here; `None` if there are none.
    pub(super) id: Option<DirectoryId>,
    /// All epochs found.
    pub(super) epochs: Epochs,
    /// The time of the last batch read so far.
    pub(super) time_ms: u64,
    pub(super) marks: Found,
    snapshot: Option<SnapshotReader>,
    /// Every part of the snapshot has the batches up to here.
    snapshot_min: Sequence,
    /// The snapshot, good or damaged, that proves the furthest end of the journal.
    witness: Option<SnapshotName>,
    pub(super) temporaries: Vec<String>,
    /// Segments and snapshots of a writer that had lost the directory.
    pub(super) left_behind: Vec<String>,
    /// All segments that count, ascending.
    pub(super) segments: Vec<FoundSegment>,
    /// Where reading starts: earlier segments are not needed with this snapshot.
    pub(super) start: usize,
    /// The segment being read, or to be read next.
    position: usize,
    reader: Option<SegmentReader>,
    /// The next batch.
    pub(super) expected: Sequence,
    /// The highest sequence that something on disk calls durable.
    pub(super) proven: Sequence,
    finished_bytes: u64,
    pub(super) end: Option<End>,
    has_failed: bool,
    /// What the reader does where batches are missing.
    purpose: Purpose,
    /// The damage at which a reader has ended that is to repair the directory.
    pub(super) damage: Option<Damage>,
    /// The epoch of the segment that was read last.
    pub(super) read_epoch: Option<(Epoch, EpochId)>,
    /// The last batch in the segments, where a follower knows it.
    pub(super) last_stored: Option<Sequence>,
}

/// Why a directory is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To be opened, or checked: damage is an error.
    Start,
    /// To be followed while another process writes it: what is missing may be on its way.
    Follow,
    /// To be repaired: the reading ends where a segment is damaged.
    Repair,
}

/// The damage where a journal is to be cut.
pub(super) struct Damage {
    pub(super) detail: String,
    /// Why the first batch that is lost counts as durable.
    pub(super) evidence: String,
}

/// How far a follower has read.
pub(crate) struct FollowedTo {
    /// The last batch that it has.
    pub(crate) reached: Sequence,
    /// The time of that batch.
    pub(crate) time_ms: u64,
    /// The highest sequence that it knows to be durable.
    pub(crate) proven: Sequence,
    /// Where its last segment ends; `None` if there is no segment.
    pub(crate) segment: Option<SegmentEnd>,
    /// The restart that does not count, because there was no snapshot for it when the fence was raised.
    pub(crate) abandoned_break: Option<Sequence>,
}

/// The end of the batches in a segment.
pub(crate) struct SegmentEnd {
    pub(crate) first: Sequence,
    pub(crate) offset: u64,
    /// The last batch in this segment, or before it if it is empty; `None` for an empty break, which follows a gap.
    pub(crate) last_stored: Option<Sequence>,
}

pub(super) struct FoundSegment {
    pub(super) first: Sequence,
    pub(super) name: String,
    /// `None` if it is unreadable.
    pub(super) header: Option<SegmentHeader>,
    /// The length of the file; after reading, the end of its batches.
    pub(super) bytes: u64,
}

/// The end of the batches: in this segment, before this offset. At offset 0 the segment itself does not count.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) position: usize,
    pub(super) offset: u64,
}

impl FoundSegment {
    /// `None` if it is unreadable.
    fn epoch(&self) -> Option<Epoch> {
        self.header.map(|header| header.epoch)
    }

    /// True when it has no batch before this offset.
    pub(super) fn is_empty_at(&self, offset: u64) -> bool {
        offset <= self.header.map_or(segment::HEADER_LEN, |header| header.len())
    }
}

impl Recovery {
    /// Finds the newest good snapshot and the segments that follow it.
    pub fn open(storage: Arc<dyn Storage>) -> Result<Recovery, RecoveryError> {
        Ok(Recovery::open_as(storage, Purpose::Start)?)
    }

    /// As [`Recovery::open`], of a directory that another process may be writing: it ends where the batches end that
    /// are there now, and [`Recovery::into_follower`] reads on. Fails with [`DirectoryError::Io`] if a file is removed
    /// meanwhile; then open it again.
    pub fn open_live(storage: Arc<dyn Storage>) -> Result<Recovery, RecoveryError> {
        Ok(Recovery::open_as(storage, Purpose::Follow)?)
    }

    /// As [`Recovery::open`], but ends before the first damage that can be cut off.
    pub(super) fn open_to_repair(storage: Arc<dyn Storage>) -> Result<Recovery, RecoveryError> {
        Ok(Recovery::open_as(storage, Purpose::Repair)?)
    }

    /// Returns true for a directory whose damaged end is cut off.
    pub(super) fn is_repair(&self) -> bool {
        self.purpose == Purpose::Repair
    }

    fn open_as(storage: Arc<dyn Storage>, purpose: Purpose) -> Result<Recovery, DirectoryError> {
        let Survey { segments, snapshots, marks, id, epochs, temporaries, left_behind, .. } = Survey::of(&*storage)?;
        let has_data = !snapshots.is_empty() || segments.iter().any(|segment| !segment.is_empty_at(segment.bytes));
        let mut warnings: Vec<Warning> =
            left_behind.iter().map(|file| Warning::LeftBehind { file: file.clone() }).collect();
        match marks {
            Found::Missing if has_data => warnings.push(Warning::MarksMissing),
            Found::Unreadable if has_data => warnings.push(Warning::MarksUnreadable),
            Found::Missing | Found::Unreadable | Found::Mark(_) => {}
        }
        let snapshot = newest_good(&*storage, &snapshots, &segments, &mut warnings)?;
        let read_epoch = snapshot.as_ref().map(|snapshot| (snapshot.info().epoch, snapshot.epoch_id()));
        let snapshot_min = snapshot.as_ref().map_or(Sequence::NONE, |snapshot| snapshot.info().min);
        let joining = segments.partition_point(|segment| segment.first <= snapshot_min.next());
        let start = joining.saturating_sub(1);
        let expected = if joining > 0 { segments[start].first } else { snapshot_min.next() };
        let witness = snapshots.into_iter().max_by_key(|name| name.max);
        Ok(Recovery {
            storage,
            warnings,
            id,
            epochs,
            time_ms: 0,
            marks,
            snapshot,
            snapshot_min,
            witness,
            temporaries,
            left_behind,
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
            purpose,
            damage: None,
            read_epoch,
            last_stored: None,
        })
    }

    /// Continues where a follower has ended that read everything, in a directory whose writer is fenced.
    pub(crate) fn at_end_of(storage: Arc<dyn Storage>, followed: FollowedTo) -> Result<Recovery, DirectoryError> {
        let mut survey = Survey::of(&*storage)?;
        if let Some(first) = followed.abandoned_break {
            // It is there only since the follower has found that there is none: too late to count.
            let (late, snapshots) = survey.snapshots.into_iter().partition(|name| name.max >= first.previous());
            let late: Vec<SnapshotName> = late;
            survey.left_behind.extend(late.iter().map(SnapshotName::file_name));
            survey.snapshots = snapshots;
        }
        let Survey { segments, snapshots, marks, id, epochs, temporaries, left_behind, .. } = survey;
        let position = match &followed.segment {
            None => 0,
            Some(end) => segments.iter().position(|segment| segment.first == end.first).ok_or_else(|| {
                let detail = "it was removed while the directory was taken over".to_owned();
                DirectoryError::Missing { file: segment::file_name(end.first), detail }
            })?,
        };
        let witness = snapshots.into_iter().max_by_key(|name| name.max);
        let durable_of = |segment: &FoundSegment| segment.header.map_or(Sequence::NONE, |header| header.durable);
        let proven = followed
            .proven
            .max(witness.map_or(Sequence::NONE, |witness| witness.max))
            .max(marks.mark().map_or(Sequence::NONE, |mark| mark.durable));
        // Of the segments behind the end, the headers are evidence of a loss; they prove nothing.
        let proven = segments.iter().take(position + 1).map(durable_of).fold(proven, Sequence::max);
        let mut recovery = Recovery {
            storage,
            warnings: left_behind.iter().map(|file| Warning::LeftBehind { file: file.clone() }).collect(),
            id,
            epochs,
            time_ms: followed.time_ms,
            marks,
            snapshot: None,
            snapshot_min: followed.reached,
            witness,
            temporaries,
            left_behind,
            segments,
            start: position,
            position,
            reader: None,
            expected: followed.reached.next(),
            proven,
            finished_bytes: 0,
            end: None,
            has_failed: false,
            purpose: Purpose::Start,
            damage: None,
            read_epoch: None,
            last_stored: followed.segment.as_ref().and_then(|end| end.last_stored),
        };
        let offset = followed.segment.as_ref().map_or(0, |end| end.offset);
        recovery.end_at(position, offset, "batches are missing")?;
        Ok(recovery)
    }

    /// Reads and checks the rest, and returns where a reader goes on.
    pub(crate) fn into_end(mut self) -> Result<LogEnd, RecoveryError> {
        while self.next_batch()?.is_some() {}
        let (reached, epoch, time_ms, proven) = (self.reached(), self.read_epoch, self.time_ms, self.proven);
        Ok(LogEnd { storage: self.storage, reached, epoch, time_ms, proven })
    }

    fn advance(&mut self) -> Result<Option<Place>, DirectoryError> {
        while self.end.is_none() {
            let Some(reader) = &mut self.reader else {
                self.enter_segment()?;
                continue;
            };
            let offset = reader.offset();
            // A later writer goes on here. What may follow was written by a writer that had lost the directory.
            if let [current, following, ..] = &self.segments[self.position..]
                && following.first == self.expected
                && following.epoch() > current.epoch()
            {
                self.leave_segment(offset);
                continue;
            }
            let segment = &mut self.segments[self.position];
            let next = match reader.next(self.expected) {
                // The writer has cut off zeros behind the data since the length was read.
                Err(error) if self.purpose == Purpose::Follow && error.kind() == ErrorKind::UnexpectedEof => Next::End,
                next => next.map_err(at(Operation::Read, &segment.name, offset))?,
            };
            let detail = match next {
                Next::Frame(header) => {
                    let place = header.place;
                    self.expected = place.sequence.next();
                    self.proven = self.proven.max(place.durable);
                    self.time_ms = self.time_ms.max(place.time_ms);
                    if place.sequence > self.snapshot_min && header.length > 0 {
                        return Ok(Some(place));
                    }
                    continue;
                }
                Next::End => "batches are missing",
                Next::Bad(detail) => detail,
            };
            match self.segments.get(self.position + 1) {
                // Nothing is missing, whatever follows the last batch here.
                Some(following) if following.first == self.expected => self.leave_segment(offset),
                _ => self.end_at(self.position, offset, detail)?,
            }
        }
        Ok(None)
    }

    fn enter_segment(&mut self) -> Result<(), DirectoryError> {
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
                return Err(DirectoryError::NewerFormat { file: segment.name.clone(), version });
            }
            Err(error) => return self.end_at(position, 0, &error.to_string()),
        };
        // The segment where reading starts continues the snapshot. Any other break waits for a snapshot that was never
        // completed.
        if header.is_break && (position > self.start || self.snapshot.is_none()) {
            return self.end_at(position, 0, "the snapshot it needs is missing");
        }
        self.proven = self.proven.max(header.durable);
        self.time_ms = self.time_ms.max(header.time_ms);
        self.read_epoch = Some((header.epoch, header.epoch_id));
        self.reader = Some(reader);
        Ok(())
    }

    fn leave_segment(&mut self, offset: u64) {
        self.segments[self.position].bytes = offset;
        self.finished_bytes += offset;
        self.position += 1;
        self.reader = None;
    }

    /// Handles a missing batch: either the journal ends here, or something was lost.
    fn end_at(&mut self, position: usize, offset: u64, detail: &str) -> Result<(), DirectoryError> {
        if self.purpose == Purpose::Follow {
            // What is missing may be on its way: the follower finds out.
            self.reader = None;
            self.end = Some(End { position, offset });
            return Ok(());
        }
        // Batches that every part of the snapshot contains are not lost, even if the journal lacks them.
        let lost = self.expected.max(self.snapshot_min.next());
        if let Some(evidence) = self.find_evidence(position, offset, lost)? {
            // What was left behind has nothing durable, so it was not.
            if let Some(error) = self.epoch_went_back(lost)? {
                return Err(error);
            }
            return Err(match self.missing_segment(position, offset, lost)? {
                Some(file) => {
                    let detail = format!("the journal ends with batch {}, but {evidence}", self.reached());
                    self.instead_of_snapshot(DirectoryError::Missing { file, detail })
                }
                None if self.purpose == Purpose::Repair && self.can_be_cut(position, offset, lost)? => {
                    let detail = format!("{} is damaged at offset {offset}: {detail}", self.segments[position].name);
                    self.damage = Some(Damage { detail, evidence });
                    self.reader = None;
                    self.end = Some(End { position, offset });
                    return Ok(());
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

    /// Returns true if the directory can be read again once everything is cut off that follows the last batch before
    /// `lost`: a segment is there to be cut, none is missing, and no snapshot has later batches.
    fn can_be_cut(&self, position: usize, offset: u64, lost: Sequence) -> Result<bool, DirectoryError> {
        let Some(segment) = self.segments.get(position) else { return Ok(false) };
        let is_fallback = self.warnings.iter().any(|warning| matches!(warning, Warning::SnapshotDamaged { .. }));
        let is_needed = is_fallback || self.witness.is_some_and(|witness| witness.max >= lost);
        if segment.first > self.expected || is_needed || segment.header.is_some_and(|header| header.is_break) {
            return Ok(false);
        }
        // If a segment ends well, it is the one behind it that is missing.
        let ends_well = offset > 0 && self.search(segment, offset, lost)?.data_end == offset;
        Ok(!(ends_well && position + 1 < self.segments.len()))
    }

    /// Returns evidence that `lost`, or a later batch, was durable.
    fn find_evidence(&self, position: usize, offset: u64, lost: Sequence) -> Result<Option<String>, DirectoryError> {
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

    fn search(&self, segment: &FoundSegment, from: u64, lost: Sequence) -> Result<segment::Remains, DirectoryError> {
        let (reader, _) = open_segment(&*self.storage, &segment.name, segment.first)?;
        let search = |layout| {
            segment::search_remains(reader.file(), layout, reader.len(), from, segment.first, lost).map_err(at(
                Operation::Read,
                &segment.name,
                from,
            ))
        };
        match segment.header {
            Some(header) => search(header.layout),
            // Its header cannot be read, so its format is not known.
            None => match search(Layout::Three)? {
                found if found.mark_offset.is_some() => Ok(found),
                _ => search(Layout::Two),
            },
        }
    }

    /// Names the missing segment, if the marks prove that one followed a journal that otherwise ends properly.
    fn missing_segment(&self, position: usize, offset: u64, lost: Sequence) -> Result<Option<String>, DirectoryError> {
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
        // The segment that was being written is known by name, but it may have been empty.
        Ok(ends_well.then(|| match mark.segment <= mark.durable {
            true => segment::file_name(mark.segment),
            false => format!("the segment with batch {lost}"),
        }))
    }

    /// The error for a lost batch that may be in a segment which was taken for one that was left behind.
    fn epoch_went_back(&self, lost: Sequence) -> Result<Option<DirectoryError>, DirectoryError> {
        let before = self.segments.iter().rev().find(|segment| segment.first <= lost && segment.header.is_some());
        let Some((other, other_epoch)) = before.and_then(|other| Some((other, other.epoch()?))) else {
            return Ok(None);
        };
        for name in &self.left_behind {
            let Some(first) = segment::parse_file_name(name).filter(|first| *first >= lost) else { continue };
            let (_, header) = open_segment(&*self.storage, name, first)?;
            if let Some(epoch) = header.ok().map(|header| header.epoch).filter(|epoch| *epoch < other_epoch) {
                let (file, other_file) = (name.clone(), other.name.clone());
                return Ok(Some(DirectoryError::EpochWentBack { file, epoch, other_file, other_epoch }));
            }
        }
        Ok(None)
    }

    fn damage(&self, position: usize, offset: u64, detail: &str, evidence: &str) -> DirectoryError {
        // Without a segment here, report the end of the previous one, or else the snapshot.
        let (file, offset) = match (self.segments.get(position), position.checked_sub(1)) {
            (Some(segment), _) => (segment.name.clone(), offset),
            (None, Some(before)) => (self.segments[before].name.clone(), self.segments[before].bytes),
            (None, None) => (self.witness.map(|name| name.file_name()).unwrap_or_default(), 0),
        };
        let detail = format!("{detail}, but batch {} was durable: {evidence}", self.expected);
        self.instead_of_snapshot(DirectoryError::Damaged { file, offset, detail })
    }

    /// Reports a damaged snapshot instead of the error in the journal, if the journal was read only because the
    /// snapshot is damaged.
    fn instead_of_snapshot(&self, damaged: DirectoryError) -> DirectoryError {
        let lost_snapshot = self.warnings.iter().find_map(|warning| match warning {
            Warning::SnapshotDamaged { file, offset, detail } => Some((file.clone(), *offset, detail.clone())),
            Warning::TornTail { .. }
            | Warning::SegmentDropped { .. }
            | Warning::LeftBehind { .. }
            | Warning::MarksMissing
            | Warning::MarksUnreadable => None,
        });
        match lost_snapshot {
            None => damaged,
            Some((file, offset, detail)) => {
                DirectoryError::SnapshotLost { file, offset, detail, journal: Box::new(damaged) }
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

    fn next_part(&mut self) -> Result<Option<StoredPart<'_>>, RecoveryError> {
        let Some(snapshot) = &mut self.snapshot else { return Ok(None) };
        snapshot.next_part().map_err(|error| {
            self.has_failed = true;
            DirectoryError::from(error).into()
        })
    }

    fn next_batch(&mut self) -> Result<Option<Batch<&[u8]>>, RecoveryError> {
        if self.has_failed {
            return Err(RecoveryError::Unfinished);
        }
        match self.advance() {
            Ok(Some(Place { epoch, sequence, time_ms, .. })) => {
                let reader = self.reader.as_ref().expect("a batch comes from a segment");
                Ok(Some(Batch { epoch, sequence, time_ms, payload: reader.payload() }))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.has_failed = true;
                Err(error.into())
            }
        }
    }

    fn reached(&self) -> Sequence {
        self.expected.previous().max(self.snapshot_min)
    }

    fn progress(&self) -> ReadProgress {
        let snapshot = self.snapshot.as_ref();
        let needed = &self.segments[self.start..];
        let segments_total: u64 = needed.iter().map(|segment| segment.bytes).sum();
        let segments_read = self.finished_bytes + self.reader.as_ref().map_or(0, SegmentReader::offset);
        ReadProgress {
            bytes_read: snapshot.map_or(0, SnapshotReader::offset) + segments_read,
            bytes_total: snapshot.map_or(0, |snapshot| snapshot.info().bytes) + segments_total,
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

pub(super) fn open_segment(
    storage: &dyn Storage,
    name: &str,
    first: Sequence,
) -> Result<(SegmentReader, Result<SegmentHeader, HeaderError>), DirectoryError> {
    let file = storage.open(name).map_err(at(Operation::Open, name, 0))?;
    let mut reader = SegmentReader::new(file).map_err(at(Operation::Read, name, 0))?;
    let header = reader.header(first).map_err(at(Operation::Read, name, 0))?;
    Ok((reader, header))
}

/// What is in a directory, without the contents of segments and snapshots.
pub(crate) struct Survey {
    /// Ascending.
    segments: Vec<FoundSegment>,
    /// The newest first.
    snapshots: Vec<SnapshotName>,
    /// All batches up to here are in every part of some snapshot.
    pub(crate) snapshot_min: Sequence,
    marks: Found,
    id: Option<DirectoryId>,
    epochs: Epochs,
    temporaries: Vec<String>,
    /// Segments and snapshots that do not count.
    left_behind: Vec<String>,
}

/// How often a directory is listed again because a file was removed since it was listed.
const LIST_AGAIN_MAX: usize = 10;

impl Survey {
    pub(crate) fn of(storage: &dyn Storage) -> Result<Survey, DirectoryError> {
        let is_gone = |error: &DirectoryError| match error {
            DirectoryError::Io { source, .. } => source.kind() == ErrorKind::NotFound,
            _ => false,
        };
        for _ in 0..LIST_AGAIN_MAX {
            match Survey::look(storage) {
                Err(error) if is_gone(&error) => {}
                survey => return survey,
            }
        }
        Survey::look(storage)
    }

    /// The newest epoch that any file names.
    pub(crate) fn newest_epoch(&self) -> Epoch {
        self.epochs.newest().0
    }

    /// Raises the fence above all epochs of the directory, and returns the epoch that has the right to write.
    pub(crate) fn raise(&self, fence: &Fence) -> Result<Epoch, DirectoryError> {
        self.epochs.raise(fence)
    }

    /// True when there is a snapshot that was made when the journal had reached this batch.
    pub(crate) fn has_snapshot_of(&self, sequence: Sequence) -> bool {
        self.snapshots.iter().any(|name| name.max >= sequence)
    }

    fn look(storage: &dyn Storage) -> Result<Survey, DirectoryError> {
        let names = storage.list().map_err(|source| DirectoryError::Io {
            operation: Operation::List,
            file: "the data directory".to_owned(),
            offset: 0,
            source,
        })?;
        let mut segments = Vec::new();
        for first in names.iter().filter_map(|name| segment::parse_file_name(name)) {
            let name = segment::file_name(first);
            let (reader, header) = open_segment(storage, &name, first)?;
            segments.push(FoundSegment { first, name, header: header.ok(), bytes: reader.len() });
        }
        segments.sort_unstable_by_key(|segment| segment.first);
        let mut snapshots: Vec<SnapshotName> = names.iter().filter_map(|name| SnapshotName::parse(name)).collect();
        snapshots.sort_unstable_by_key(|name| std::cmp::Reverse(name.generation));

        let marks = marks::read(storage).map_err(at(Operation::Read, marks::FILE_NAME, 0))?;
        let marks = marks
            .map_err(|newer| DirectoryError::NewerFormat { file: marks::FILE_NAME.to_owned(), version: newer.0 })?;
        let Ids { directory: id, epochs, snapshots: stored } = common_id(storage, &marks, &snapshots, &segments)?;
        let mut left_behind = Vec::new();
        // IMPORTANT: segments first. Those that do not count say nothing about snapshots.
        let mut counting: Vec<FoundSegment> = Vec::new();
        for segment in segments {
            let counts = match (segment.epoch(), counting.last()) {
                (_, None) => true,
                (Some(epoch), Some(_)) => counting.iter().all(|before| before.epoch() <= Some(epoch)),
                (None, Some(before)) => !has_batch(storage, before, segment.first)?,
            };
            match counts {
                true => counting.push(segment),
                false => left_behind.push(segment.name),
            }
        }
        let segments = counting;
        let all: Vec<(SnapshotName, Option<(Epoch, Sequence)>)> = snapshots.into_iter().zip(stored).collect();
        let (mut snapshots, mut snapshot_min) = (Vec::new(), Sequence::NONE);
        for (name, stored) in &all {
            match stored {
                Some((epoch, _)) if is_left_behind(name, *epoch, &segments, &all) => {
                    left_behind.push(name.file_name());
                }
                stored => {
                    snapshots.push(*name);
                    snapshot_min = snapshot_min.max(stored.map_or(Sequence::NONE, |(_, min)| min));
                }
            }
        }
        let is_temporary =
            |name: &String| is_temporary(name) || segment::is_temporary(name) || marks::is_temporary(name);
        let temporaries = names.into_iter().filter(is_temporary).collect();
        Ok(Survey { segments, snapshots, snapshot_min, marks, id, epochs, temporaries, left_behind })
    }
}

/// True when a segment has this batch. Then one that should begin with it, and is unreadable since a power failure, was
/// begun by a writer that had lost the directory.
fn has_batch(storage: &dyn Storage, segment: &FoundSegment, wanted: Sequence) -> Result<bool, DirectoryError> {
    let (mut reader, header) = open_segment(storage, &segment.name, segment.first)?;
    let mut expected = segment.first;
    while header.is_ok() && expected <= wanted {
        match reader.next(expected).map_err(at(Operation::Read, &segment.name, 0))? {
            Next::Frame(_) => expected = expected.next(),
            Next::End | Next::Bad(_) => break,
        }
    }
    Ok(expected > wanted)
}

/// True for a snapshot that a writer has published after it had lost the directory. It holds what a later writer does
/// not have, or it is numbered after one of a later writer.
fn is_left_behind(
    name: &SnapshotName,
    epoch: Epoch,
    segments: &[FoundSegment],
    snapshots: &[(SnapshotName, Option<(Epoch, Sequence)>)],
) -> bool {
    let is_later = |other: Option<Epoch>| other > Some(epoch);
    segments.iter().any(|segment| segment.first <= name.max && is_later(segment.epoch()))
        || snapshots.iter().any(|(other, stored)| {
            other.generation <= name.generation && is_later(stored.map(|(other_epoch, _)| other_epoch))
        })
}

/// The ids in the files of a directory.
struct Ids {
    directory: Option<DirectoryId>,
    epochs: Epochs,
    /// The epoch and the lowest stamp of each snapshot; `None` if it is unreadable.
    snapshots: Vec<Option<(Epoch, Sequence)>>,
}

/// Returns the id of all files and their epochs, or an error that names a file of another directory or history. `MARKS`
/// is read first: it exists as long as the directory does. A file with an unreadable id is left to the search for
/// damage.
fn common_id(
    storage: &dyn Storage,
    marks: &Found,
    snapshots: &[SnapshotName],
    segments: &[FoundSegment],
) -> Result<Ids, DirectoryError> {
    let mut epochs = Epochs::default();
    let mut stored = Vec::new();
    let mut found: Option<(String, DirectoryId)> = None;
    let mut compare = |file: &str, id: DirectoryId| match &found {
        None => {
            found = Some((file.to_owned(), id));
            Ok(())
        }
        Some((_, common)) if *common == id => Ok(()),
        Some((other_file, other_id)) => Err(DirectoryError::Foreign {
            file: file.to_owned(),
            id,
            other_file: other_file.clone(),
            other_id: *other_id,
        }),
    };
    if let Some(mark) = marks.mark() {
        compare(marks::FILE_NAME, mark.id)?;
        epochs.note(marks::FILE_NAME, mark.epoch, mark.epoch_id)?;
    }
    for segment in segments {
        if let Some(header) = segment.header {
            compare(&segment.name, header.id)?;
            epochs.note(&segment.name, header.epoch, header.epoch_id)?;
            epochs.note_previous(&segment.name, header.epoch, header.previous_id)?;
        }
    }
    for name in snapshots {
        match SnapshotReader::open(storage, &name.file_name()) {
            Ok(reader) => {
                compare(&name.file_name(), reader.directory_id())?;
                epochs.note(&name.file_name(), reader.info().epoch, reader.epoch_id())?;
                stored.push(Some((reader.info().epoch, reader.info().min)));
            }
            Err(SnapshotReadError::Damaged { .. } | SnapshotReadError::NewerFormat { .. }) => {
                stored.push(None);
            }
            Err(error @ SnapshotReadError::Io { .. }) => return Err(error.into()),
        }
    }
    Ok(Ids { directory: found.map(|(_, id)| id), epochs, snapshots: stored })
}

/// Finds the newest good snapshot. A snapshot is read in full before it is used only if there is a fallback: an older
/// one, or a journal from the first batch on. Otherwise damage is reported when the parts are read, which saves reading
/// every snapshot twice.
fn newest_good(
    storage: &dyn Storage,
    newest_first: &[SnapshotName],
    segments: &[FoundSegment],
    warnings: &mut Vec<Warning>,
) -> Result<Option<SnapshotReader>, DirectoryError> {
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
            Err(SnapshotReadError::Damaged { target: file, offset, detail }) => {
                warnings.push(Warning::SnapshotDamaged { file, offset, detail: detail.to_owned() });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

pub(super) fn at(operation: Operation, file: &str, offset: u64) -> impl FnOnce(std::io::Error) -> DirectoryError {
    let file = file.to_owned();
    move |source| DirectoryError::Io { operation, file, offset, source }
}
