//! Reads what a directory holds and says what is wrong with it. Streams: nothing is held in memory but the part or
//! the batch at hand. Refuses to change anything until it is asked to open the journal for writing.
//!
//! What decides between a torn tail, which is normal, and damage, which is not: when the next batch is not where it
//! should be, that batch was lost. If anything on the disk says that it was *durable*, it is damage: a later frame,
//! the header of a later segment, the name of a snapshot, or the file `MARKS`. If nothing does, no client was ever
//! promised it, nor anything after it.

mod finding;
mod opening;

use std::sync::Arc;

pub use finding::{RecoveryError, Warning};

use crate::directory_id::DirectoryId;
use crate::failure::Operation;
use crate::marks::{self, Found};
use crate::segment::{self, HeaderError, Next, SegmentHeader, SegmentReader};
use crate::sequence::Sequence;
use crate::snapshot::{Part, SnapshotInfo, SnapshotName, SnapshotReadError, SnapshotReader, is_temporary};
use crate::storage::Storage;

/// A directory being read: first the parts of the snapshot, if there is one, then the batches since.
pub struct Recovery {
    storage: Arc<dyn Storage>,
    warnings: Vec<Warning>,
    /// What all files here carry; `None` if there are none.
    id: Option<DirectoryId>,
    marks: Found,
    snapshot: Option<SnapshotReader>,
    /// Batches up to here are in every part of the snapshot.
    snapshot_min: Sequence,
    /// The snapshot, good or damaged, that proves that the journal reached furthest.
    witness: Option<SnapshotName>,
    temporaries: Vec<String>,
    /// All segments, ascending.
    segments: Vec<FoundSegment>,
    /// Where reading starts: what comes before is not needed with this snapshot.
    start: usize,
    /// The segment being read, or to be read next.
    position: usize,
    reader: Option<SegmentReader>,
    /// The next batch.
    expected: Sequence,
    /// The highest sequence that something on disk says was durable.
    proven: Sequence,
    finished_bytes: u64,
    end: Option<End>,
    has_failed: bool,
}

struct FoundSegment {
    first: Sequence,
    name: String,
    /// `None` if its header cannot be read.
    id: Option<DirectoryId>,
    /// The length of the file, and once it is read, where its batches end.
    bytes: u64,
}

/// Where the batches end: in this segment, before this offset. At offset 0 the segment itself does not count.
#[derive(Clone, Copy)]
struct End {
    position: usize,
    offset: u64,
}

/// How far reading has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub bytes_read: u64,
    pub bytes_total: u64,
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
            segments.push(FoundSegment { first, name, id: header.ok().map(|header| header.id), bytes: reader.len() });
        }
        segments.sort_unstable_by_key(|segment| segment.first);
        let mut snapshots: Vec<SnapshotName> = names.iter().filter_map(|name| SnapshotName::parse(name)).collect();
        snapshots.sort_unstable_by_key(|name| std::cmp::Reverse(name.generation));

        let marks = marks::read(&*storage).map_err(at(Operation::Read, marks::FILE_NAME, 0))?;
        let marks = marks
            .map_err(|newer| RecoveryError::NewerFormat { file: marks::FILE_NAME.to_owned(), version: newer.0 })?;
        let id = common_id(&*storage, &marks, &snapshots, &segments)?;
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

    /// The snapshot that is used, if there is one.
    pub fn snapshot(&self) -> Option<&SnapshotInfo> {
        self.snapshot.as_ref().map(SnapshotReader::info)
    }

    /// What was given to [`crate::SnapshotWriter::create`].
    pub fn meta(&self) -> Option<&[u8]> {
        self.snapshot.as_ref().map(SnapshotReader::meta)
    }

    /// The next part of the snapshot; `None` once all of it was read and is right.
    pub fn next_part(&mut self) -> Result<Option<Part<'_>>, RecoveryError> {
        let Some(snapshot) = &mut self.snapshot else { return Ok(None) };
        snapshot.next_part().map_err(|error| {
            self.has_failed = true;
            error.into()
        })
    }

    /// The next batch that some part of the snapshot may not have. A part has those up to its own stamp: the caller
    /// skips these for it.
    pub fn next_batch(&mut self) -> Result<Option<(Sequence, &[u8])>, RecoveryError> {
        if self.has_failed {
            return Err(RecoveryError::Unfinished);
        }
        match self.advance() {
            Ok(Some(sequence)) => {
                let reader = self.reader.as_ref().expect("a batch comes from a segment");
                Ok(Some((sequence, reader.payload())))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.has_failed = true;
                Err(error)
            }
        }
    }

    /// What an operator should know; complete once all batches are read.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub fn progress(&self) -> Progress {
        let snapshot = self.snapshot.as_ref();
        let needed = &self.segments[self.start..];
        let segments_total: u64 = needed.iter().map(|segment| segment.bytes).sum();
        let segments_read = self.finished_bytes + self.reader.as_ref().map_or(0, SegmentReader::offset);
        Progress {
            bytes_read: snapshot.map_or(0, SnapshotReader::offset) + segments_read,
            bytes_total: snapshot.map_or(0, |snapshot| snapshot.info().bytes) + segments_total,
        }
    }

    /// The last batch; final once all batches are read.
    pub fn reached(&self) -> Sequence {
        self.expected.previous().max(self.snapshot_min)
    }

    fn advance(&mut self) -> Result<Option<Sequence>, RecoveryError> {
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
                    self.expected = header.sequence.next();
                    self.proven = self.proven.max(header.durable);
                    if header.sequence > self.snapshot_min && header.length > 0 {
                        return Ok(Some(header.sequence));
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

fn open_segment(
    storage: &dyn Storage,
    name: &str,
    first: Sequence,
) -> Result<(SegmentReader, Result<SegmentHeader, HeaderError>), RecoveryError> {
    let file = storage.open(name).map_err(at(Operation::Open, name, 0))?;
    let mut reader = SegmentReader::new(file).map_err(at(Operation::Read, name, 0))?;
    let header = reader.header(first).map_err(at(Operation::Read, name, 0))?;
    Ok((reader, header))
}

/// The id that all files carry, or an error that names one which does not. `MARKS` is asked first: it is the one file
/// that is there for as long as the directory is. A file whose id cannot be read is left to the search for damage.
fn common_id(
    storage: &dyn Storage,
    marks: &Found,
    snapshots: &[SnapshotName],
    segments: &[FoundSegment],
) -> Result<Option<DirectoryId>, RecoveryError> {
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
    }
    for segment in segments {
        if let Some(id) = segment.id {
            compare(&segment.name, id)?;
        }
    }
    for name in snapshots {
        match SnapshotReader::open(storage, &name.file_name()) {
            Ok(reader) => compare(&name.file_name(), reader.directory_id())?,
            Err(SnapshotReadError::Damaged { .. } | SnapshotReadError::NewerFormat { .. }) => {}
            Err(error @ SnapshotReadError::Io { .. }) => return Err(error.into()),
        }
    }
    Ok(found.map(|(_, id)| id))
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

fn at(operation: Operation, file: &str, offset: u64) -> impl FnOnce(std::io::Error) -> RecoveryError {
    let file = file.to_owned();
    move |source| RecoveryError::Io { operation, file, offset, source }
}
