//! The names of a plugin and of its parts.

use super::Plugin;
use cubinder_expr::Names;

impl Names for Plugin {
    fn attribute(&self, index: u32) -> Option<&str> {
        self.attributes.get(index as usize).map(|attribute| attribute.name.as_str())
    }

    fn tensor(&self, index: u32) -> Option<&str> {
        self.tensor_name(index as usize)
    }
}

impl Plugin {
    /// Returns the name as ONNX and TensorRT users write it: `sample::circ_pad_plugin`.
    #[must_use]
    pub fn full_name(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}::{}", self.name),
        }
    }
}
