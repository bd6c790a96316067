//! TensorRT's settings of a plugin object, for both routes.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cubinder_launch as launch;
use cubinder_launch::Steps;
use cubinder_model::Variant;
use trt_abi::Result;

use super::node::NodeData;
use crate::definition::TensorKinds;

const NOT_CONFIGURED: usize = usize::MAX;

#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) node: Arc<NodeData>,
    configured: AtomicUsize,
    tactic: AtomicI32,
    input_ranks: Latest<[u8]>,
}

impl NodeState {
    pub(super) fn new(node: NodeData) -> Result<NodeState> {
        let plugin = node.definition.plugin();
        launch::check(plugin, launch::rules_of_attributes(plugin), &node.facts(), &mut Steps::default())
            .map_err(|unmet| node.invalid(unmet))?;
        Ok(NodeState {
            node: Arc::new(node),
            configured: AtomicUsize::new(NOT_CONFIGURED),
            tactic: AtomicI32::new(0),
            input_ranks: Latest::default(),
        })
    }

    pub(super) fn set_kinds(&self, kinds: &TensorKinds) -> Result<()> {
        let index = self.node.kinds.iter().position(|known| known == kinds).ok_or_else(|| {
            let signature = self.node.signature(&kinds.types, &kinds.formats);
            self.node.invalid(launch::no_variant(self.node.definition.plugin(), &signature))
        })?;
        self.configured.store(index, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn configured(&self) -> Option<usize> {
        let index = self.configured.load(Ordering::Relaxed);
        (index < self.node.kinds.len()).then_some(index)
    }

    pub(super) fn kinds(&self) -> Option<&TensorKinds> {
        self.node.kinds.get(self.configured()?)
    }

    pub(super) fn reachable(&self) -> impl Iterator<Item = &Variant> {
        self.node.reachable(self.kinds())
    }

    /// Returns a variant's id, or 0 or `AUTO_TACTIC`, which try variants in order.
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
        self.input_ranks.set(ranks.map(Arc::from));
    }

    pub(super) fn input_ranks(&self) -> Option<Arc<[u8]>> {
        self.input_ranks.get()
    }
}

impl Clone for NodeState {
    fn clone(&self) -> NodeState {
        NodeState {
            node: Arc::clone(&self.node),
            configured: AtomicUsize::new(self.configured.load(Ordering::Relaxed)),
            tactic: AtomicI32::new(self.tactic()),
            input_ranks: self.input_ranks.clone(),
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
