use std::io::{Read, Write};
use std::path::Path;

use cubinder_gpu::DeviceInfo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Messages;

pub(in crate::cli) fn heading(gpu: &DeviceInfo, path: &Path) -> String {
    let DeviceInfo { name, capability, .. } = gpu;
    format!("{} on {name} ({capability}, driver for CUDA {})\n", path.display(), gpu.driver_cuda())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum Greeting {
    Ready(DeviceInfo),
    NoGpu(String),
    Failed(Messages),
}

pub(in crate::cli) fn send(to: &mut impl Write, job: &impl Serialize) -> Result<(), String> {
    let bytes = postcard::to_allocvec(job).map_err(|error| error.to_string())?;
    let length = u32::try_from(bytes.len()).map_err(|error| error.to_string())?;
    to.write_all(&length.to_le_bytes())
        .and_then(|()| to.write_all(&bytes))
        .and_then(|()| to.flush())
        .map_err(|error| error.to_string())
}

pub(in crate::cli) fn receive<J: DeserializeOwned>(from: &mut impl Read) -> Option<J> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let mut bytes = Vec::new();
    from.take(u64::from(u32::from_le_bytes(length))).read_to_end(&mut bytes).ok()?;
    postcard::from_bytes(&bytes).ok()
}
