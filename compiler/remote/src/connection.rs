use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::credentials::{Credentials, Headers};
use crate::error::{Error, describe};

/// How to reach and use a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Host and port: `cache.example:8980`.
    pub authority: String,
    /// Encryption; `None` for plain text.
    pub tls: Option<Tls>,
    /// The server's instance, often empty.
    pub instance: String,
    /// Headers.
    pub credentials: Credentials,
    /// Time limit of a call with retries, without large transfers, and of a pause in a transfer.
    pub timeout: Duration,
    /// Whether results are stored.
    pub can_upload: bool,
    /// Ends the process as SIGINT, SIGTERM or SIGHUP would, after executions were cancelled. With `None`, these signals
    /// keep their effect.
    pub on_signal: Option<fn(i32)>,
}

/// Files for encrypted connections, in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates that are trusted instead of the machine's.
    pub ca: Option<PathBuf>,
    /// The client's certificate and key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A channel whose calls have the headers.
pub(crate) type Service = InterceptedService<Channel, Headers>;

/// Maximum size of a certificate file in bytes.
const MAX_PEM: u64 = 4 << 20;

/// It connects at its first call.
pub(crate) fn endpoint(settings: &Settings) -> Result<Endpoint, Error> {
    let error = |error: tonic::transport::Error| Error::Connection(describe(&error));
    let endpoint = Endpoint::from_shared(uri(settings)).map_err(error)?;
    let endpoint = endpoint
        .connect_timeout(settings.timeout)
        .tcp_nodelay(true)
        // gRPC servers close connections with frequent HTTP/2 pings.
        .tcp_keepalive(Some(Duration::from_secs(30)))
        .user_agent(concat!("cubinder/", env!("CARGO_PKG_VERSION")))
        .map_err(error)?;
    let Some(tls) = &settings.tls else { return Ok(endpoint) };
    let mut config = ClientTlsConfig::new();
    config = match &tls.ca {
        Some(ca) => config.ca_certificate(Certificate::from_pem(pem("the CA certificate", ca)?)),
        None => config.with_native_roots(),
    };
    if let Some((certificate, key)) = &tls.identity {
        let certificate = pem("the client's certificate", certificate)?;
        config = config.identity(Identity::from_pem(certificate, pem("the client's key", key)?));
    }
    endpoint.tls_config(config).map_err(error)
}

/// Returns the URI for gRPC and for credential helpers.
pub(crate) fn uri(settings: &Settings) -> String {
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{}", settings.authority)
}

pub(crate) fn connect(endpoint: &Endpoint) -> Channel {
    endpoint.connect_lazy()
}

fn pem(role: &'static str, path: &Path) -> Result<Vec<u8>, Error> {
    let error = |reason: String| Error::File { role, path: path.to_owned(), reason };
    let facts = std::fs::metadata(path).map_err(|found| error(found.to_string()))?;
    if !facts.is_file() || facts.len() > MAX_PEM {
        return Err(error(format!("it is not a file of at most {MAX_PEM} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|found| error(found.to_string()))?;
    let has_block = bytes.windows(11).any(|bytes| bytes == b"-----BEGIN ");
    if has_block { Ok(bytes) } else { Err(error("it has no PEM block".to_owned())) }
}
