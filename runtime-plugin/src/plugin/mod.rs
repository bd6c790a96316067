//! The plugin object: one node of a network, while it is built and while it runs.
//!
//! Owns what every method needs ([`KernelPlugin`]) and which part answers which call: [`build`] what the builder asks of types and formats,
//! [`shapes`] of shapes, [`run`] what the runtime asks, [`variants`] which tactics there are, [`profile`] what a build knows of shapes, [`fields`] what is
//! left in the engine; [`native`] is a node of which nothing of this library is left there. Nothing here knows one
//! operator from another: the model says it all, and [`cubinder_launch`] computes its launches.

mod announced;
mod build;
mod built_for;
mod circumstances;
mod fields;
mod loaded;
mod memo;
mod native;
mod node;
mod profile;
mod run;
mod run_log;
mod shapes;
mod variants;

use std::ffi::{CStr, CString, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cubinder_expr::Value;
use cubinder_launch as launch;
use cubinder_launch::Steps;
use cubinder_model::Variant;
use trt_abi::{
    DynamicPluginTensorDesc, Error, ExprBuilder, FieldSet, Plugin, PluginBase, PluginTensorDesc, Shape,
    TensorRTPhase,
};

use crate::definition::{Definition, TensorKinds};
use crate::exclusive::Exclusive;
use crate::identity;
use crate::launch::Addresses;

pub(crate) use native::{NativePlugin, OpName};

use fields::SerializedFields;
use node::NodeData;
use profile::Profile;
use run::{EngineFacts, RunState};

/// Where an engine will find the code of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In each node's serialized field.
    Fields,
    /// In the code library that is serialized into the plan.
    Library,
}

/// Types and formats are not configured yet.
const NOT_CONFIGURED: usize = usize::MAX;

/// Nobody has said how much workspace is reserved.
const NOT_RESERVED: u64 = u64::MAX;

/// A plugin object. Clones share what never changes and copy what does.
#[derive(Debug)]
pub(crate) struct KernelPlugin {
    node: Arc<NodeData>,
    /// Index into `node.kinds`, or [`NOT_CONFIGURED`].
    configured: AtomicUsize,
    /// The tactic that TensorRT chose: a variant's id, or 0 or `AUTO_TACTIC`, which leave the choice to the order of the variants.
    tactic: AtomicI32,
    /// The ranks of the inputs, once a build or an engine has told them.
    input_ranks: Mutex<Option<Arc<[u8]>>>,
    /// The workspace that the engine reserves, bytes, or [`NOT_RESERVED`].
    workspace_bytes: AtomicU64,
    /// The shapes that the build is for, once it was configured.
    profile: Mutex<Option<Arc<Profile>>>,
    fields: SerializedFields,
    running: Exclusive<RunState>,
}

impl KernelPlugin {
    /// An object for a node; `name` is the node's in the network, where there is one.
    ///
    /// # Errors
    /// A requirement of the plugin that the attributes break.
    pub(crate) fn new(
        definition: Definition,
        attributes: Vec<Value>,
        name: &str,
        phase: TensorRTPhase,
        form: Form,
        core_name: CString,
    ) -> Result<KernelPlugin, Error> {
        let node = NodeData::new(definition, attributes, name, phase, form, core_name);
        let plugin = node.definition.plugin();
        launch::check(plugin, launch::rules_of_attributes(plugin), &node.facts(), &mut Steps::default())
            .map_err(|unmet| node.invalid(unmet))?;
        Ok(KernelPlugin {
            fields: SerializedFields::default(),
            node: Arc::new(node),
            configured: AtomicUsize::new(NOT_CONFIGURED),
            tactic: AtomicI32::new(0),
            input_ranks: Mutex::new(None),
            workspace_bytes: AtomicU64::new(NOT_RESERVED),
            profile: Mutex::new(None),
            running: Exclusive::default(),
        })
    }

    /// Says what the node's tensors are, where an engine or a build says so.
    pub(crate) fn set_kinds(&self, kinds: &TensorKinds) -> Result<(), Error> {
        let index = self.node.kinds.iter().position(|known| known == kinds).ok_or_else(|| {
            let signature = self.node.signature(&kinds.types, &kinds.formats);
            self.node.invalid(launch::no_variant(self.node.definition.plugin(), &signature))
        })?;
        self.configured.store(index, Ordering::Relaxed);
        Ok(())
    }

    /// Says which ranks the inputs have, where a build or an engine says so.
    pub(crate) fn set_input_ranks(&self, ranks: Option<Vec<u8>>) {
        *self.input_ranks.lock().unwrap_or_else(PoisonError::into_inner) = ranks.map(Arc::from);
    }

    /// Says how much workspace the engine reserves for the node, bytes, once a build or an engine has told it.
    pub(crate) fn set_workspace_bytes(&self, bytes: Option<u64>) {
        self.workspace_bytes.store(bytes.unwrap_or(NOT_RESERVED), Ordering::Relaxed);
    }

    fn reserved_bytes(&self) -> Option<u64> {
        Some(self.workspace_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != NOT_RESERVED)
    }

    fn input_ranks(&self) -> Option<Arc<[u8]>> {
        self.input_ranks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn profile(&self) -> Option<Arc<Profile>> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the tensors were configured to be, as an index into the node's kinds.
    fn configured(&self) -> Option<usize> {
        let index = self.configured.load(Ordering::Relaxed);
        (index < self.node.kinds.len()).then_some(index)
    }

    /// The variants that can be reached with the tensors that were configured, or with any before there are such.
    fn reachable(&self) -> impl Iterator<Item = &Variant> {
        self.node.reachable(self.configured().and_then(|index| self.node.kinds.get(index)))
    }
}

impl Clone for KernelPlugin {
    fn clone(&self) -> KernelPlugin {
        KernelPlugin {
            node: Arc::clone(&self.node),
            configured: AtomicUsize::new(self.configured.load(Ordering::Relaxed)),
            tactic: AtomicI32::new(self.tactic.load(Ordering::Relaxed)),
            input_ranks: Mutex::new(self.input_ranks()),
            workspace_bytes: AtomicU64::new(self.workspace_bytes.load(Ordering::Relaxed)),
            profile: Mutex::new(self.profile()),
            fields: SerializedFields::default(),
            running: Exclusive::default(),
        }
    }
}

impl PluginBase for KernelPlugin {
    fn core_name(&self) -> &CStr {
        &self.node.core_name
    }

    fn core_version(&self) -> &CStr {
        &self.node.core_version
    }

    fn core_namespace(&self) -> &CStr {
        identity::NAMESPACE
    }

    fn output_count(&self) -> usize {
        self.node.definition.plugin().outputs.len()
    }

    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        shape_inputs: &[Shape<'b>],
        builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<(), Error> {
        let ranks = shapes::output_shapes(&self.node, inputs, shape_inputs, builder, outputs)?;
        // TensorRT makes 0-d tensors 1-d at run time, so what they were is kept for then.
        self.set_input_ranks(Some(ranks));
        Ok(())
    }

    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<(), Error> {
        let kinds = build::configured_kinds(&self.node, inputs, outputs)?;
        let profile = Profile::of(&self.node, self.input_ranks().as_deref(), inputs)?;
        profile.check(&self.node)?;
        let workspace_bytes = profile.workspace_bytes(&self.node, kinds)?;
        self.set_kinds(kinds)?;
        self.set_workspace_bytes((workspace_bytes != 0).then_some(workspace_bytes));
        *self.profile.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(profile));
        Ok(())
    }

    fn tactics(&self) -> Result<Vec<i32>, Error> {
        Ok(variants::tactics(&self.node, self.reachable(), self.profile().as_deref()))
    }

    fn timing_cache_id(&self) -> Option<&CStr> {
        Some(self.node.timing_id())
    }

    fn aliased_input(&self, output: usize) -> Option<usize> {
        let aliased = self.node.definition.plugin().outputs.get(output)?.alias?;
        self.node.counted.iter().position(|tensor| u32::try_from(*tensor) == Ok(aliased))
    }

    fn metadata(&self) -> Option<&CStr> {
        Some(&self.node.metadata)
    }

    fn set_tactic(&self, tactic: i32) -> Result<(), Error> {
        if tactic == self.tactic.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !variants::is_tactic(&self.node, tactic) {
            return Err(self.node.invalid(format_args!("variant {tactic} does not exist")));
        }
        self.tactic.store(tactic, Ordering::Relaxed);
        Ok(())
    }

    fn report(&self, error: &Error) {
        trt_abi::logger::error_of(c"cubinder", error);
    }
}

impl Plugin for KernelPlugin {
    fn output_types(
        &self,
        inputs: &[trt_abi::DataType],
        outputs: &mut [trt_abi::DataType],
    ) -> Result<(), Error> {
        build::output_types(&self.node, inputs, outputs)
    }

    fn supports(&self, position: usize, in_out: &[DynamicPluginTensorDesc], input_count: usize) -> bool {
        build::supports(&self.node, position, in_out, input_count)
    }

    /// What was bounded for the profile that was configured; before that, for the one that TensorRT speaks of here.
    fn workspace_bytes(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<usize, Error> {
        let bytes = match self.configured() {
            Some(_) => self.reserved_bytes().unwrap_or(0),
            None => {
                let kinds = build::configured_kinds(&self.node, inputs, outputs)?;
                let profile = Profile::of(&self.node, self.input_ranks().as_deref(), inputs)?;
                profile.workspace_bytes(&self.node, kinds)?
            }
        };
        usize::try_from(bytes).map_err(|_| self.node.invalid(format_args!("{bytes} bytes of workspace")))
    }

    fn tolerates_null_attach(&self) -> bool {
        let outputs = &self.node.definition.plugin().outputs;
        outputs.iter().all(|output| output.alias.is_none() && output.size.is_none())
    }

    fn on_shape_change(
        &self,
        inputs: &[PluginTensorDesc],
        outputs: &[PluginTensorDesc],
    ) -> Result<(), Error> {
        let tactic = self.tactic.load(Ordering::Relaxed);
        self.running
            .with(|running| {
                let built = || EngineFacts {
                    input_ranks: self.input_ranks(),
                    workspace_bytes: self.reserved_bytes(),
                };
                running.on_shape_change(&self.node, tactic, &built, inputs, outputs)
            })
            .unwrap_or_else(|| Err(self.used_twice()))
    }

    unsafe fn enqueue(
        &self,
        _input_descs: &[PluginTensorDesc],
        _output_descs: &[PluginTensorDesc],
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        workspace: *mut c_void,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        let at = Addresses { inputs, outputs, workspace };
        let tactic = self.tactic.load(Ordering::Relaxed);
        self.running
            // SAFETY: the caller's promises about pointers and stream are those that `RunState::enqueue` asks for.
            .with(|running| unsafe { running.enqueue(&self.node, tactic, &at, stream) })
            .unwrap_or_else(|| Err(self.used_twice()))
    }

    fn attach_to_context(&self) -> Result<KernelPlugin, Error> {
        let attached = self.clone();
        attached.preload()?;
        Ok(attached)
    }

    fn fields_to_serialize(&self) -> Result<&FieldSet, Error> {
        self.fields_now()
    }
}

impl KernelPlugin {
    /// Loads the code of every variant that can be reached, so that nothing has to be loaded while a stream is captured.
    /// Does nothing on a machine without a driver, and nothing for objects of a build.
    ///
    /// # Errors
    /// The driver is there and takes none of the code objects of a kernel.
    pub(crate) fn preload(&self) -> Result<(), Error> {
        if self.node.phase != TensorRTPhase::RUNTIME {
            return Ok(());
        }
        loaded::preload(&self.node, self.reachable())
    }

    fn used_twice(&self) -> Error {
        Error::new(
            Error::INVALID_STATE,
            format!("{}: one execution context is used by two threads at once", self.node.title),
        )
    }
}

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod announced_tests;
#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod native_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing_tests;
