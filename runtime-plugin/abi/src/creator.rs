//! A creator: the safe trait, and the objects that a plugin library registers.
//!
//! Owns: [`Creator`], [`CreatorList`] and the thunks of `IPluginCreatorV3One`. Never: no registry call; TensorRT asks the
//! library for its creators.

use std::ffi::CStr;

use crate::error::Error;
use crate::fields::{Field, FieldNames};
use crate::logger;
use crate::plugin::Plugin;
use crate::raw::TensorRTPhase;

/// What makes plugins of one name, version and namespace.
pub trait Creator: Send + Sync + 'static {
    /// The plugins it makes.
    type Plugin: Plugin;

    /// Plugin name: the ONNX op type, or an engine's core name.
    fn name(&self) -> &CStr;
    /// Plugin version, "1" where an ONNX node names none.
    fn version(&self) -> &CStr;
    /// Plugin namespace.
    fn namespace(&self) -> &CStr;

    /// The attributes that it wants from an ONNX node.
    fn fields(&self) -> &FieldNames;

    /// Makes a plugin: for an ONNX node (`TensorRTPhase::BUILD`, `name` is the node's) or from the fields in an engine
    /// (`TensorRTPhase::RUNTIME`). Both happen on machines without a GPU.
    fn create(&self, name: &CStr, fields: &[Field<'_>], phase: TensorRTPhase) -> Result<Self::Plugin, Error>;

    /// Told each failure before TensorRT gets null: an `Err` of [`create`](Self::create), or a caught panic.
    fn report(&self, error: &Error) {
        logger::error_of(self.name(), error);
    }
}
