//! The number of nodes of Redis's radix tree of a stream, which XINFO shows. Computes the shape of the tree without
//! building it.

use super::id::StreamId;

/// The number of nodes of a tree of these ascending ids.
pub(super) fn nodes(ids: &[StreamId]) -> usize {
    let keys: Vec<[u8; 16]> = ids.iter().map(|id| id.to_bytes()).collect();
    if keys.is_empty() { 1 } else { below(&keys, 0) }
}

/// The number of nodes for keys that share their first `depth` bytes.
fn below(keys: &[[u8; 16]], depth: usize) -> usize {
    let (first, last) = (&keys[0], &keys[keys.len() - 1]);
    let common = first[depth..].iter().zip(&last[depth..]).take_while(|(a, b)| a == b).count();
    if common > 0 {
        // One node has all common bytes.
        let depth = depth + common;
        return 1 + if depth == first.len() { 1 } else { below(keys, depth) };
    }
    let mut nodes = 1;
    for same in keys.chunk_by(|a, b| a[depth] == b[depth]) {
        nodes += if depth + 1 == first.len() { 1 } else { below(same, depth + 1) };
    }
    nodes
}
