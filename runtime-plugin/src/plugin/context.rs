//! A CUDA context in which equal nodes share kernels and recent launches.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cubinder_launch::Device;

use crate::code::LoadedKernel;

/// Maximum contexts of equal nodes, including destroyed ones.
const MAX_CONTEXTS: usize = 16;

/// Maximum prepared launches of equal nodes in a context.
const MAX_LAUNCHES: usize = 8;

/// The contexts of equal nodes, least recently used first. Not locked during calls of driver or logger.
#[derive(Debug, Default)]
pub(super) struct Contexts(Mutex<VecDeque<Arc<Context>>>);

#[derive(Debug)]
pub(super) struct Context {
    /// Never reused: another context can have the address of a destroyed one.
    pub(super) id: u64,
    pub(super) device: Device,
    cache: Mutex<ContextCache>,
}

#[derive(Debug, Default)]
pub(super) struct ContextCache {
    pub(super) kernels: VariantKernels,
    /// The [`EngineFacts::kinds`](super::node::EngineFacts) whose reachable variants are loaded.
    pub(super) preloaded: Vec<Option<usize>>,
    /// Least recently used first. Only [`super::run`] knows their type.
    launches: VecDeque<SharedAny>,
}

pub(super) type SharedAny = Arc<dyn Any + Send + Sync>;

/// By step; `None` for a step that launches no kernel on this device.
pub(super) type Kernels = Vec<Option<LoadedKernel>>;

/// By the variant's index.
pub(super) type VariantKernels = BTreeMap<usize, Arc<Kernels>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find<T: ?Sized>(values: &mut VecDeque<Arc<T>>, matches: impl Fn(&Arc<T>) -> bool) -> Option<Arc<T>> {
    let index = values.iter().rposition(matches)?;
    let value = values.remove(index)?;
    values.push_back(Arc::clone(&value));
    Some(value)
}

fn add<T: ?Sized>(values: &mut VecDeque<Arc<T>>, value: Arc<T>, limit: usize) {
    values.push_back(value);
    if values.len() > limit {
        values.pop_front();
    }
}

impl Contexts {
    pub(super) fn find(&self, id: u64) -> Option<Arc<Context>> {
        find(&mut locked(&self.0), |context| context.id == id)
    }

    pub(super) fn add(&self, id: u64, device: Device) -> Arc<Context> {
        let context = Arc::new(Context { id, device, cache: Mutex::default() });
        add(&mut locked(&self.0), Arc::clone(&context), MAX_CONTEXTS);
        context
    }
}

impl Context {
    pub(super) fn cache(&self) -> MutexGuard<'_, ContextCache> {
        locked(&self.cache)
    }
}

impl ContextCache {
    pub(super) fn find_launch(&mut self, matches: impl Fn(&SharedAny) -> bool) -> Option<SharedAny> {
        find(&mut self.launches, matches)
    }

    pub(super) fn add_launch(&mut self, launch: SharedAny, replaced: impl Fn(&SharedAny) -> bool) {
        self.launches.retain(|launch| !replaced(launch));
        add(&mut self.launches, launch, MAX_LAUNCHES);
    }
}
