//! Build answers of a node that TensorRT launches, for the whole profile ([`BuiltFor`]).

use std::ffi::{CStr, CString};
use std::sync::{Arc, OnceLock};

use cubinder_expr::{Format, Value};
use cubinder_model::{CodeRef, Requirement, Variant};
use trt_abi::{
    DynamicPluginTensorDesc, Error, ExprBuilder, Identity, PluginBase, PluginTensorDesc, QuickKernel,
    QuickLaunch, QuickPlugin, Result, Severity, Shape, TensorFormat,
};

use super::built_for::BuiltFor;
use super::node::{EngineFacts, NamedNode, NodeData};
use super::profile::Profile;
use super::state::{Latest, NodeState};
use super::{Form, build, shapes};
use crate::definition::{Definition, TensorKinds};

/// Unproved claims in a message; array arguments count once.
const MAX_LISTED: usize = 8;

#[derive(Debug)]
struct Code {
    symbol: CString,
    /// Ends with a NUL: TensorRT 11.4 reads a C string.
    text: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) struct NativePlugin {
    pub(super) state: NodeState,
    codes: Arc<[OnceLock<Code>]>,
    built_for: Latest<BuiltFor>,
}

impl NativePlugin {
    pub(crate) fn new(
        definition: Definition,
        attributes: Vec<Value>,
        name: &str,
        op: Identity,
    ) -> Result<NativePlugin> {
        let node = NamedNode::checked(NodeData::new(definition, attributes, Form::Fields, op), name)?;
        let codes = node.definition.plugin().variants.iter().map(|_| OnceLock::new()).collect();
        Ok(NativePlugin {
            state: NodeState::new(node, EngineFacts::default()),
            codes,
            built_for: Latest::default(),
        })
    }

    fn offered(&self, kinds: Option<&TensorKinds>) -> Vec<&Variant> {
        let built_for = self.built_for.get();
        let unguarded = |variant: &&Variant| variant.guard.is_none();
        let reachable = self.state.node.reachable(kinds);
        match &built_for {
            Some(built_for) => {
                reachable.filter(|variant| built_for.offers(&self.state.node, variant)).collect()
            }
            None => reachable.filter(unguarded).collect(),
        }
    }

    fn chosen(&self, kinds: &TensorKinds) -> Result<&Variant> {
        let tactic = self.state.tactic();
        let found = self.offered(Some(kinds)).into_iter().find(|variant| tactic == 0 || variant.id == tactic);
        found.ok_or_else(|| self.none_holds(tactic, kinds))
    }

    fn none_holds(&self, tactic: i32, kinds: &TensorKinds) -> Error {
        let built_for = self.built_for.get();
        let conditions = |variant: &Variant| {
            let asked_for: Vec<String> = built_for
                .iter()
                .flat_map(|built_for| built_for.asks_for(&self.state.node, variant))
                .collect();
            match asked_for.as_slice() {
                [] => format!("variant {} always runs", variant.id),
                all => format!("variant {} requires that {}", variant.id, all.join(" and ")),
            }
        };
        let is_meant = |variant: &&Variant| tactic == 0 || variant.id == tactic;
        let variants: Vec<String> =
            self.state.node.reachable(Some(kinds)).filter(is_meant).map(conditions).collect();
        let what = match (tactic, variants.is_empty()) {
            (0, _) => "no variant is proved for all shapes of the profile".to_owned(),
            (tactic, true) => {
                format!("variant {tactic}, which it chose, does not support these types and formats")
            }
            (tactic, false) => {
                format!("variant {tactic}, which it chose, is not proved for all shapes of the profile")
            }
        };
        let variants = if variants.is_empty() { String::new() } else { format!(": {}", variants.join(", ")) };
        self.state.node.invalid(format_args!(
            "TensorRT launches this plugin itself, but {what}{variants}; narrow the profile, or use the plugin route, which chooses at run time"
        ))
    }

    fn profile_of(&self, inputs: &[DynamicPluginTensorDesc]) -> Result<Profile> {
        Profile::from_tensors(&self.state.node, self.state.input_ranks().as_deref(), inputs)
    }

    fn build_for(&self, profile: Profile) -> Result<Arc<BuiltFor>> {
        let built_for = Arc::new(BuiltFor::prove(&self.state.node, profile)?);
        self.built_for.set(Some(Arc::clone(&built_for)));
        Ok(built_for)
    }

    pub(super) fn uncopied(&self) -> Option<String> {
        let plugin = self.state.node.definition.plugin();
        let names = plugin.outputs.iter().filter_map(|output| {
            Some(format!("`{}` of `{}`", output.name, plugin.tensor_name(output.alias? as usize)?))
        });
        let names: Vec<String> = names.collect();
        (!names.is_empty()).then(|| {
            format!(
                "TensorRT launches this plugin itself, and its outputs share the memory of inputs ({}), which are \
                 never copied; bind both to one address, or compile the plugin without `route = \"native\"`",
                names.join(", ")
            )
        })
    }

    fn say(&self, what: &str, mut unproved: Vec<String>, outcome: &str) {
        if !unproved.is_empty() {
            let left = unproved.len().saturating_sub(MAX_LISTED);
            unproved.truncate(MAX_LISTED);
            unproved.extend((left > 0).then(|| format!("{left} more")));
            let text = format!(
                "TensorRT launches {what} itself, but claims are not proved for all shapes of the profile: {}; if one is false, {outcome}",
                unproved.join(", ")
            );
            self.state.node.log(Severity::WARNING, text);
        }
    }

    fn code(&self, variant: &Variant) -> Result<&Code> {
        let missing =
            || self.state.node.invalid(format_args!("variant {} has no code for TensorRT", variant.id));
        let plugin = self.state.node.definition.plugin();
        let index =
            plugin.variants.iter().position(|known| std::ptr::eq(known, variant)).ok_or_else(missing)?;
        let place = self.codes.get(index).ok_or_else(missing)?;
        if let Some(code) = place.get() {
            return Ok(code);
        }
        let CodeRef { code, symbol, .. } =
            variant.launches().next().and_then(|launch| launch.code.first()).ok_or_else(missing)?;
        let object = self.state.node.definition.code().get(*code as usize).ok_or_else(missing)?;
        let raw = object
            .raw()
            .map_err(|error| self.state.node.invalid(format_args!("cannot read its code: {error}")))?;
        let symbol = CString::new(symbol.as_str()).map_err(|_| missing())?;
        let text = [raw.strip_suffix(b"\0").unwrap_or(&raw), b"\0"].concat();
        Ok(place.get_or_init(|| Code { symbol, text }))
    }
}

impl PluginBase for NativePlugin {
    node_plugin_methods!();

    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<()> {
        let kinds = build::configured_kinds(&self.state.node, inputs, outputs)?;
        let built_for = self.build_for(self.profile_of(inputs)?)?;
        let unproved =
            built_for.required.iter().map(|requirement| format!("`{}`", requirement.text)).collect();
        self.state.set_kinds(kinds)?;
        let offered = self.offered(Some(kinds));
        if offered.is_empty() {
            return Err(self.none_holds(0, kinds));
        }
        if let Some(text) = self.uncopied() {
            self.state.node.log(Severity::WARNING, text);
        }
        self.say("this plugin", unproved, "the kernel returns early and leaves the outputs unchanged");
        offered.into_iter().for_each(|variant| {
            let unproved = built_for.unproved(&self.state.node, variant);
            self.say(&format!("variant {}", variant.id), unproved, "the engine reports no error");
        });
        Ok(())
    }

    fn tactics(&self) -> Result<Vec<i32>> {
        let mut ids: Vec<i32> = Vec::new();
        for variant in self.offered(self.state.kinds()) {
            if !ids.contains(&variant.id) {
                ids.push(variant.id);
            }
        }
        Ok(ids)
    }

    fn set_tactic(&self, tactic: i32) -> Result<()> {
        self.state.set_tactic(tactic, tactic == 0)
    }
}

impl QuickPlugin for NativePlugin {
    fn output_types(
        &self,
        inputs: &[trt_abi::DataType],
        _: &[i32],
        outputs: &mut [trt_abi::DataType],
    ) -> Result<()> {
        build::output_types(&self.state.node, inputs, outputs)
    }

    fn format_combinations(
        &self,
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
    ) -> Result<Vec<Vec<PluginTensorDesc>>> {
        build::check_counts(&self.state.node, input_count, in_out.len().saturating_sub(input_count))?;
        let described = |tensor: &DynamicPluginTensorDesc, ty: cubinder_expr::DataType, format: Format| {
            PluginTensorDesc {
                data_type: trt_abi::DataType(ty.tensorrt()),
                format: TensorFormat(format.tensorrt()),
                ..tensor.desc
            }
        };
        let row = |kinds: &TensorKinds| -> Option<Vec<PluginTensorDesc>> {
            let tensors = in_out.iter().zip(kinds.types.iter().zip(&kinds.formats));
            let can_be = |tensor: &DynamicPluginTensorDesc, format: Format| {
                build::rank_below(&tensor.desc, format).is_none()
            };
            tensors
                .map(|(tensor, (ty, format))| {
                    can_be(tensor, *format).then(|| described(tensor, *ty, *format))
                })
                .collect()
        };
        Ok(self.state.node.kinds.iter().filter_map(row).collect())
    }

    fn launch<'b>(
        &self,
        inputs: &[Shape<'b>],
        in_out: &[DynamicPluginTensorDesc],
        input_count: usize,
        builder: &ExprBuilder<'b>,
    ) -> Result<QuickLaunch<'b>> {
        let (given, outputs) = in_out.split_at(input_count.min(in_out.len()));
        let kinds = build::configured_kinds(&self.state.node, given, outputs)?;
        // TensorRT may request a launch before configuring.
        let profile = self.profile_of(given)?;
        let built_for = match self.built_for.get() {
            Some(built_for) if profile.is_among(&built_for.profile) => built_for,
            _ => self.build_for(profile)?,
        };
        let variant = self.chosen(kinds)?;
        let step = variant.steps.first();
        let launch = variant.launch(0).ok_or_else(|| self.state.node.invalid("it launches no kernel"))?;
        let when = step.and_then(|step| step.when.as_ref());
        let required: Vec<&Requirement> = built_for.required.iter().collect();
        let lowered = shapes::launch_expressions(&self.state.node, when, &required, launch, inputs, builder)?;
        Ok(QuickLaunch {
            grid: lowered.grid,
            block: lowered.block,
            shared_bytes: lowered.shared_bytes,
            scalars: lowered.words,
        })
    }

    fn kernel(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> Result<QuickKernel<'_>> {
        let kinds = build::kinds_of(&self.state.node, inputs.iter().chain(outputs))?;
        let code = self.code(self.chosen(kinds)?)?;
        Ok(QuickKernel { name: &code.symbol, code: code.text.strip_suffix(b"\0").unwrap_or(&code.text) })
    }
}
