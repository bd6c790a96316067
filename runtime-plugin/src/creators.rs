//! The creators that a plugin library registers:
//!
//! - `libcubinder.so`: `Kernel2`, for engines whose nodes carry their code; rejects older ones
//! - `lib<name>.so`: its bundle's ops
//! - `lib<name>-code.so`: `Kernel-<digest>`, for engines that refer to its bundle

use std::ffi::{CStr, CString};
use std::sync::Arc;

use cubinder_expr::Value;
use cubinder_launch::native;
use cubinder_model::Plugin as PluginModel;
use cubinder_model::container::FORMAT_VERSION;
use cubinder_model::slot::Mode;
use trt_abi::raw::QuickPluginCreationRequest;
use trt_abi::{
    Creator, CreatorBase, CreatorList, Error, Field, FieldNames, Identity, PluginFieldType, QuickCreator,
    Result, Severity, TensorRTPhase, logger,
};

use crate::attributes;
use crate::definition::{Definition, OwnBundle};
use crate::plugin::{EngineNodes, Form, KernelPlugin, NativePlugin};
use crate::{descriptor, identity};

pub(crate) struct NodeCreator<K> {
    identity: Identity,
    fields: FieldNames,
    kind: K,
}

pub(crate) struct Op {
    own: Arc<OwnBundle>,
    index: usize,
    form: Form,
}

pub(crate) struct OldFormat;

pub(crate) fn creators() -> Result<CreatorList> {
    let mut list = CreatorList::new();
    let attached = descriptor::attached()
        .map_err(|error| Error::new(Error::FAILED_INITIALIZATION, error.to_string()))?;
    let Some((mode, bytes)) = attached else {
        list.push(NodeCreator::new(identity::generic(), EngineNodes::new(None))?);
        for old in identity::OLD_VERSIONS {
            list.push(NodeCreator::new(old, OldFormat)?);
        }
        return Ok(list);
    };
    let own = Arc::new(OwnBundle::read(bytes)?);
    let form = match mode {
        Mode::Ops => Form::Fields,
        Mode::OpsForLibrary => Form::Library,
        Mode::CodeLibrary => {
            let identity = identity::of_library(&own.digest);
            list.push(NodeCreator::new(identity, EngineNodes::new(Some(own)))?);
            return Ok(list);
        }
    };
    let is_native = |index: &usize| own.bundle.plugins.get(*index).is_some_and(native::is_native);
    let (natives, others): (Vec<usize>, Vec<usize>) = (0..own.bundle.plugins.len()).partition(is_native);
    let creator = |index| NodeCreator::of_op(Op { own: Arc::clone(&own), index, form });
    others.into_iter().try_for_each(|index| creator(index).map(|op| list.push(op)))?;
    natives.into_iter().try_for_each(|index| creator(index).map(|op| list.push_quick(op)))?;
    Ok(list)
}

impl<K: Send + Sync + 'static> CreatorBase for NodeCreator<K> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn fields(&self) -> &FieldNames {
        &self.fields
    }

    fn report(&self, error: &Error) {
        logger::error_of(c"cubinder", error);
    }
}

impl NodeCreator<Op> {
    fn of_op(kind: Op) -> Result<NodeCreator<Op>> {
        let model = kind.model();
        let names: Vec<CString> =
            model.attributes.iter().map(|attribute| c_string(&attribute.name)).collect::<Result<_, _>>()?;
        let declared = names.iter().zip(&model.attributes);
        let declared =
            declared.map(|(name, attribute)| (name.as_c_str(), attributes::declared_type(attribute.ty)));
        let mut fields = FieldNames::new(declared.chain([(attributes::AOT, PluginFieldType::INT32)]))?;
        fields.are_needed = !model.attributes.is_empty();
        let identity = Identity {
            name: c_string(&model.name)?.into(),
            version: c_string(&model.version)?.into(),
            namespace: c_string(&model.namespace)?.into(),
        };
        Ok(NodeCreator { identity, fields, kind })
    }
}

impl Op {
    fn model(&self) -> &PluginModel {
        &self.own.bundle.plugins[self.index]
    }

    fn definition(&self) -> Definition {
        Definition::Bundle { own: Arc::clone(&self.own), index: self.index }
    }

    fn core(&self) -> Identity {
        match self.form {
            Form::Fields => identity::generic(),
            Form::Library => identity::of_library(&self.own.digest),
        }
    }

    fn invalid(&self, node: &str, error: &dyn std::fmt::Display) -> Error {
        let PluginModel { namespace, name, .. } = self.model();
        Error::invalid(format!("{namespace}::{name} `{node}`: {error}"))
    }

    /// `elsewhere` is the error outside of builds.
    fn values(
        &self,
        node: &str,
        fields: &[Field<'_>],
        phase: TensorRTPhase,
        elsewhere: &str,
    ) -> Result<Vec<Value>> {
        if phase != TensorRTPhase::BUILD {
            return Err(self.invalid(node, &elsewhere));
        }
        attributes::from_fields(self.model(), fields).map_err(|error| self.invalid(node, &error))
    }
}

impl Creator for NodeCreator<Op> {
    type Plugin = KernelPlugin;

    fn create(&self, name: &CStr, fields: &[Field<'_>], phase: TensorRTPhase) -> Result<KernelPlugin> {
        let (name, op) = (name.to_string_lossy(), &self.kind);
        let elsewhere = "this library only builds engines; load libcubinder.so, or the code library next to it, to run them";
        let values = op.values(&name, fields, phase, elsewhere)?;
        if attributes::aot(fields) == Some(false) {
            let note = "`aot` = 0 has no effect: Cubinder always compiles kernels ahead of time";
            logger::log(Severity::INFO, &format!("cubinder: {}", op.invalid(&name, &note)));
        }
        KernelPlugin::new(op.definition(), values, &name, phase, op.form, op.core())
    }
}

impl QuickCreator for NodeCreator<Op> {
    type Plugin = NativePlugin;

    fn create(
        &self,
        name: &CStr,
        _: &CStr,
        fields: &[Field<'_>],
        phase: TensorRTPhase,
        request: QuickPluginCreationRequest,
    ) -> Result<NativePlugin> {
        let (name, op) = (name.to_string_lossy(), &self.kind);
        if phase == TensorRTPhase::BUILD && request == QuickPluginCreationRequest::STRICT_JIT {
            let other_route = "`aot` is 0, but TensorRT launches the kernel of this plugin: remove `aot` from the node or set it to 1, or compile the plugin without `route = \"native\"`";
            return Err(op.invalid(&name, &other_route));
        }
        let elsewhere = "TensorRT launches the kernel of this plugin: engines do not contain it";
        let values = op.values(&name, fields, phase, elsewhere)?;
        NativePlugin::new(op.definition(), values, &name, self.identity.clone())
    }
}

impl<K> NodeCreator<K> {
    fn new(identity: Identity, kind: K) -> Result<NodeCreator<K>> {
        let fields = FieldNames::new([(identity::NODE_FIELD, PluginFieldType::INT8)])?;
        Ok(NodeCreator { identity, fields, kind })
    }
}

impl Creator for NodeCreator<EngineNodes> {
    type Plugin = KernelPlugin;

    fn create(&self, name: &CStr, fields: &[Field<'_>], phase: TensorRTPhase) -> Result<KernelPlugin> {
        self.kind.plugin(&name.to_string_lossy(), fields, phase, &self.identity)
    }
}

impl Creator for NodeCreator<OldFormat> {
    type Plugin = KernelPlugin;

    fn create(&self, name: &CStr, _: &[Field<'_>], _: TensorRTPhase) -> Result<KernelPlugin> {
        Err(Error::invalid(format!(
            "the node `{}` in the engine has format version {}, but this libcubinder.so supports only version \
             {FORMAT_VERSION}: compile the plugins again with this version of Cubinder and rebuild the engine, or \
             load the libcubinder.so of the version that built it",
            name.to_string_lossy(),
            self.identity.version.to_string_lossy(),
        )))
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::internal(format!("the name {text:?} contains a NUL")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{self, Restored};
    use cubinder_model::container;

    fn restore_node(field: &[u8]) -> Result<Restored> {
        definition::restore_node(&field.into())
    }

    fn node_of_version(version: u32) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/compat");
        std::fs::read(format!("{folder}/{version}/node")).unwrap()
    }

    #[test]
    fn nodes_of_this_version_are_read() {
        let restored = restore_node(&node_of_version(FORMAT_VERSION)).unwrap();
        assert_eq!(restored.definition.plugin().name, "window");
        assert_eq!(restored.attributes.len(), 3);
    }

    fn own_bundle() -> Arc<OwnBundle> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/compat");
        let bytes = std::fs::read(format!("{folder}/{FORMAT_VERSION}/bundle")).unwrap();
        Arc::new(OwnBundle::read(bytes.leak()).unwrap())
    }

    #[test]
    fn each_route_has_its_identity() {
        let own = own_bundle();
        let written = |Identity { name, version, namespace }: &Identity| {
            let [name, version, namespace] = [name, version, namespace].map(|text| text.to_string_lossy());
            format!("{namespace}::{name} {version}")
        };
        let creator = |form| NodeCreator::of_op(Op { own: Arc::clone(&own), index: 0, form }).unwrap();
        let (fields, library) = (creator(Form::Fields), creator(Form::Library));
        let PluginModel { namespace, name, version, .. } = fields.kind.model();
        assert_eq!(written(fields.identity()), format!("{namespace}::{name} {version}"));
        assert_eq!(written(library.identity()), written(fields.identity()));
        assert_eq!(written(&fields.kind.core()), format!("cubinder::Kernel2 {FORMAT_VERSION}"));
        let code = format!("cubinder::Kernel-{} {FORMAT_VERSION}", own.digest.short());
        assert_eq!(written(&library.kind.core()), code);
    }

    #[test]
    fn a_native_plugin_is_created_for_the_builder_and_its_own_route_alone() {
        let creator = NodeCreator::of_op(Op { own: own_bundle(), index: 0, form: Form::Fields }).unwrap();
        let refusal = |phase, request| {
            let created = QuickCreator::create(&creator, c"n", c"", &[], phase, request);
            created.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let [own_route, other] =
            [QuickPluginCreationRequest::STRICT_AOT, QuickPluginCreationRequest::STRICT_JIT];
        let (aot, engine) = ("`aot` is 0, but TensorRT launches the kernel", "engines do not contain it");
        let refused = refusal(TensorRTPhase::BUILD, other);
        assert!(refused.contains(aot), "{refused}");
        let refused = refusal(TensorRTPhase::RUNTIME, own_route);
        assert!(refused.contains(engine), "{refused}");
        let other_reason = refusal(TensorRTPhase::BUILD, own_route);
        assert!(!other_reason.contains(aot) && !other_reason.contains(engine), "{other_reason}");
    }

    #[test]
    fn a_field_with_more_than_a_node_is_refused() {
        let field = node_of_version(FORMAT_VERSION);
        let longer = [field.as_slice(), b"\0"].concat();
        let refusal = restore_node(&longer).err().map(|error| error.to_string());
        assert!(refusal.as_ref().is_some_and(|error| error.ends_with("1 byte follows it")), "{refusal:?}");
    }

    #[test]
    fn what_follows_a_node_in_sections_is_passed_over_and_kept() {
        use crate::definition::BuildFacts;
        use cubinder_model::Digest;
        use cubinder_model::provenance::{self, Origin, Provenance, Read, Section};
        let field = node_of_version(FORMAT_VERSION);
        let (digest, _) = container::digest(&field).unwrap();
        let file = |path: &str| provenance::File { path: path.to_owned(), digest };
        let mut record = Provenance { cubinder: "0.1.0".to_owned(), ..Provenance::default() };
        let read = Read::Files(vec![file("k.cuh")]);
        let origin =
            Origin::Source { file: file("k.cu"), read, headers: None, is_open: false, options: Vec::new() };
        (0..2).for_each(|_| record.add([origin.clone()]));
        let mut unknown = provenance::write(&record, digest);
        unknown[8] = 9;
        let seal = Digest::compute(&[&unknown[..16], &unknown[24..]].concat()).shortened();
        unknown[16..24].copy_from_slice(&seal.0);
        let section = provenance::write(&record, digest);
        let longer = [field.as_slice(), &unknown, &section].concat();
        let restored = restore_node(&longer).unwrap();
        assert_eq!(restored.definition.plugin(), restore_node(&field).unwrap().definition.plugin());
        for index in field.len()..longer.len() {
            let mut damaged = longer.clone();
            damaged[index] ^= 1;
            assert!(restore_node(&damaged).is_err(), "byte {index}");
        }
        assert!(restore_node(&longer[..longer.len() - 1]).is_err());
        let restored = restore_node(&[field.as_slice(), &section].concat()).unwrap();
        let known = BuildFacts {
            input_ranks: restored.input_ranks.as_deref(),
            workspace_bytes: restored.workspace_bytes,
            ..BuildFacts::default()
        };
        let again = restored.definition.field(known, &restored.attributes);
        let (of, length) = container::digest(&again).unwrap();
        let Ok(Some(Section::Provenance(found))) = provenance::find(&again[length..], of) else {
            panic!("the node lost its record")
        };
        assert!(
            matches!(&found.origins[..], [Origin::Source { read: Read::Together(1, _), .. }]),
            "{found:?}"
        );
    }

    #[test]
    fn nodes_of_older_versions_are_refused_by_name_with_what_to_do() {
        for old in identity::OLD_VERSIONS {
            assert_eq!((&*old.name, &*old.namespace), (c"Kernel", c"cubinder"));
            let creator = NodeCreator::new(old, OldFormat).unwrap();
            let error = creator.create(c"pad", &[], TensorRTPhase::RUNTIME).unwrap_err().to_string();
            assert!(error.starts_with("the node `pad` in the engine has format version 1,"), "{error}");
            assert!(
                error.contains("compile the plugins again") && error.contains("rebuild the engine"),
                "{error}"
            );
        }
        let Err(error) = restore_node(&node_of_version(1)) else { panic!("a node of version 1 was read") };
        assert!(
            error.to_string().contains("format version 1, but this version of Cubinder reads"),
            "{error}"
        );
    }

    #[test]
    fn engines_that_do_not_read_are_refused_with_what_to_do() {
        let good = node_of_version(FORMAT_VERSION);
        let changed = |place: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[place] = to;
            bytes
        };
        let refused = |bytes: &[u8]| restore_node(bytes).err().unwrap().to_string();
        let newer = changed(16, 9);
        let last = good.len() - 1;
        let errors =
            [&[][..], &good[..100], &changed(0, 0), &newer, &changed(last, !good[last])].map(refused);
        // The digest changes with the format.
        let is_digest = |word: &str| word.len() >= 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let errors = errors.join("\n");
        let found: Vec<&str> = errors.split([' ', ',', ';', '\n']).filter(|word| is_digest(word)).collect();
        assert_eq!(found.len(), 2);
        let errors = found.iter().fold(errors.clone(), |errors, digest| errors.replace(digest, "DIGEST"));
        insta::assert_snapshot!(errors.replace(&format!(" {}", good.len()), " LENGTH"));

        let creator = NodeCreator::new(identity::generic(), EngineNodes::new(None)).unwrap();
        let field = |name| creator.create(name, &[], TensorRTPhase::RUNTIME).unwrap_err().to_string();
        assert!(
            field(c"pad").starts_with("`pad`: the node in the engine has the fields []"),
            "{}",
            field(c"pad")
        );
        assert!(field(c"").starts_with("the node in the engine"), "{}", field(c""));
    }

    #[test]
    fn no_older_version_is_forgotten() {
        let versions: Vec<String> = (1..FORMAT_VERSION).map(|version| version.to_string()).collect();
        let refused: Vec<String> =
            identity::OLD_VERSIONS.map(|old| old.version.to_string_lossy().into_owned()).into();
        assert_eq!(refused, versions);
    }

    #[test]
    fn no_two_creators_share_a_name() {
        assert_eq!(identity::GENERIC_NAME.to_str().unwrap(), format!("Kernel{FORMAT_VERSION}"));
        let mut names: Vec<_> = identity::OLD_VERSIONS.map(|old| old.name).into();
        names.push(identity::GENERIC_NAME.into());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
