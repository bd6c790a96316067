use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::diagnostic::{Colour, render};
use crate::manifest::keys::Presence;

fn errors(text: &str) -> String {
    match read(&Source::new("project/cubinder.toml", text)) {
        Ok(config) => panic!("expected errors, found {config:?}"),
        Err(diagnostics) => render(&diagnostics, Colour::Plain),
    }
}

#[test]
fn reads_every_key() {
    let text = r#"
[library]
name = "sample-ops"
manifests = ["a/*.toml", "b.toml"]
targets = ["sm_80", "sm_90a", "compute_80"]
include = ["include"]
options = ["--use_fast_math"]
output = "out"
"#;
    let config = read(&Source::new("project/cubinder.toml", text)).expect("a valid file");
    assert_eq!(config.library, "sample-ops");
    assert_eq!(config.folder, Path::new("project"));
    let names: Vec<String> = config.targets.iter().map(|target| target.value.to_string()).collect();
    assert_eq!(names, ["sm_80", "sm_90a", "compute_80"]);
    assert_eq!(config.include[0].value, Path::new("project/include"));
    assert_eq!(&text[config.include[0].range.clone()], "\"include\"");
    assert_eq!(config.options, ["--use_fast_math"]);
    assert_eq!(config.output, Path::new("project/out"));
}

const REMOTE_HEAD: &str = "[library]\nname = \"x\"\ntargets = [\"sm_89\"]\n[remote]\n";

#[test]
fn reads_the_shared_cache() {
    let keys = r#"
cache = "grpcs://cache.example:8980"
executor = "grpcs://farm.example:8980"
platform = { OSFamily = "linux" }
instance = "main"
mode = "read-write"
ca = "ca.pem"
client_certificate = "client.pem"
client_key = "/keys/client.pem"
credential_helper = "helper"
timeout = 30
"#;
    let remote = |keys: &str| {
        let config =
            read(&Source::new("project/cubinder.toml", format!("{REMOTE_HEAD}{keys}"))).expect("valid");
        config.remote.expect("the table")
    };
    let found = remote(keys);
    assert_eq!(found.cache.to_string(), "grpcs://cache.example:8980");
    assert_eq!(found.executor.map(|server| server.authority).as_deref(), Some("farm.example:8980"));
    assert_eq!(found.platform.get("OSFamily").map(String::as_str), Some("linux"));
    let identity = ("project/client.pem".into(), "/keys/client.pem".into());
    assert_eq!((found.ca, found.identity), (Some("project/ca.pem".into()), Some(identity)));
    assert_eq!((found.instance.as_str(), found.can_upload, found.timeout.as_secs()), ("main", true, 30));
    assert_eq!(found.credential_helper.as_deref(), Some(Path::new("helper")), "searched in PATH");
    let found = remote("cache = \"grpcs://[::1]:80\"\ncredential_helper = \"./helper\"\n");
    let expected = RemoteConfig::new("grpcs://[::1]:80".parse().expect("valid"));
    assert_eq!(found.credential_helper.as_deref(), Some(Path::new("project/./helper")));
    assert_eq!(RemoteConfig { credential_helper: None, span: None, ..found }, expected);
    let other = "grpc://127.0.0.1:1".parse::<Endpoint>().expect("valid");
    let error =
        remote(keys).with_servers(Some(other.clone()), None).expect_err("certificates need encryption");
    assert!(error.message.ends_with("cannot be used with `grpc://127.0.0.1:1`, which is not encrypted"));
    assert_eq!(expected.with_servers(Some(other.clone()), None).map(|remote| remote.cache), Ok(other));
}

#[test]
fn reports_every_mistake_about_the_shared_cache() {
    let all = r#"
cache = "grpc://cache.example:8980"
mode = "write"
ca = "ca.pem"
client_key = " "
client_certificate = "client.pem"
headers_file = "headers.txt"
credential_helper = "helper"
timeout = 0
url = "grpc://x:1"
"#;
    let mut texts: Vec<String> =
        vec![all.to_owned(), "cache = \"grpcs://x:1\"\nclient_key = \"k\"\n".to_owned()];
    let urls = [
        "x:1",
        "https://x:1",
        "grpc://x",
        "grpc://:1",
        "grpc://x:0",
        "grpc://x:1/y",
        "grpc://a:b@x:1",
        "grpc://x y:1",
    ];
    texts.extend(urls.map(|url| format!("cache = \"{url}\"\n")));
    texts.push("instance = \"a\"\n".to_owned());
    let more = "executor = \"grpc://x:1\"\nplatform = { OSFamily = 1 }\n";
    texts.push(format!("cache = \"grpcs://x:1\"\n{more}"));
    texts.push("cache = \"grpcs://x:1\"\nplatform = \"linux\"\n".to_owned());
    let messages = texts.iter().map(|text| errors(&format!("{REMOTE_HEAD}{text}")));
    assert_snapshot!(messages.collect::<Vec<_>>().join("\n"));
}

#[test]
fn reads_workers() {
    let keys = r#"
cache = "grpc://x:1"
platform = { OSFamily = "linux", gpu = "none" }
[remote.workers.h100]
platform = { gpu = "h100" }
environment = { LD_LIBRARY_PATH = "/usr/local/nvidia/lib64" }
[remote.workers.any]
"#;
    let config = read(&Source::new("cubinder.toml", format!("{REMOTE_HEAD}{keys}"))).expect("valid");
    let pools = config.remote.expect("the table").workers;
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let h100 = WorkerPool {
        name: "h100".to_owned(),
        platform: pairs(&[("OSFamily", "linux"), ("gpu", "h100")]),
        environment: pairs(&[("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")]),
    };
    let platform = pairs(&[("OSFamily", "linux"), ("gpu", "none")]);
    let any = WorkerPool { name: "any".to_owned(), platform, environment: pairs(&[]) };
    assert_eq!(pools, [h100, any]);
}

#[test]
fn the_example_of_workers_is_read() {
    let page = include_str!("../../../../docs/gpu-workers.md");
    let example = page.split("```toml\n").nth(1).expect("an example").split("```").next().unwrap_or_default();
    let text = format!("[library]\nname = \"x\"\ntargets = [\"sm_89\"]\n{example}");
    let remote = read(&Source::new("cubinder.toml", text)).expect("valid").remote.expect("the table");
    let names: Vec<&str> = remote.workers.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!((names, remote.executor.is_some()), (vec!["h100", "l4"], true));
}

#[test]
fn reports_every_mistake_about_workers() {
    let texts = [
        "[remote.workers]\nplatform = { gpu = \"h100\" }\n",
        "[remote.workers.rtx-4090]\nplatform = \"h100\"\n",
        "[remote.workers.a]\nenviroment = {}\n",
        "[remote.workers.a]\nenvironment = { \"A=B\" = \"1\", C = 1 }\n",
        "[[remote.workers]]\n",
    ];
    let text = |text: &str| errors(&format!("{REMOTE_HEAD}cache = \"grpc://x:1\"\n{text}"));
    assert_snapshot!(texts.map(text).join("\n"));
}

#[test]
fn has_defaults() {
    let text = "[library]\nname = \"x\"\ntargets = [\"sm_89\"]\n";
    let config = read(&Source::new("cubinder.toml", text)).expect("a valid file");
    assert_eq!(config.manifests[0].value, "manifests/*.toml");
    assert_eq!(config.output, Path::new("build"));
    assert!(config.include.is_empty() && config.options.is_empty());
}

#[test]
fn reports_every_mistake() {
    let text = r#"
targets = ["sm_80"]
librarry = 1
[library]
name = "a/b"
manifest = ["x.toml"]
manifests = ["***"]
targets = ["sm_80", "sm80", "sm_80"]
include = "include"
options = ["-arch=sm_80", "fast", "-G"]
output = 3
"#;
    assert_snapshot!(errors(text));
}

#[test]
fn says_what_is_missing() {
    assert_snapshot!(errors("[library]\n"));
    assert_snapshot!(errors(""));
}

#[test]
fn finds_manifests() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("with [brackets]");
    std::fs::create_dir_all(root.join("manifests/deep")).expect("folders");
    for name in ["b.toml", "a.toml", "c.txt"] {
        std::fs::write(root.join("manifests").join(name), "").expect("a file");
    }
    let text = "[library]\nname = \"x\"\ntargets = [\"sm_89\"]\nmanifests = [\"manifests/*.toml\", \"manifests/a.toml\"]\n";
    std::fs::write(root.join(FILE_NAME), text).expect("a file");
    let path = find(&root.join("manifests/deep")).expect("the file in a parent folder");
    assert_eq!(path, root.join(FILE_NAME));
    let config = load(&path).expect("a valid file");
    let paths = config.manifest_paths().expect("matching manifests");
    assert_eq!(paths, [root.join("manifests/a.toml"), root.join("manifests/b.toml")]);

    let missing = text.replace("manifests/a.toml", "nothing/*.toml");
    let config = read(&Source::new(root.join(FILE_NAME), missing)).expect("a valid file");
    let errors = config.manifest_paths().expect_err("nothing matches");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].message, "no manifest matches `nothing/*.toml`");
    assert!(find(Path::new("/")).is_err());
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    std::fs::write(&path, "\u{feff}[library]\nname = \"x\"\ntargets = [\"sm_89\"]\n").expect("a file");
    let config = load(&path).expect("a valid file");
    assert!(config.source.text.starts_with("[library]"));
    std::fs::write(&path, "\u{feff}name").expect("a file");
    let errors = load(&path).expect_err("an invalid file");
    assert_eq!(errors[0].primary.as_ref().expect("a place").span.range.end, 4);
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    std::fs::write(&path, b"a\xff").expect("a file");
    let message = &load(&path).expect_err("not UTF-8")[0].message;
    assert!(message.ends_with("is not UTF-8: invalid byte at 1"), "{message}");
    assert!(load(&folder.path().join("none")).expect_err("no file")[0].message.starts_with("cannot read"));
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        prop_assert!(read(&Source::new("cubinder.toml", text)).is_err());
    }
}

#[test]
fn examples_are_read_and_required_keys_required() {
    let page = include_str!("../../../../docs/cubinder-toml.md");
    let example = page.split("```toml\n").nth(1).expect("an example").split("```").next().unwrap_or_default();
    let whole = read(&Source::new("cubinder.toml", example)).expect("a valid example");
    assert_eq!((whole.library.as_str(), whole.targets.len()), ("sample", 3));
    for key in LIBRARY.keys {
        let line = format!("{} = ", key.name);
        assert!(example.contains(&format!("\n{line}")), "the example has {line}");
        let others = example.lines().filter(|other| !other.starts_with(&line));
        let without: String = others.map(|other| format!("{other}\n")).collect();
        let is_required = read(&Source::new("cubinder.toml", without.as_str())).is_err();
        assert_eq!(key.presence == Presence::Required, is_required, "{line}");
        let with = format!("{without}{line}{}\n", key.example);
        assert!(read(&Source::new("cubinder.toml", with)).is_ok(), "{line}");
    }
}
