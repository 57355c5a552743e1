//! One request as borrowed arguments. Knows nothing of how they were framed.

/// The position of an argument in its buffer. 32 bits: query buffers are limited far below 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A complete request: the command's name followed by its arguments, at least one in all.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Request<'a> {
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Request { bytes, spans }
    }

    /// How many arguments there are, the command's name included.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True when there is no argument; a scanned request has at least one.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`, the command's name being 0. Panics past the end, as slices do.
    #[inline]
    pub fn arg(&self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        &self.bytes[span.start as usize..span.start as usize + span.len as usize]
    }

    /// All arguments in order, the command's name first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let this = *self;
        (0..self.len()).map(move |index| this.arg(index))
    }

    /// The request as a client sends it: an array of bulk strings.
    pub fn encoded(&self) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", self.len()).into_bytes();
        for arg in self.iter() {
            bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            bytes.extend_from_slice(arg);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    /// The length of [`encoded`](Request::encoded), without encoding it.
    pub fn encoded_len(&self) -> usize {
        let line = |number: usize| 4 + number.checked_ilog10().unwrap_or(0) as usize;
        line(self.len()) + self.spans.iter().map(|span| line(span.len as usize) + span.len as usize + 2).sum::<usize>()
    }

    /// The request without its first `count` arguments: what a container passes to its subcommand.
    pub fn skip(&self, count: usize) -> Request<'a> {
        Request { bytes: self.bytes, spans: &self.spans[count..] }
    }
}

/// The capacity of span lists that [`Pipeline::clear`] keeps.
const SPANS_KEPT: usize = 4096;

/// Several consecutive requests of one buffer.
#[derive(Default)]
pub struct Pipeline {
    spans: Vec<Span>,
    /// Where each request ends: in `spans`, and in the buffer.
    ends: Vec<(usize, usize)>,
}

impl Pipeline {
    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is no request.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The request at `index` of a pipeline that was scanned from `buffer`.
    #[inline]
    pub fn request<'a>(&'a self, buffer: &'a [u8], index: usize) -> Request<'a> {
        let first = if index == 0 { 0 } else { self.ends[index - 1].0 };
        Request::new(buffer, &self.spans[first..self.ends[index].0])
    }

    /// How many bytes the requests up to and including `index` take.
    #[inline]
    pub fn bytes_through(&self, index: usize) -> usize {
        self.ends[index].1
    }

    /// All requests in order.
    pub fn requests<'a>(&'a self, buffer: &'a [u8]) -> impl Iterator<Item = Request<'a>> {
        (0..self.len()).map(|index| self.request(buffer, index))
    }

    /// Removes all requests; keeps the memory unless it is unusually large.
    pub fn clear(&mut self) {
        if self.spans.capacity() > SPANS_KEPT {
            self.spans = Vec::new();
        }
        self.spans.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, request: Request<'_>, at: usize, len: usize) {
        let moved = |span: &Span| Span { start: span.start + at as u32, len: span.len };
        self.spans.extend(request.spans.iter().map(moved));
        self.ends.push((self.spans.len(), at + len));
    }
}

/// Owns arguments that did not come over a wire: scripts, queued transactions, tests.
#[derive(Default, Clone)]
pub struct OwnedRequest {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedRequest {
    /// Creates an empty request with room for `args` arguments of `bytes` bytes together.
    pub fn with_capacity(bytes: usize, args: usize) -> OwnedRequest {
        OwnedRequest { bytes: Vec::with_capacity(bytes), spans: Vec::with_capacity(args) }
    }

    /// Adds one argument at the end.
    pub fn push(&mut self, arg: &[u8]) {
        self.spans.push(Span { start: self.bytes.len() as u32, len: arg.len() as u32 });
        self.bytes.extend_from_slice(arg);
    }

    /// Removes all arguments; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Copies a request into exactly as much memory as it needs.
    pub fn copy_of(request: Request<'_>) -> OwnedRequest {
        let mut owned = OwnedRequest::with_capacity(request.iter().map(<[u8]>::len).sum(), request.len());
        request.iter().for_each(|arg| owned.push(arg));
        owned
    }

    /// Bytes of memory for arguments.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The sizes of its allocations.
    pub fn allocations(&self) -> [usize; 2] {
        [self.bytes.capacity(), self.spans.capacity() * size_of::<Span>()]
    }

    /// The borrowed form that commands take.
    pub fn as_request(&self) -> Request<'_> {
        Request::new(&self.bytes, &self.spans)
    }
}

impl<'a> FromIterator<&'a [u8]> for OwnedRequest {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(args: I) -> Self {
        let mut owned = OwnedRequest::default();
        for arg in args {
            owned.push(arg);
        }
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_the_encoded_request() {
        let long = vec![b'x'; 100_000];
        for len in [0, 1, 9, 10, 99, 100, 1000, 99_999, 100_000] {
            for copies in [1, 9, 10, 11, 100] {
                let owned: OwnedRequest = (0..copies).map(|_| &long[..len]).collect();
                let request = owned.as_request();
                assert_eq!(request.encoded_len(), request.encoded().len(), "{copies} of {len}");
            }
        }
    }
}
