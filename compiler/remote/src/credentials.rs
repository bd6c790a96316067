//! Headers that authenticate calls: from a file, or from a credential helper by Bazel's protocol.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::error::Error;

/// The source of headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// No headers.
    #[default]
    None,
    /// A file with lines `name: value`; ignores empty lines and `#` comments.
    HeadersFile(PathBuf),
    /// A program, called as `PROGRAM get` with `{"uri": ...}` as its input.
    Helper(PathBuf),
}

/// Bytes of the file or of the output.
const MAX_INPUT: u64 = 64 << 10;
/// A helper may ask another server.
const HELPER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct Headers {
    credentials: Credentials,
    uri: String,
    current: Arc<RwLock<Vec<(AsciiMetadataKey, AsciiMetadataValue)>>>,
    /// When to call the helper again, or its failure; `None` before the first call.
    expiry: Arc<Mutex<Option<Result<SystemTime, Error>>>>,
}

/// Without values.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Headers").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

impl Headers {
    /// Reads the file of headers; a helper is called by [`Headers::refresh`].
    pub(crate) fn new(credentials: Credentials, uri: String) -> Result<Headers, Error> {
        let current = match &credentials {
            Credentials::HeadersFile(path) => {
                let error = |reason| Error::File { role: "the file of headers", path: path.clone(), reason };
                let text = read_text(path).map_err(error)?;
                parse_lines(&text).map_err(error)?
            }
            Credentials::None | Credentials::Helper(_) => Vec::new(),
        };
        let current = Arc::new(RwLock::new(current));
        Ok(Headers { credentials, uri, current, expiry: Arc::default() })
    }

    /// Calls the helper if its headers are missing or expired.
    pub(crate) fn refresh(&self) -> Result<(), Error> {
        let Credentials::Helper(program) = &self.credentials else { return Ok(()) };
        let mut expiry = self.expiry.lock().unwrap_or_else(PoisonError::into_inner);
        match &*expiry {
            Some(Ok(expiry)) if SystemTime::now() < *expiry => return Ok(()),
            // Waiting threads do not call the helper again.
            Some(Err(error)) => return Err(error.clone()),
            _ => {}
        }
        let found = self.call(program);
        *expiry = Some(found.clone());
        found.map(|_| ())
    }

    /// Returns when the headers expire.
    fn call(&self, program: &Path) -> Result<SystemTime, Error> {
        let error = |reason| Error::Helper { program: program.to_owned(), reason };
        let answer = call_helper(program, &self.uri).map_err(error)?;
        let far = SystemTime::now() + Duration::from_secs(365 * 24 * 3600);
        let expiry = match answer.expires.as_deref().map(prost_types::Timestamp::from_str) {
            None => far,
            Some(time) => {
                let time = time.ok().and_then(|time| SystemTime::try_from(time).ok());
                time.ok_or_else(|| error("printed an invalid time in `expires`".to_owned()))?
            }
        };
        let named =
            answer.headers.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        let headers = named.map(|(name, value)| header(name, value)).collect::<Result<_, _>>();
        let headers = headers.map_err(|reason| error(format!("printed an invalid header: {reason}")))?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = headers;
        Ok(expiry)
    }
}

impl Interceptor for Headers {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let headers = self.current.read().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in headers.iter() {
            request.metadata_mut().append(name.clone(), value.clone());
        }
        Ok(request)
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    // Opening a pipe waits for a writer.
    let facts = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(MAX_INPUT + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_INPUT { Err(format!("it exceeds {MAX_INPUT} bytes")) } else { Ok(text) }
}

fn parse_lines(text: &str) -> Result<Vec<(AsciiMetadataKey, AsciiMetadataValue)>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| {
            let parts = line.split_once(':').ok_or_else(|| "expected `name: value`".to_owned());
            let parsed = parts.and_then(|(name, value)| header(name.trim(), value.trim()));
            parsed.map_err(|reason| format!("line {number}: {reason}"))
        })
        .collect()
}

/// The error never contains the value.
fn header(name: &str, value: &str) -> Result<(AsciiMetadataKey, AsciiMetadataValue), String> {
    let key = AsciiMetadataKey::from_str(&name.to_ascii_lowercase());
    let key = key.map_err(|_| "a header's name is invalid".to_owned())?;
    let mut parsed = AsciiMetadataValue::from_str(value)
        .map_err(|_| format!("the value of `{key}` has a character that a header cannot have"))?;
    parsed.set_sensitive(true);
    Ok((key, parsed))
}

#[derive(Serialize)]
struct HelperRequest<'a> {
    uri: &'a str,
}

#[derive(Deserialize)]
struct HelperAnswer {
    #[serde(default)]
    headers: BTreeMap<String, Vec<String>>,
    expires: Option<String>,
}

fn call_helper(program: &Path, uri: &str) -> Result<HelperAnswer, String> {
    let mut command = Command::new(program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let output = exchange(&mut child, uri);
    if output.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let output = output?;
    if !status.success() {
        return Err(format!("failed: {status}"));
    }
    // The parser's message could quote a secret.
    serde_json::from_slice(&output).map_err(|error| {
        format!("printed an invalid answer (line {}, column {})", error.line(), error.column())
    })
}

/// A helper that does not close its output in time fails.
fn exchange(child: &mut Child, uri: &str) -> Result<Vec<u8>, String> {
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (mut input, output) = pipes.ok_or_else(|| "has no pipes".to_owned())?;
    let request = serde_json::to_vec(&HelperRequest { uri }).map_err(|error| error.to_string())?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::Builder::new().name("credential helper".to_owned()).spawn(move || {
        // A helper may ignore its input.
        let _ = input.write_all(&request);
        drop(input);
        let mut bytes = Vec::new();
        let read = output.take(MAX_INPUT + 1).read_to_end(&mut bytes);
        // The receiver may have given up.
        let _ = sender.send(read.map(|_| bytes));
    });
    reader.map_err(|error| format!("cannot be read: {error}"))?;
    let end = Instant::now() + HELPER_TIMEOUT;
    let late = || format!("did not finish in {} s", HELPER_TIMEOUT.as_secs());
    let bytes = receiver.recv_timeout(HELPER_TIMEOUT).map_err(|_| late())?;
    let bytes = bytes.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(format!("printed more than {MAX_INPUT} bytes"));
    }
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if Instant::now() > end {
            return Err(late());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SECRET: &str = "s3cret";

    fn headers(credentials: Credentials) -> Result<Headers, Error> {
        let headers = Headers::new(credentials, "https://cache.example".to_owned())?;
        headers.refresh()?;
        Ok(headers)
    }

    fn sent(headers: &mut Headers) -> Vec<(String, String)> {
        let request = headers.call(Request::new(())).unwrap();
        assert!(!format!("{request:?} {headers:?}").contains(SECRET));
        let entries = request.metadata().iter().filter_map(|entry| match entry {
            tonic::metadata::KeyAndValueRef::Ascii(name, value) => {
                Some((name.to_string(), value.to_str().unwrap().to_owned()))
            }
            tonic::metadata::KeyAndValueRef::Binary(..) => None,
        });
        entries.collect()
    }

    fn helper(folder: &Path, body: &str) -> PathBuf {
        let path = folder.join("helper");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn headers_are_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        std::fs::write(&path, format!("# CI\n\nAuthorization: Bearer {SECRET}\nx-b: 1:2\n")).unwrap();
        let mut found = headers(Credentials::HeadersFile(path.clone())).unwrap();
        let expected = [("authorization", "Bearer s3cret"), ("x-b", "1:2")];
        assert_eq!(sent(&mut found), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for (text, reason) in [
            (SECRET.to_owned(), "line 1: expected `name: value`"),
            (format!("a b: {SECRET}"), "line 1: a header's name is invalid"),
            (
                format!("\nx: \u{1}{SECRET}"),
                "line 2: the value of `x` has a character that a header cannot have",
            ),
            ("x".repeat(70_000), "it exceeds 65536 bytes"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = headers(Credentials::HeadersFile(path.clone())).unwrap_err();
            let expected = format!("cannot use `{}` as the file of headers: {reason}", path.display());
            assert_eq!(error.to_string(), expected);
        }
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in ["/dev/zero".into(), pipe] {
            let error = headers(Credentials::HeadersFile(path)).unwrap_err();
            assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
        }
    }

    #[test]
    fn a_helper_that_fails_is_called_once() {
        let folder = tempfile::tempdir().unwrap();
        let calls = folder.path().join("calls");
        let program = helper(folder.path(), &format!("echo >> {}; sleep 0.2; exit 3", calls.display()));
        let uri = "https://cache.example".to_owned();
        let headers = Headers::new(Credentials::Helper(program), uri).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert!(headers.refresh().is_err()));
            }
        });
        assert_eq!(std::fs::read_to_string(&calls).unwrap(), "\n");
    }

    #[test]
    fn a_helper_is_called_again_after_its_headers_expire() {
        let folder = tempfile::tempdir().unwrap();
        let calls = folder.path().join("calls");
        let body = |expires: &str| {
            format!(
                "test \"$1\" = get && cat >> {0} && echo >> {0} && echo '{{\"headers\": {{\"Authorization\": [\"Bearer {SECRET}\"]}}{expires}}}'",
                calls.display()
            )
        };
        for (expires, count) in [
            ("", 1),
            (r#", "expires": "2999-01-01T00:00:00Z""#, 1),
            (r#", "expires": "2001-01-01T00:00:00+01:00""#, 2),
        ] {
            let _ = std::fs::remove_file(&calls);
            let program = helper(folder.path(), &body(expires));
            let mut found = headers(Credentials::Helper(program)).unwrap();
            found.refresh().unwrap();
            assert_eq!(sent(&mut found), [("authorization".to_owned(), "Bearer s3cret".to_owned())]);
            let expected = "{\"uri\":\"https://cache.example\"}\n".repeat(count);
            assert_eq!(std::fs::read_to_string(&calls).unwrap(), expected);
        }
    }

    #[test]
    fn failures_of_helpers_do_not_print_their_output() {
        let folder = tempfile::tempdir().unwrap();
        for (body, reason) in [
            (format!("echo {SECRET}; exit 3"), "failed: exit status: 3"),
            (format!("echo {SECRET}"), "printed an invalid answer (line 1, column 1)"),
            (
                format!("echo '{{\"headers\": {{\"a\": [\"\\u0001{SECRET}\"]}}}}'"),
                "printed an invalid header: the value of `a` has a character that a header cannot have",
            ),
            (format!("echo '{{\"expires\": \"{SECRET}\"}}'"), "printed an invalid time in `expires`"),
            ("cat /dev/zero".to_owned(), "printed more than 65536 bytes"),
        ] {
            let program = helper(folder.path(), &body);
            let error = headers(Credentials::Helper(program.clone())).unwrap_err();
            assert_eq!(error.to_string(), format!("the credential helper `{}` {reason}", program.display()));
        }
        let error = headers(Credentials::Helper("/no/such/helper".into())).unwrap_err();
        assert!(error.to_string().starts_with("the credential helper `/no/such/helper` cannot be started: "));
    }
}
