//! The plugin object: one node, in builds and at run time. TensorRT launches [`native`] nodes.

macro_rules! node_plugin_methods {
    () => {
        fn identity(&self) -> &Identity {
            &self.state.node.core
        }

        fn output_count(&self) -> usize {
            self.state.node.definition.plugin().outputs.len()
        }

        fn output_shapes<'b>(
            &self,
            inputs: &[Shape<'b>],
            shape_inputs: &[Shape<'b>],
            builder: &ExprBuilder<'b>,
            outputs: &mut [Shape<'b>],
        ) -> Result<()> {
            let ranks = shapes::output_shapes(&self.state.node, inputs, shape_inputs, builder, outputs)?;
            // TensorRT makes 0-d tensors 1-d at run time.
            self.state.set_input_ranks(Some(ranks));
            Ok(())
        }

        fn timing_cache_id(&self) -> Option<&CStr> {
            Some(self.state.node.timing_id())
        }

        fn metadata(&self) -> Option<&CStr> {
            Some(&self.state.node.metadata)
        }

        fn aliased_input(&self, output: usize) -> Option<usize> {
            let aliased = self.state.node.definition.plugin().outputs.get(output)?.alias?;
            self.state.node.counted.iter().position(|tensor| u32::try_from(*tensor) == Ok(aliased))
        }

        fn report(&self, error: &Error) {
            trt_abi::logger::error_of(c"cubinder", error);
        }
    };
}

mod build;
mod built_for;
mod context;
mod engine_nodes;
mod failure;
mod fields;
mod loading;
mod memo;
mod native;
mod node;
mod operator;
mod profile;
mod run;
mod run_log;
mod shape_program;
mod shapes;
mod state;
mod tensor_descs;
mod variants;

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use cubinder_expr::Value;
use cubinder_launch as launch;
use trt_abi::{
    DynamicPluginTensorDesc, Error, ExprBuilder, FieldSet, Identity, Plugin, PluginBase, PluginTensorDesc,
    Result, Shape, TensorRTPhase,
};

use crate::definition::Definition;
use crate::exclusive::Exclusive;
use crate::launch::Addresses;

pub(crate) use engine_nodes::EngineNodes;
pub(crate) use native::NativePlugin;
pub(crate) use operator::{InputShapes, Operator, Workspace};

use fields::SerializedFields;
use node::{EngineFacts, NamedNode, NodeData};
use profile::Profile;
use run::RunState;
use state::{Latest, NodeState};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Fields,
    Library,
}

#[derive(Debug)]
pub(crate) struct KernelPlugin {
    state: NodeState,
    /// Only plugins for running load code.
    phase: TensorRTPhase,
    profile: Latest<Profile>,
    fields: SerializedFields,
    running: Exclusive<RunState>,
}

impl KernelPlugin {
    pub(crate) fn new(
        definition: Definition,
        attributes: Vec<Value>,
        name: &str,
        phase: TensorRTPhase,
        form: Form,
        core: Identity,
    ) -> Result<KernelPlugin> {
        let node = NamedNode::checked(NodeData::new(definition, attributes, form, core), name)?;
        Ok(KernelPlugin::from_state(NodeState::new(node, EngineFacts::default()), phase))
    }

    fn from_state(state: NodeState, phase: TensorRTPhase) -> KernelPlugin {
        KernelPlugin {
            state,
            phase,
            profile: Latest::default(),
            fields: SerializedFields::default(),
            running: Exclusive::default(),
        }
    }
}

impl Clone for KernelPlugin {
    fn clone(&self) -> KernelPlugin {
        let plugin = KernelPlugin::from_state(self.state.clone(), self.phase);
        plugin.profile.set(self.profile.get());
        plugin
    }
}

impl PluginBase for KernelPlugin {
    node_plugin_methods!();

    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<()> {
        let kinds = build::configured_kinds(&self.state.node, inputs, outputs)?;
        let profile = Profile::from_tensors(&self.state.node, self.state.input_ranks().as_deref(), inputs)?;
        profile.check(&self.state.node)?;
        let workspace_bytes = profile.workspace_bytes(&self.state.node, kinds)?;
        self.state.set_kinds(kinds)?;
        self.state.set_workspace_bytes((workspace_bytes != 0).then_some(workspace_bytes));
        self.profile.set(Some(Arc::new(profile)));
        Ok(())
    }

    fn tactics(&self) -> Result<Vec<i32>> {
        Ok(variants::tactics(&self.state.node, self.state.reachable(), self.profile.get().as_deref()))
    }

    fn set_tactic(&self, tactic: i32) -> Result<()> {
        self.state.set_tactic(tactic, launch::is_automatic(tactic))
    }
}

impl Plugin for KernelPlugin {
    fn output_types(&self, inputs: &[trt_abi::DataType], outputs: &mut [trt_abi::DataType]) -> Result<()> {
        build::output_types(&self.state.node, inputs, outputs)
    }

    fn supports(&self, position: usize, in_out: &[DynamicPluginTensorDesc], input_count: usize) -> bool {
        build::supports(&self.state.node, position, in_out, input_count)
    }

    /// Returns the workspace for the configured profile, or this call's tensors.
    fn workspace_bytes(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<usize> {
        let bytes = match self.state.built() {
            EngineFacts { kinds: Some(_), workspace_bytes, .. } => workspace_bytes.unwrap_or(0),
            EngineFacts { input_ranks, .. } => {
                let kinds = build::configured_kinds(&self.state.node, inputs, outputs)?;
                let profile = Profile::from_tensors(&self.state.node, input_ranks.as_deref(), inputs)?;
                profile.workspace_bytes(&self.state.node, kinds)?
            }
        };
        usize::try_from(bytes)
            .map_err(|_| self.state.node.invalid(format_args!("{bytes} bytes of workspace")))
    }

    fn tolerates_null_attach(&self) -> bool {
        let outputs = &self.state.node.definition.plugin().outputs;
        outputs.iter().all(|output| output.alias.is_none() && output.size.is_none())
    }

    fn on_shape_change(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> Result<()> {
        let tactic = self.state.tactic();
        self.running
            .with(|running| {
                let built = || self.state.built();
                running.on_shape_change(&self.state.node, tactic, &built, inputs, outputs)
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
    ) -> Result<()> {
        let addresses = Addresses { inputs, outputs, workspace };
        let tactic = self.state.tactic();
        self.running
            // SAFETY: the caller promises what `RunState::enqueue` requires.
            .with(|running| unsafe { running.enqueue(&self.state.node, tactic, &addresses, stream) })
            .unwrap_or_else(|| Err(self.used_twice()))
    }

    fn attach_to_context(&self) -> Result<KernelPlugin> {
        let attached = self.clone();
        attached.preload()?;
        Ok(attached)
    }

    fn fields_to_serialize(&self) -> Result<&FieldSet> {
        self.fields_now()
    }
}

impl KernelPlugin {
    /// Loads all reachable variants' code before stream captures. No effect without a driver or in builds.
    fn preload(&self) -> Result<()> {
        if self.phase == TensorRTPhase::RUNTIME { loading::preload(&self.state) } else { Ok(()) }
    }

    fn used_twice(&self) -> Error {
        Error::new(
            Error::INVALID_STATE,
            format!("{}: one execution context is used by two threads at once", self.state.node.title()),
        )
    }
}

#[cfg(test)]
mod agreement_tests;
#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod native_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tensor_descs_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing_tests;
