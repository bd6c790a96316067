//! BuildBox, a server of the Remote Execution API.

#![allow(unreachable_pub)]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cubinder_skip::skip;

/// A server process, stopped on drop.
pub struct Server {
    pub url: String,
    pub folder: tempfile::TempDir,
    process: Child,
}

impl Server {
    pub fn buildbox() -> Option<Server> {
        Server::start(&[])
    }

    /// Starts the server with two workers, which see this machine's C library and these folders, by their paths there.
    pub fn with_workers(folders: &[(&Path, &str)]) -> Option<Server> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&paths).any(|folder| folder.join("bwrap").is_file()) {
            skip("`bwrap` is not installed; BuildBox's workers need Debian's `bubblewrap`");
            return None;
        }
        let own = ["/usr", "/lib", "/lib64"].map(|path| (Path::new(path), path));
        let bind =
            |(path, target): &(&Path, &str)| format!("--runner-arg=--bind-mount={}:{target}", path.display());
        let runner = Path::new(&std::env::var_os("CUBINDER_TEST_BUILDBOX")?).join("buildbox-run");
        let mut options = vec![format!("--buildbox-run={}", runner.display()), "--jobs=2".to_owned()];
        options.extend(own.iter().chain(folders).map(bind));
        Server::start(&options)
    }

    fn start(options: &[String]) -> Option<Server> {
        let Some(folder) = std::env::var_os("CUBINDER_TEST_BUILDBOX").map(PathBuf::from) else {
            skip("`CUBINDER_TEST_BUILDBOX` is not set; `cargo xtask test` sets it");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let store = tempfile::tempdir().unwrap();
        let mut command = Command::new(folder.join("buildbox-casd"));
        command.arg(format!("--bind=127.0.0.1:{port}")).args(options).arg(store.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let mut server = Server { url: format!("grpc://127.0.0.1:{port}"), process, folder: store };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "the server does not answer");
            assert_eq!(server.process.try_wait().unwrap(), None, "the server has exited");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
