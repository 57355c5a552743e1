//! HyperLogLogs in the bytes of Redis's strings: how many different elements were added, within a percent, in 12 KiB or
//! less. Knows the header, both forms and the estimate; refuses to know keys.
//!
//! ```text
//! "HYLL"  form  3 bytes unused  8 bytes cached count  registers
//! ```
//!
//! The hash of an element chooses one of 16,384 registers; the register keeps the longest run of zeros, plus one, that
//! any of them has in the rest of the hash. Dense, a register is six bits, the lowest first. Sparse, registers are
//! runs:
//!
//! ```text
//! 00llllll            l+1 registers are 0
//! 01llllll llllllll   l+1 registers are 0
//! 1vvvvvll            l+1 registers are v+1
//! ```
//!
//! The bytes may come from a client (SET), so nothing in them is trusted.

use std::borrow::Cow;

const MAGIC: &[u8] = b"HYLL";
const HEADER_BYTES: usize = 16;
/// The form: its place in the header, and its values.
const FORM_AT: usize = 4;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// Where the cached count is, little endian. Its highest bit says that it is stale.
pub const COUNT_AT: usize = 8;
const STALE_AT: usize = 15;
const STALE: u8 = 1 << 7;

const INDEX_BITS: u32 = 14;
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// The bits of a hash that do not choose the register.
const RUN_BITS: u32 = 64 - INDEX_BITS;
const REGISTER_BITS: usize = 6;
const REGISTER_MAX: u8 = (1 << REGISTER_BITS) - 1;
const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;

/// What a run of the sparse form can say.
const VALUE_MAX: u8 = 32;
const VALUE_RUN_MAX: usize = 4;
const SHORT_RUN_MAX: usize = 64;
/// Runs behind a changed one that are looked at to be joined.
const RUNS_JOINED: usize = 5;

/// How many registers have each value.
type Histogram = [u32; REGISTER_MAX as usize + 1];

/// Runs that do not make up the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// One register and the value that it is to have at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    pub register: usize,
    pub value: u8,
}

impl Observation {
    /// What an element says.
    pub fn of(element: &[u8]) -> Observation {
        let hash = murmur_hash(element, 0xadc8_3b19);
        // A bit behind the last ends a run of zeros alone.
        let rest = hash >> INDEX_BITS | 1 << RUN_BITS;
        Observation { register: hash as usize & (REGISTERS - 1), value: rest.trailing_zeros() as u8 + 1 }
    }
}

/// MurmurHash64A, by Austin Appleby.
fn murmur_hash(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// A string that has the header of a HyperLogLog.
#[derive(Clone, Copy)]
pub struct HyperLogLog<'a> {
    bytes: &'a [u8],
}

impl<'a> HyperLogLog<'a> {
    /// `None` when the string is none. Whether its registers are whole shows when they are read.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Option<HyperLogLog<'a>> {
        let has_header = bytes.len() >= HEADER_BYTES && bytes.starts_with(MAGIC);
        let is_one = has_header
            && match bytes[FORM_AT] {
                DENSE => bytes.len() == DENSE_BYTES,
                SPARSE => true,
                _ => false,
            };
        is_one.then_some(HyperLogLog { bytes })
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn is_dense(&self) -> bool {
        self.bytes[FORM_AT] == DENSE
    }

    /// The count that was computed since the last change.
    #[inline]
    pub fn cached_count(&self) -> Option<u64> {
        let count: [u8; 8] = self.bytes[COUNT_AT..HEADER_BYTES].try_into().expect("the count has eight bytes");
        (count[7] & STALE == 0).then_some(u64::from_le_bytes(count))
    }

    /// Where in a dense one something has to be written for an observation, and what; `None` if it says nothing new.
    pub fn dense_update(&self, observed: Observation) -> Option<(usize, [u8; 2], usize)> {
        let at = HEADER_BYTES + observed.register * REGISTER_BITS / 8;
        let mut pair = [self.bytes[at], self.bytes.get(at + 1).copied().unwrap_or(0)];
        set_packed(&mut pair, observed.register * REGISTER_BITS % 8, observed.value)
            .then(|| (at, pair, 2.min(self.bytes.len() - at)))
    }

    /// The byte of the header that says that the count is stale, and its place; `None` if it says so already.
    pub fn stale_update(&self) -> Option<(usize, u8)> {
        let byte = self.bytes[STALE_AT];
        (byte & STALE == 0).then_some((STALE_AT, byte | STALE))
    }

    /// About how many different elements were added.
    pub fn count(&self) -> Result<u64, Corrupt> {
        Ok(estimate(&self.histogram()?))
    }

    fn histogram(&self) -> Result<Histogram, Corrupt> {
        if self.is_dense() {
            return Ok(dense_histogram(&self.bytes[HEADER_BYTES..]));
        }
        let mut histogram = [0; REGISTER_MAX as usize + 1];
        for run in Runs::of(self.bytes) {
            let run = run?;
            histogram[usize::from(run.value)] += run.len as u32;
        }
        Ok(histogram)
    }

    /// Raises each register to what it is here.
    pub fn merge_into(&self, registers: &mut Registers) -> Result<(), Corrupt> {
        if self.is_dense() {
            let packed = self.bytes[HEADER_BYTES..].as_chunks::<3>().0;
            for (three, four) in packed.iter().zip(registers.values.as_chunks_mut::<4>().0) {
                for (value, here) in four.iter_mut().zip(unpack(*three)) {
                    *value = here.max(*value);
                }
            }
            return Ok(());
        }
        let mut at = 0;
        for run in Runs::of(self.bytes) {
            let run = run?;
            if run.value > 0 {
                registers.values[at..at + run.len].iter_mut().for_each(|value| *value = run.value.max(*value));
            }
            at += run.len;
        }
        Ok(())
    }

    /// Each register's value.
    pub fn registers(&self) -> Result<Registers, Corrupt> {
        let mut registers = Registers::default();
        self.merge_into(&mut registers)?;
        Ok(registers)
    }

    /// The runs of a sparse one, in the words of PFDEBUG DECODE. Those that are too many or too few are shown too.
    pub fn decoded(&self) -> String {
        let (mut at, mut words) = (HEADER_BYTES, Vec::new());
        while at < self.bytes.len() {
            let (run, bytes) = Run::at(self.bytes, at);
            words.push(match (run.value, bytes) {
                (0, 1) => format!("z:{}", run.len),
                (0, _) => format!("Z:{}", run.len),
                (value, _) => format!("v:{value},{}", run.len),
            });
            at += bytes;
        }
        words.join(" ")
    }
}

/// All registers, a byte each.
pub struct Registers {
    pub values: [u8; REGISTERS],
}

impl Default for Registers {
    fn default() -> Registers {
        Registers { values: [0; REGISTERS] }
    }
}

impl Registers {
    /// About how many different elements were added.
    pub fn count(&self) -> u64 {
        // Four tables, so that registers of one value in a row do not wait for each other.
        let mut tables = [[0_u32; REGISTER_MAX as usize + 1]; 4];
        for four in self.values.as_chunks::<4>().0 {
            for (table, value) in tables.iter_mut().zip(four) {
                table[usize::from(*value)] += 1;
            }
        }
        estimate(&sum(&tables))
    }
}

/// One run of the sparse form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    value: u8,
    len: usize,
}

impl Run {
    /// The run at a place, and how many bytes it has. The second byte of a run that is cut short counts as 0.
    fn at(bytes: &[u8], at: usize) -> (Run, usize) {
        let byte = bytes[at];
        let low = usize::from(byte & 0x3f);
        match byte >> 6 {
            0 => (Run { value: 0, len: low + 1 }, 1),
            1 => (Run { value: 0, len: (low << 8 | usize::from(bytes.get(at + 1).copied().unwrap_or(0))) + 1 }, 2),
            _ => (Run { value: (byte >> 2 & 0x1f) + 1, len: usize::from(byte & 3) + 1 }, 1),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let rest = self.len - 1;
        match self.value {
            0 if self.len <= SHORT_RUN_MAX => out.push(rest as u8),
            0 => out.extend([0x40 | (rest >> 8) as u8, rest as u8]),
            value => out.push(0x80 | (value - 1) << 2 | rest as u8),
        }
    }
}

/// The runs of a sparse HyperLogLog; an error where they do not make up the registers.
struct Runs<'a> {
    bytes: &'a [u8],
    at: usize,
    registers: usize,
}

impl<'a> Runs<'a> {
    fn of(bytes: &'a [u8]) -> Runs<'a> {
        Runs { bytes, at: HEADER_BYTES, registers: 0 }
    }
}

impl Iterator for Runs<'_> {
    type Item = Result<Run, Corrupt>;

    fn next(&mut self) -> Option<Result<Run, Corrupt>> {
        if self.at >= self.bytes.len() {
            let is_whole = self.registers == REGISTERS;
            self.registers = REGISTERS;
            return (!is_whole).then_some(Err(Corrupt));
        }
        let (run, bytes) = Run::at(self.bytes, self.at);
        self.at += bytes;
        self.registers += run.len;
        Some(if self.registers > REGISTERS { Err(Corrupt) } else { Ok(run) })
    }
}

/// A HyperLogLog that is changed as a whole, apart from the keyspace.
pub struct Draft<'a> {
    bytes: Cow<'a, [u8]>,
    sparse_bytes_max: usize,
}

impl<'a> Draft<'a> {
    /// An empty one.
    pub fn new(sparse_bytes_max: usize) -> Draft<'static> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + 2);
        bytes.extend_from_slice(MAGIC);
        bytes.resize(HEADER_BYTES, 0);
        bytes[FORM_AT] = SPARSE;
        Run { value: 0, len: REGISTERS }.write(&mut bytes);
        Draft { bytes: Cow::Owned(bytes), sparse_bytes_max }
    }

    /// A copy to change; it becomes dense when it would have more bytes than this.
    pub fn of(of: HyperLogLog<'a>, sparse_bytes_max: usize) -> Draft<'a> {
        Draft { bytes: Cow::Borrowed(of.bytes), sparse_bytes_max }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Raises a register. True when it was lower.
    pub fn observe(&mut self, observed: Observation) -> Result<bool, Corrupt> {
        match self.bytes[FORM_AT] {
            DENSE => Ok(self.raise_dense(observed)),
            _ => self.raise_sparse(observed),
        }
    }

    /// Notes that the cached count is no longer right.
    pub fn mark_stale(&mut self) {
        self.bytes.to_mut()[STALE_AT] |= STALE;
    }

    /// Makes it dense, if it is not. True when it was sparse.
    pub fn make_dense(&mut self) -> Result<bool, Corrupt> {
        let current = HyperLogLog { bytes: &self.bytes };
        if current.is_dense() {
            return Ok(false);
        }
        let registers = current.registers()?;
        let mut dense = vec![0; DENSE_BYTES];
        dense[..HEADER_BYTES].copy_from_slice(&self.bytes[..HEADER_BYTES]);
        dense[FORM_AT] = DENSE;
        let packed = dense[HEADER_BYTES..].as_chunks_mut::<3>().0;
        for (three, four) in packed.iter_mut().zip(registers.values.as_chunks::<4>().0) {
            *three = pack(*four);
        }
        self.bytes = Cow::Owned(dense);
        Ok(true)
    }

    fn raise_dense(&mut self, observed: Observation) -> bool {
        let Some((at, pair, len)) = (HyperLogLog { bytes: &self.bytes }).dense_update(observed) else { return false };
        self.bytes.to_mut()[at..at + len].copy_from_slice(&pair[..len]);
        true
    }

    fn raise_sparse(&mut self, observed: Observation) -> Result<bool, Corrupt> {
        if observed.value > VALUE_MAX {
            return self.raise_made_dense(observed);
        }
        let (before, at, first) = self.find(observed.register)?;
        let (run, run_bytes) = Run::at(&self.bytes, at);
        if run.value >= observed.value {
            return Ok(false);
        }
        // What was one run is up to three: the registers before this one, this one, those behind it.
        let mut runs = Vec::with_capacity(5);
        let (ahead, behind) = (observed.register - first, first + run.len - 1 - observed.register);
        for part in [Run { len: ahead, ..run }, Run { value: observed.value, len: 1 }, Run { len: behind, ..run }] {
            if part.len > 0 {
                part.write(&mut runs);
            }
        }
        let grows = runs.len() > run_bytes;
        if grows && self.bytes.len() + runs.len() - run_bytes > self.sparse_bytes_max {
            return self.raise_made_dense(observed);
        }
        let (bytes, end) = (self.bytes.to_mut(), at + run_bytes);
        let is_cut_short = end > bytes.len();
        bytes.splice(at..end.min(bytes.len()), runs);
        if is_cut_short {
            // What takes its place is cut short as well, as in Redis.
            bytes.pop();
        }
        self.join_runs(before.unwrap_or(HEADER_BYTES));
        self.mark_stale();
        Ok(true)
    }

    fn raise_made_dense(&mut self, observed: Observation) -> Result<bool, Corrupt> {
        self.make_dense()?;
        Ok(self.raise_dense(observed))
    }

    /// The run that has a register: where the one before it begins, where it begins, and its first register.
    fn find(&self, register: usize) -> Result<(Option<usize>, usize, usize), Corrupt> {
        let (mut before, mut at, mut first) = (None, HEADER_BYTES, 0);
        while at < self.bytes.len() {
            let (run, bytes) = Run::at(&self.bytes, at);
            if register < first + run.len {
                return Ok((before, at, first));
            }
            before = Some(at);
            at += bytes;
            first += run.len;
        }
        Err(Corrupt)
    }

    /// Joins runs of one value, as far as one can have them, among the next few from this one on.
    fn join_runs(&mut self, from: usize) {
        let bytes = self.bytes.to_mut();
        let mut at = from;
        for _ in 0..RUNS_JOINED {
            if at >= bytes.len() {
                return;
            }
            let (run, run_bytes) = Run::at(bytes, at);
            if run.value > 0 && at + 1 < bytes.len() {
                let (next, _) = Run::at(bytes, at + 1);
                if next.value == run.value && run.len + next.len <= VALUE_RUN_MAX {
                    bytes.remove(at);
                    let mut joined = Vec::with_capacity(1);
                    Run { value: run.value, len: run.len + next.len }.write(&mut joined);
                    bytes[at] = joined[0];
                    // It may be joined with the one behind it, too.
                    continue;
                }
            }
            at += run_bytes;
        }
    }
}

/// Raises the register that begins at a bit of the first byte. True when it was lower.
fn set_packed(pair: &mut [u8; 2], bit: usize, value: u8) -> bool {
    let word = u16::from_le_bytes(*pair);
    if (word >> bit) as u8 & REGISTER_MAX >= value {
        return false;
    }
    let others = word & !(u16::from(REGISTER_MAX) << bit);
    *pair = (others | u16::from(value) << bit).to_le_bytes();
    true
}

/// Four registers of six bits.
#[inline]
fn unpack(three: [u8; 3]) -> [u8; 4] {
    let [a, b, c] = three;
    [a & 63, (a >> 6 | b << 2) & 63, (b >> 4 | c << 4) & 63, c >> 2]
}

#[inline]
fn pack(four: [u8; 4]) -> [u8; 3] {
    let [a, b, c, d] = four;
    [a | b << 6, b >> 2 | c << 4, c >> 4 | d << 2]
}

fn dense_histogram(packed: &[u8]) -> Histogram {
    // Four tables, so that registers of one value in a row do not wait for each other.
    let mut tables = [[0_u32; REGISTER_MAX as usize + 1]; 4];
    for three in packed.as_chunks::<3>().0 {
        for (table, value) in tables.iter_mut().zip(unpack(*three)) {
            table[usize::from(value & REGISTER_MAX)] += 1;
        }
    }
    sum(&tables)
}

fn sum(tables: &[Histogram; 4]) -> Histogram {
    std::array::from_fn(|value| tables.iter().map(|table| table[value]).sum())
}

/// The estimate of Otmar Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017), with every
/// operation in the order in which Redis has it: the last digits depend on it.
fn estimate(histogram: &Histogram) -> u64 {
    /// 0.5 / ln(2)
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let registers = REGISTERS as f64;
    let value_max = RUN_BITS as usize + 1;
    let mut z = registers * tau((registers - f64::from(histogram[value_max])) / registers);
    for count in histogram[1..value_max].iter().rev() {
        z += f64::from(*count);
        z *= 0.5;
    }
    z += registers * sigma(f64::from(histogram[0]) / registers);
    let estimate = (ALPHA * registers * registers / z).round();
    // Registers that no element leads to can make it infinite; an x86 converts that to the highest bit alone.
    if estimate.is_finite() { estimate as u64 } else { 1 << 63 }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests;
