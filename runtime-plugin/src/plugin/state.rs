use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cubinder_model::Variant;
use trt_abi::Result;

use super::node::{EngineFacts, NamedNode};
use crate::definition::TensorKinds;

#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) node: NamedNode,
    tactic: AtomicI32,
    built: Mutex<EngineFacts>,
}

impl NodeState {
    pub(super) fn new(node: NamedNode, built: EngineFacts) -> NodeState {
        NodeState { node, tactic: AtomicI32::new(0), built: Mutex::new(built) }
    }

    fn locked(&self) -> MutexGuard<'_, EngineFacts> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn built(&self) -> EngineFacts {
        self.locked().clone()
    }

    pub(super) fn set_kinds(&self, kinds: &TensorKinds) -> Result<()> {
        let index = self.node.index_of_kinds(kinds).ok_or_else(|| self.node.no_variant(kinds))?;
        self.locked().kinds = Some(index);
        Ok(())
    }

    pub(super) fn kinds(&self) -> Option<&TensorKinds> {
        let index = self.locked().kinds?;
        self.node.kinds.get(index)
    }

    pub(super) fn reachable(&self) -> impl Iterator<Item = &Variant> {
        self.node.reachable(self.kinds())
    }

    /// Returns a variant's id, or 0 or `AUTO_TACTIC`: variants in order.
    #[inline]
    pub(super) fn tactic(&self) -> i32 {
        self.tactic.load(Ordering::Relaxed)
    }

    /// Fails unless a variant's id or automatic.
    pub(super) fn set_tactic(&self, tactic: i32, is_automatic: bool) -> Result<()> {
        if tactic != self.tactic()
            && !is_automatic
            && !self.node.reachable(None).any(|variant| variant.id == tactic)
        {
            return Err(self.node.invalid(format_args!("variant {tactic} does not exist")));
        }
        self.tactic.store(tactic, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn set_input_ranks(&self, ranks: Option<Vec<u8>>) {
        self.locked().input_ranks = ranks.map(Arc::from);
    }

    pub(super) fn input_ranks(&self) -> Option<Arc<[u8]>> {
        self.locked().input_ranks.clone()
    }

    pub(super) fn set_workspace_bytes(&self, bytes: Option<u64>) {
        self.locked().workspace_bytes = bytes;
    }
}

impl Clone for NodeState {
    fn clone(&self) -> NodeState {
        NodeState {
            node: self.node.clone(),
            tactic: AtomicI32::new(self.tactic()),
            built: Mutex::new(self.built()),
        }
    }
}

/// A shared value that builds replace.
#[derive(Debug)]
pub(super) struct Latest<T: ?Sized>(Mutex<Option<Arc<T>>>);

impl<T: ?Sized> Latest<T> {
    pub(super) fn get(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, value: Option<Arc<T>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl<T: ?Sized> Default for Latest<T> {
    fn default() -> Self {
        Latest(Mutex::new(None))
    }
}

impl<T: ?Sized> Clone for Latest<T> {
    fn clone(&self) -> Self {
        Latest(Mutex::new(self.get()))
    }
}
