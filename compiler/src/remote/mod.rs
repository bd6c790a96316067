//! Actions for servers of the Remote Execution API.

pub mod gpu;
pub mod inputs;

use cubinder_manifest::config::{Endpoint, RemoteConfig};
use cubinder_remote::{Credentials, Settings, Tls};

/// Ends the process as the signal would without a handler.
pub(crate) fn end(signal: i32) {
    // Only numbers that are not signals fail.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Reads no file.
pub(crate) fn settings(config: &RemoteConfig, endpoint: &Endpoint, on_signal: Option<fn(i32)>) -> Settings {
    let RemoteConfig { headers_file, credential_helper, .. } = config;
    let tls = Tls { ca: config.ca.clone(), identity: config.identity.clone() };
    let file = headers_file.clone().map(Credentials::HeadersFile);
    let helper = credential_helper.clone().map(Credentials::Helper);
    Settings {
        authority: endpoint.authority.clone(),
        tls: endpoint.is_encrypted.then_some(tls),
        instance: config.instance.clone(),
        credentials: file.or(helper).unwrap_or_default(),
        timeout: config.timeout,
        can_upload: config.can_upload,
        on_signal,
    }
}
