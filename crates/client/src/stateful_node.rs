//! A node of a pipeline that keeps state for each key: it applies each input once, and returns the outputs of the last
//! one again when its input comes again. Knows a backend of state; refuses to know where inputs come from and where
//! outputs go.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::json::Json;
use crate::state_backend::StateBackend;
use crate::state_version::{Applied, StateVersion};

/// A stateful node. For one key, one program at a time processes inputs, in the order of their versions.
///
/// After a crash: [`recover`](StatefulNode::recover), then the input again from the position that it returns. State is
/// then right, and outputs that were sent before have the same ids, so a sink that remembers ids drops them.
///
/// ```no_run
/// # async fn example(store: holdfast_client::Store, lines: Vec<(String, u64)>) -> Result<(), holdfast_client::Error> {
/// use std::sync::Arc;
/// use holdfast_client::StatefulNode;
///
/// let node: StatefulNode<u64, String> = StatefulNode::new("counts", Arc::new(store.exactly_once_state("counts/")));
/// let from: usize = match node.recover().await? {
///     Some(position) => String::from_utf8_lossy(&position).parse().unwrap_or(0),
///     None => 0, // the first start
/// };
/// for (line, (word, amount)) in lines.iter().enumerate().skip(from) {
///     let count = |state: Option<u64>| {
///         let total = state.unwrap_or(0) + amount;
///         (total, vec![format!("{word}: {total}")])
///     };
///     for output in node.process(word, line as u64 + 1, count).await?.unwrap_or_default() {
///         println!("{} {}", output.id, output.value); // a sink drops an id that it has
///     }
///     if line % 100 == 99 {
///         node.checkpoint((line + 1).to_string()).await?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StatefulNode<S, O> {
    name: String,
    state: Arc<dyn StateBackend<NodeState<S, O>>>,
    checkpoint_key: Vec<u8>,
}

/// What a backend stores for a key of a node, as JSON.
pub type NodeState<S, O> = Json<NodeEntry<S, O>>;

/// What a node keeps for a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry<S, O> {
    /// The state after the last input.
    pub state: S,
    /// The outputs of the last input.
    pub outputs: Vec<O>,
}

/// An output of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output<O> {
    /// SHA-256, in lower-case hex, of `node|key|version|index`: the same whenever the same input is processed.
    pub id: String,
    /// What the update returned.
    pub value: O,
}

impl<S, O> StatefulNode<S, O> {
    /// A node over this state. Its checkpoint has the key `name:checkpoint`.
    pub fn new(name: impl Into<String>, state: Arc<dyn StateBackend<NodeState<S, O>>>) -> StatefulNode<S, O> {
        let name = name.into();
        let checkpoint_key = format!("{name}:checkpoint").into_bytes();
        StatefulNode { name, state, checkpoint_key }
    }

    /// The same node with another key for its checkpoint.
    #[must_use]
    pub fn with_checkpoint_key(mut self, key: impl AsRef<[u8]>) -> StatefulNode<S, O> {
        self.checkpoint_key = key.as_ref().to_vec();
        self
    }

    /// Its name, which is part of the ids of its outputs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Applies one input, once. For a new version it calls `update` with the state before, `None` at first, which
    /// returns the new state and the outputs. For the version that was applied last it returns the same outputs under
    /// the same ids, and calls nothing. For an older one it returns `None`.
    pub async fn process(
        &self,
        key: impl AsRef<[u8]>,
        version: impl Into<StateVersion>,
        update: impl FnOnce(Option<S>) -> (S, Vec<O>),
    ) -> Result<Option<Vec<Output<O>>>, Error>
    where
        O: Clone,
    {
        let (key, version) = (key.as_ref(), version.into());
        let held = self.state.get(key).await?;
        if let Some((_, newest)) = &held
            && *newest >= version
        {
            return Ok(self.kept_outputs(key, version, held));
        }
        let (state, outputs) = update(held.map(|(entry, _)| entry.0.state));
        let entry = Json(NodeEntry { state, outputs: outputs.clone() });
        match self.state.put(key, entry, version).await? {
            Applied::Applied | Applied::Duplicate => Ok(Some(self.outputs(key, version, outputs))),
            // Another program has written meanwhile: what it wrote counts.
            _ => Ok(self.kept_outputs(key, version, self.state.get(key).await?)),
        }
    }

    /// Keeps all states and the input position, in one step.
    pub async fn checkpoint(&self, position: impl AsRef<[u8]>) -> Result<(), Error> {
        self.state.checkpoint(&self.checkpoint_key, Some(position.as_ref())).await.map(drop)
    }

    /// Replaces all states by those of the last checkpoint, and returns its input position, from which the input is
    /// then read again. `None` if there is no checkpoint with one: the input is read from its beginning. Call it at
    /// each start, before the first input.
    pub async fn recover(&self) -> Result<Option<Vec<u8>>, Error> {
        let Some(restored) = self.state.restore_checkpoint(&self.checkpoint_key).await? else {
            // The start itself is the first checkpoint, without a position: after a crash before the next one, the input
            // is read again on the states of the start, and no output is missing.
            self.state.checkpoint(&self.checkpoint_key, None).await?;
            return Ok(None);
        };
        Ok(restored.position)
    }

    /// The outputs of a version that was applied; those of older ones are gone.
    fn kept_outputs(
        &self,
        key: &[u8],
        version: StateVersion,
        held: Option<(NodeState<S, O>, StateVersion)>,
    ) -> Option<Vec<Output<O>>> {
        let (entry, _) = held.filter(|(_, newest)| *newest == version)?;
        Some(self.outputs(key, version, entry.0.outputs))
    }

    fn outputs(&self, key: &[u8], version: StateVersion, outputs: Vec<O>) -> Vec<Output<O>> {
        let output = |(index, value)| Output { id: self.output_id(key, version, index), value };
        outputs.into_iter().enumerate().map(output).collect()
    }

    fn output_id(&self, key: &[u8], version: StateVersion, index: usize) -> String {
        let hash = Sha256::new().chain_update(&self.name).chain_update("|").chain_update(key);
        let digest = hash.chain_update(format!("|{version}|{index}")).finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
