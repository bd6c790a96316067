use super::*;

fn installation(kind: Kind, version: &str) -> Installation {
    let route = Route::Program(kind.program().into());
    Installation { kind, route, version: crate::Version::parse(version), libraries: None }
}

fn request() -> Request {
    Request {
        model: "m.onnx".into(),
        plan: ".draft".into(),
        plugins: vec!["/a b/libp.so".into()],
        ..Request::default()
    }
}

#[test]
fn old_releases_reject_plugins_only() {
    for (kind, old, new) in [(Kind::Rtx, "1.6.1.120", "1.7.1.116"), (Kind::Full, "8.6.1", "10.0.1")] {
        let errors = request().check(&installation(kind, old)).unwrap_err();
        assert_eq!(errors[0].message, format!("{} {old} cannot build engines with plugins", kind.name()));
        assert_eq!(request().check(&installation(kind, new)), Ok(()));
        let without = Request { plugins: Vec::new(), ..request() };
        assert_eq!(without.check(&installation(kind, old)), Ok(()));
        assert_eq!(request().check(&installation(kind, "")), Ok(()), "an unknown release is tried");
    }
}

#[test]
fn options_of_the_other_product_are_rejected() {
    let both = Request {
        gpus: vec![ComputeCapability::from_number(89)],
        precisions: vec!["--fp16", "--fp8"],
        timing_cache: Some("times".into()),
        ..request()
    };
    let messages = |kind| -> Vec<String> {
        both.check(&installation(kind, "")).unwrap_err().into_iter().map(|error| error.message).collect()
    };
    let of = |option: &str, product: &str| format!("`{option}` is not supported by {product}");
    assert_eq!(messages(Kind::Full), [of("--gpu", "TensorRT")]);
    let rtx = ["--fp16", "--fp8", "--timing-cache"].map(|option| of(option, "TensorRT-RTX"));
    assert_eq!(messages(Kind::Rtx), rtx);
}

#[test]
fn commands_are_quoted_for_a_shell() {
    let client = Client::new().unwrap();
    let command = request().command(&installation(Kind::Full, ""), &client).unwrap();
    let text = for_shell(&command, Path::new(".draft"), Path::new("it's.plan"));
    assert_eq!(
        text,
        r"trtexec --onnx=m.onnx '--saveEngine=it'\''s.plan' '--dynamicPlugins=/a b/libp.so' --skipInference"
    );
}

#[test]
fn libraries_of_a_release_are_on_the_path_of_its_program() {
    let client = Client::new().unwrap();
    let mut full = installation(Kind::Full, "");
    full.libraries = Some("/opt/trt/lib".into());
    let command = request().command(&full, &client).unwrap();
    let path = command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH").unwrap().1.unwrap();
    assert_eq!(std::env::split_paths(path).next().unwrap(), Path::new("/opt/trt/lib"));
}
