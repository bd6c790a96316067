use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use super::tests::{action, outputs_with, settings};
use super::*;
use crate::connection::Tls;
use crate::fake_server::{FakeServer, Options};

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: tempfile::TempDir,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key).unwrap().pem();
        let authority =
            Authority { issuer: Issuer::new(parameters, key), folder: tempfile::tempdir().unwrap(), pem };
        std::fs::write(authority.path("ca.pem"), &authority.pem).unwrap();
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn client(&self) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.sign("client");
        let paths = (self.path("client.pem"), self.path("client-key.pem"));
        std::fs::write(&paths.0, certificate).unwrap();
        std::fs::write(&paths.1, key).unwrap();
        paths
    }
}

fn failure(authority: &str, tls: Tls) -> Option<String> {
    let settings = Settings { tls: Some(tls), ..settings(authority) };
    let remote = Remote::new(settings);
    let outputs = outputs_with(10);
    remote.store(&action(), &outputs);
    let found = remote.look_up(&action());
    let failure = remote.take_failure().map(|(error, _)| error.to_string());
    assert!(found == failure.is_none().then_some(outputs));
    failure
}

#[test]
fn certificates_are_checked_on_both_sides() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.sign("127.0.0.1");
    let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
    let tls = tls.client_ca_root(Certificate::from_pem(&authority.pem));
    let server = FakeServer::start_with(Options::default(), Some(tls));
    let ca = || Some(authority.path("ca.pem"));
    let identity = || Some(authority.client());
    assert_eq!(failure(&server.authority, Tls { ca: ca(), identity: identity() }), None);
    for (tls, reason) in [
        (Tls { ca: Some(other.path("ca.pem")), identity: identity() }, "invalid peer certificate"),
        (Tls { ca: None, identity: identity() }, "invalid peer certificate"),
        (Tls { ca: ca(), identity: None }, "GetCapabilities failed"),
        (Tls { ca: ca(), identity: Some(other.client()) }, "GetCapabilities failed"),
    ] {
        let found = failure(&server.authority, tls).unwrap();
        assert!(found.contains(reason), "{found}");
    }
    let plain = Remote::new(settings(&server.authority));
    assert_eq!(plain.look_up(&action()), None);
    assert!(plain.take_failure().is_some());
}

#[test]
fn invalid_files_are_rejected_before_a_connection() {
    let authority = Authority::new();
    let (certificate, key) = authority.client();
    std::fs::write(authority.path("text"), "no certificate").unwrap();
    let error = |tls: Tls| {
        let remote = Remote::new(Settings { tls: Some(tls), ..settings("127.0.0.1:1") });
        assert_eq!(remote.look_up(&action()), None);
        let (error, is_off) = remote.take_failure().unwrap();
        assert!(is_off);
        error
    };
    let reason = |path: &Path| error(Tls { ca: Some(path.to_owned()), identity: None }).to_string();
    assert!(reason(&authority.path("none")).contains("as the CA certificate: No such file"));
    assert!(reason(&authority.path("text")).ends_with("it has no PEM block"));
    assert!(reason(Path::new("/dev/zero")).ends_with("it is not a file of at most 4194304 bytes"));
    let swapped = error(Tls { ca: None, identity: Some((key.clone(), certificate)) });
    assert!(matches!(swapped, Error::Connection(_)), "{swapped}");
    let secret = std::fs::read_to_string(&key).unwrap();
    assert!(!format!("{swapped:?}").contains(secret.lines().nth(1).unwrap()));
}
