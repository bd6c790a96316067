//! The table `[remote]`: a cache of compiled code that machines share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde_json::json;

use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::Located;
use crate::manifest::description::Kinds;
use crate::manifest::errors::{
    BadEndpoint, ConflictingRemoteKeys, EmptyPath, LoneRemoteKey, PlainExecutor, PlainText, WrongTimeout,
};
use crate::manifest::json::IDENTIFIER;
use crate::manifest::toml_reader::{Entry, Section, TomlReader};
use crate::manifest::value_type::{
    AnyText, Declaration, NamedDeclaration, NamedTables, Row, table, value_types,
};

table! {
    /// A server of the Remote Execution API v2 with results that machines share. Paths are relative to the file's
    /// folder.
    struct RemoteTable = pub REMOTE: "remote" as "[remote]" {
        /// The server: `grpcs://host:port`, or `grpc://host:port` without encryption. `--remote-cache` and
        /// `CUBINDER_REMOTE_CACHE` override it.
        cache: ServerUrl = Required, "\"grpcs://cache.example:8980\"";
        /// The server whose workers compile what no cache has, if they have `cubinder`'s operating system. It also
        /// stores their inputs. `--remote-executor` overrides it.
        executor: ServerUrl = Optional, "\"grpcs://farm.example:8980\"";
        /// Properties that select workers.
        platform: Properties = Optional, "{ OSFamily = \"linux\" }";
        /// The server's instance.
        instance: AnyText = Default("\"\""), "\"main\"";
        /// `"read-write"` also stores results, as `--remote-upload` does.
        mode: Mode = Default("\"read-only\""), "\"read-write\"";
        /// A PEM file with the certificates to trust instead of the machine's.
        ca: RemoteFile = Optional, "\"ca.pem\"";
        /// A PEM file with the client's certificate; needs `client_key`.
        client_certificate: RemoteFile = Optional, "\"client.pem\"";
        /// A PEM file with the client's key; needs `client_certificate`.
        client_key: RemoteFile = Optional, "\"client-key.pem\"";
        /// A file with headers for each call, a line `name: value` for each.
        headers_file: RemoteFile = Optional, "\"headers.txt\"";
        /// A program that prints headers, by Bazel's protocol for credential helpers; not with `headers_file`.
        credential_helper: RemoteFile = Optional, "\"tools/credentials\"";
        /// Seconds until a request counts as failed, 1 to 3600.
        timeout: Seconds = Default("10"), "30";
        /// Workers with a GPU, by name, for `--workers` of `test` and `tune`.
        workers: NamedTables<WorkerPool> = Optional, "h100";
    }

    /// Equal workers of `executor`, which [run `test` and `tune`](gpu-workers.md).
    struct WorkersTable = pub WORKERS: "remote.workers.*" as "[remote.workers.NAME]" {
        /// Properties that select these workers, in addition to those of `[remote]`.
        platform: Properties = Default("{}"), "{ gpu = \"h100\" }";
        /// Environment variables of the run, such as the folder of the CUDA driver.
        environment: Variables = Default("{}"), "{ LD_LIBRARY_PATH = \"/usr/local/nvidia/lib64\" }";
    }
}

value_types! {
    /// A server's URL.
    ServerUrl -> Located<Endpoint>: "string", json!({ "type": "string", "pattern": "^grpcs?://[^/@\\s]+$" }), endpoint;
    /// Properties of workers.
    Properties -> BTreeMap<String, String>: "table of strings", json!({ "type": "object", "additionalProperties": { "type": "string" } }), properties;
    /// Environment variables.
    Variables -> BTreeMap<String, String>: "table of strings", json!({ "type": "object", "propertyNames": { "pattern": format!("^{IDENTIFIER}$") }, "additionalProperties": { "type": "string" } }), variables;
    /// Whether results are stored.
    Mode -> bool: "`\"read-only\"` or `\"read-write\"`", json!({ "enum": ["read-only", "read-write"] }), mode;
    /// A file.
    RemoteFile -> Located<String>: "path", json!({ "type": "string", "pattern": "\\S" }), file;
    /// A time limit.
    Seconds -> Duration: "integer", json!({ "type": "integer", "minimum": 1, "maximum": 3600 }), seconds;
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host and port.
    pub authority: String,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Endpoint, &'static str> {
        let plain = text.strip_prefix("grpc://").map(|authority| (authority, false));
        let encrypted = text.strip_prefix("grpcs://").map(|authority| (authority, true));
        let (authority, is_encrypted) =
            plain.or(encrypted).ok_or("expected `grpcs://host:port` or `grpc://host:port`")?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte);
        let port = authority.rsplit_once(':').map(|(host, port)| (!host.is_empty(), port.parse::<u16>()));
        match port {
            _ if authority.contains('@') => {
                Err("credentials belong into `headers_file` or `credential_helper`")
            }
            _ if !authority.bytes().all(is_part) => Err("expected only a host and a port after `://`"),
            Some((true, Ok(1..))) => Ok(Endpoint { authority: authority.to_owned(), is_encrypted }),
            _ => Err("expected a host and a port, such as `cache.example:8980`"),
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", if self.is_encrypted { "grpcs" } else { "grpc" }, self.authority)
    }
}

/// A shared cache and how to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The server.
    pub cache: Endpoint,
    /// The server that executes compiles, if any.
    pub executor: Option<Endpoint>,
    /// Properties that select workers.
    pub platform: BTreeMap<String, String>,
    /// The server's instance, often empty.
    pub instance: String,
    /// Whether results are stored.
    pub can_upload: bool,
    /// Trusted certificates.
    pub ca: Option<PathBuf>,
    /// The client's certificate and key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Headers.
    pub headers_file: Option<PathBuf>,
    /// Program that prints headers.
    pub credential_helper: Option<PathBuf>,
    /// Time limit of a request.
    pub timeout: Duration,
    /// Workers for tests and measurements, in the file's order.
    pub workers: Vec<WorkerPool>,
    /// The table, if a file has it.
    pub span: Option<Span>,
}

/// Equal workers with a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerPool {
    /// Name.
    pub name: String,
    /// Properties that select them.
    pub platform: BTreeMap<String, String>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl RemoteConfig {
    /// Returns the settings for a server without table.
    #[must_use]
    pub fn new(cache: Endpoint) -> RemoteConfig {
        RemoteConfig {
            cache,
            executor: None,
            platform: BTreeMap::new(),
            instance: String::new(),
            can_upload: false,
            ca: None,
            identity: None,
            headers_file: None,
            credential_helper: None,
            timeout: DEFAULT_TIMEOUT,
            workers: Vec::new(),
            span: None,
        }
    }

    /// Replaces servers; fails if the table has certificates or headers and a new server is not encrypted.
    pub fn with_servers(
        self,
        cache: Option<Endpoint>,
        executor: Option<Endpoint>,
    ) -> Result<RemoteConfig, Diagnostic> {
        let has_certificates = self.ca.is_some() || self.identity.is_some();
        let has_headers = self.headers_file.is_some() || self.credential_helper.is_some();
        let plain = [&cache, &executor].into_iter().flatten().find(|server| !server.is_encrypted);
        match self.span.as_ref().filter(|_| has_certificates || has_headers).zip(plain) {
            Some((place, server)) => {
                let key = "certificates or headers of `[remote]`";
                Err(PlainText { url: server.to_string(), key, place: place.clone() }.into())
            }
            None => Ok(RemoteConfig {
                cache: cache.unwrap_or(self.cache),
                executor: executor.or(self.executor),
                ..self
            }),
        }
    }
}

impl Declaration for RemoteConfig {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&REMOTE], but_for: None };

    fn read(toml: &mut TomlReader, name: Located<String>, section: Section<'_>) -> Option<RemoteConfig> {
        let folder = toml.source.path.parent().map(Path::to_path_buf).unwrap_or_default();
        let row: RemoteTable<'_> = Row::read_all(toml, section);
        let cache = row.cache?;
        if let Some(executor) = row.executor.as_ref().filter(|server| !server.value.is_encrypted)
            && cache.value.is_encrypted
        {
            toml.report(PlainExecutor { url: executor.value.to_string(), place: toml.span(executor) });
        }
        let files = [
            ("`ca`", &row.ca),
            ("`client_certificate`", &row.client_certificate),
            ("`client_key`", &row.client_key),
            // Everyone on the network could read tokens.
            ("`headers_file`", &row.headers_file),
            ("`credential_helper`", &row.credential_helper),
        ];
        for (key, file) in files {
            if let Some(file) = file.as_ref().filter(|_| !cache.value.is_encrypted) {
                toml.report(PlainText { url: cache.value.to_string(), key, place: toml.span(file) });
            }
        }
        match (&row.client_certificate, &row.client_key) {
            (Some(file), None) => {
                toml.report(LoneRemoteKey {
                    key: "client_certificate",
                    other: "client_key",
                    place: toml.span(file),
                });
            }
            (None, Some(file)) => {
                toml.report(LoneRemoteKey {
                    key: "client_key",
                    other: "client_certificate",
                    place: toml.span(file),
                });
            }
            _ => {}
        }
        if let (Some(first), Some(second)) = (&row.headers_file, &row.credential_helper) {
            toml.report(ConflictingRemoteKeys { first: toml.span(first), second: toml.span(second) });
        }
        let path = |file: Located<String>| folder.join(file.value);
        // A program without a folder is searched in `PATH`.
        let program = |file: Located<String>| match file.value.contains('/') {
            true => folder.join(file.value),
            false => PathBuf::from(file.value),
        };
        let platform = row.platform.unwrap_or_default();
        let mut workers = row.workers.unwrap_or_default();
        for pool in &mut workers {
            let common = platform.iter().filter(|(name, _)| !pool.platform.contains_key(*name));
            let common: Vec<_> = common.map(|(name, value)| (name.clone(), value.clone())).collect();
            pool.platform.extend(common);
        }
        Some(RemoteConfig {
            cache: cache.value,
            executor: row.executor.map(|executor| executor.value),
            platform,
            workers,
            instance: row.instance.unwrap_or_default(),
            can_upload: row.mode.unwrap_or_default(),
            ca: row.ca.map(path),
            identity: row.client_certificate.map(path).zip(row.client_key.map(path)),
            headers_file: row.headers_file.map(path),
            credential_helper: row.credential_helper.map(program),
            timeout: row.timeout.unwrap_or(DEFAULT_TIMEOUT),
            span: Some(toml.span(name.range)),
        })
    }
}

impl NamedDeclaration for WorkerPool {
    const NAMED: &'static str = "a group of workers";
}

impl Declaration for WorkerPool {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&WORKERS], but_for: None };

    fn read(toml: &mut TomlReader, name: Located<String>, section: Section<'_>) -> Option<WorkerPool> {
        let WorkersTable { platform, environment } = Row::read_all(toml, section);
        let (platform, environment) = (platform.unwrap_or_default(), environment.unwrap_or_default());
        Some(WorkerPool { name: name.value, platform, environment })
    }
}

fn endpoint(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<Endpoint>> {
    let url = toml.string(entry)?;
    match url.value.parse() {
        Ok(value) => Some(Located { value, range: url.range }),
        Err(expected) => {
            toml.report(BadEndpoint { expected, place: toml.span(&url) });
            None
        }
    }
}

fn properties(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<BTreeMap<String, String>> {
    if entry.lines().is_none() {
        toml.report(toml.wrong_type(entry, "a table of strings"));
        return None;
    }
    let property =
        |toml: &mut TomlReader, line: &Entry<'_>| Some((line.key.clone(), toml.string(line)?.value));
    Some(toml.lines_of(entry, property)?.into_iter().collect())
}

fn variables(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<BTreeMap<String, String>> {
    for line in entry.lines().unwrap_or_default() {
        toml.identifier(&line.name(), "an environment variable");
    }
    properties(toml, entry)
}

fn mode(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<bool> {
    let mode = toml.string(entry)?;
    match mode.value.as_str() {
        "read-only" => Some(false),
        "read-write" => Some(true),
        _ => {
            toml.report(toml.wrong_type(entry, "`\"read-only\"` or `\"read-write\"`"));
            None
        }
    }
}

fn file(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<String>> {
    let file = toml.string(entry)?;
    if file.value.trim().is_empty() {
        toml.report(EmptyPath {
            key: entry.key.clone(),
            what: "a file",
            place: toml.span(&file),
            help: None,
        });
        return None;
    }
    Some(file)
}

fn seconds(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Duration> {
    let seconds = toml.integer(entry)?;
    let valid = u64::try_from(seconds).ok().filter(|seconds| (1..=3600).contains(seconds));
    if valid.is_none() {
        toml.report(WrongTimeout { seconds, place: toml.span(entry) });
    }
    valid.map(Duration::from_secs)
}
