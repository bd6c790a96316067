use proptest::prelude::*;

use super::*;
use crate::code::{Arch, ArchSuffix, TargetKind};
use crate::container::tests::node;
use crate::model::TunedDevice;

fn file(path: &str) -> File {
    File { path: path.to_owned(), digest: Digest::compute(path.as_bytes()) }
}

fn source(path: &str, read: &[&str]) -> Origin {
    let read = Read::Files(read.iter().map(|path| file(path)).collect());
    let headers = Headers::from_files(vec![file("cuda_fp16.h"), file("nv/target")]);
    let options = vec!["--use_fast_math".to_owned()];
    Origin::Source { file: file(path), read, headers, is_open: false, options }
}

fn imported() -> Origin {
    Origin::Imported { file: file("code/k.cubin"), made_by: "triton 3.4".to_owned() }
}

fn code(number: u8) -> CodeObject {
    let arch = Arch { major: 9, minor: 0, suffix: ArchSuffix::None };
    let bytes = vec![number; 8];
    let target = Target { kind: TargetKind::Cubin, arch };
    CodeObject { target, digest: Digest::compute(&bytes), kernels: Vec::new(), bytes: bytes.into() }
}

fn provenance(codes: &[&[Origin]]) -> Provenance {
    let compiler = Compiler { name: "NVRTC 13.0".to_owned(), identity: Digest::compute(b"nvrtc") };
    let mut made = Provenance {
        cubinder: "0.1.0".to_owned(),
        compiler: Some(compiler),
        manifests: vec![file("one.toml"), file("two.toml")],
        tuning: vec![file("tuning/h200.toml")],
        ..Provenance::default()
    };
    codes.iter().for_each(|origins| made.add(origins.iter().cloned()));
    made
}

fn record() -> Provenance {
    let (a, b) = (source("a.cu", &["a.cuh", "b.cuh"]), source("b.cu", &[]));
    provenance(&[std::slice::from_ref(&a), &[b.clone(), a.clone()], &[imported()], std::slice::from_ref(&b)])
}

fn container() -> Digest {
    Digest::compute(b"container")
}

fn seal(bytes: &mut [u8]) {
    let digest = digest_of(bytes).0;
    bytes.iter_mut().skip(DIGEST.start).zip(digest).for_each(|(to, from)| *to = from);
}

#[test]
fn what_is_written_is_read() {
    for record in [record(), Provenance::default()] {
        let bytes = write(&record, container());
        assert_eq!((check(&bytes, container()), check(&[], container())), (Ok(()), Ok(())));
        assert_eq!(find(&bytes, container()), Ok(Some(Section::Provenance(record))));
    }
    assert_eq!(find(b"something else", container()), Ok(None));
}

#[test]
fn a_changed_bit_is_damage_and_no_reader_of_containers_takes_it_for_one() {
    let bytes = write(&record(), container());
    for index in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[index] ^= 1 << (index % 8);
        match find(&changed, container()) {
            Ok(None) => assert!(index < 8 || (12..16).contains(&index), "byte {index}"),
            found => assert!(found.is_err(), "byte {index}: {found:?}"),
        }
        assert!(check(&changed, container()).is_err(), "byte {index}");
        assert!(index == 0 || check(&bytes[..index], container()).is_err(), "cut to {index}");
    }
    assert_eq!(crate::container::scan(&bytes).count(), 0);
}

#[test]
fn a_record_belongs_to_one_container() {
    let error = find(&write(&record(), Digest::compute(b"other")), container()).unwrap_err();
    assert_eq!(error, "it belongs to another bundle or node");
}

#[test]
fn what_is_not_known_is_passed_over() {
    let other = |at: usize, to: u8, content: &[u8]| {
        let mut bytes = write(&Provenance::default(), container());
        bytes.truncate(HEADER_BYTES);
        bytes.extend(content);
        bytes[at] = to;
        let length = bytes.len() as u32;
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        seal(&mut bytes);
        bytes
    };
    let unknown = other(8, 7, b"whatever it is");
    assert_eq!(find(&unknown, container()), Ok(Some(Section::Unknown { kind: 7, edition: EDITION })));
    let both = [unknown, write(&record(), container())].concat();
    assert_eq!(check(&both, container()), Ok(()));
    assert_eq!(find(&both, container()), Ok(Some(Section::Provenance(record()))));
    let newer = other(10, 9, b"");
    assert_eq!(find(&newer, container()), Ok(Some(Section::Unknown { kind: 1, edition: 9 })));
    for more in [&both[..both.len() - 1], &[both.as_slice(), b"\0"].concat()] {
        assert!(check(more, container()).is_err());
    }
}

#[test]
fn some_of_the_code_has_the_record_that_it_would_have_alone() {
    let all: Vec<CodeObject> = (0..4).map(code).collect();
    let (a, b) = (source("a.cu", &["a.cuh", "b.cuh"]), source("b.cu", &[]));
    let some = [all[1].clone(), all[2].clone()];
    assert_eq!(record().retain_code(&all, &some), provenance(&[&[b, a], &[imported()]]));
}

#[test]
fn a_node_has_what_its_code_was_made_from() {
    let all: Vec<CodeObject> = (0..4).map(code).collect();
    let of_code =
        |codes: &[usize]| Node { code: codes.iter().map(|it| all[*it].clone()).collect(), ..node() };
    let whole = |sections: &[u8], of: &[u8], all: &[CodeObject]| {
        ContainerRecord::find(sections, Digest::compute(of), all)
    };
    let found = whole(&write(&record(), container()), b"container", &all).unwrap();
    let made = found.of_node(1, &of_code(&[0, 2]));
    assert_eq!(made.manifests, [file("two.toml")]);
    let expected = Read::Files(vec![file("a.cuh"), file("b.cuh")]).together();
    let Origin::Source { read, headers, .. } = &made.origins[0] else { panic!("a.cu is text") };
    assert_eq!((headers.map(|it| it.count), Headers::from_files(Vec::new())), (Some(2), None));
    assert_eq!((read.clone(), made.code), (Read::Together(2, expected.1), vec![vec![0], vec![1]]));
    let made = found.of_node(0, &of_code(&[2]));
    assert_eq!((made.compiler, made.origins), (None, vec![imported()]));
    let node = of_code(&[0, 3]);
    let first = found.behind_node(0, &node, Digest::compute(b"node"));
    let again = whole(&first, b"node", &node.code).unwrap().behind_node(0, &node, Digest::compute(b"node"));
    assert!(!first.is_empty());
    assert_eq!(first, again);
    assert!(first.len() < 512, "{} bytes", first.len());
    assert!(whole(b"", b"container", &all).is_none());
    assert!(whole(&first, b"another node", &node.code).is_none());
}

#[test]
fn a_node_says_who_compiled_it_and_what_was_measured() {
    let all: Vec<CodeObject> = (0..4).map(code).collect();
    let mut node = Node { code: vec![all[3].clone()], ..node() };
    node.plugin.tuning.clear();
    let section = write(&record(), container());
    let whole = ContainerRecord::find(&section, container(), &all).unwrap();
    let made = whole.of_node(0, &node);
    assert_eq!((made.cubinder.as_str(), made.compiler), ("0.1.0", record().compiler));
    assert_eq!(made.origins, [source("b.cu", &[])], "the error states that nothing was read");
    assert_eq!(made.tuning, [], "nothing was measured of the plugin");
    node.plugin.tuning.push(TunedDevice {
        name: String::new(),
        capability: 90,
        sms: 132,
        points: Vec::new(),
    });
    assert_eq!(whole.of_node(0, &node).tuning, [file("tuning/h200.toml")]);
}

#[test]
fn what_no_writer_writes_is_refused() {
    let refused = |change: &dyn Fn(&mut Provenance)| {
        let mut record = record();
        change(&mut record);
        find(&write(&record, container()), container()).unwrap_err()
    };
    assert!(refused(&|it| it.cubinder.push('\x1b')).contains("a control character"));
    assert!(refused(&|it| it.manifests[0].path.push('\n')).contains("a control character"));
    assert!(
        refused(&|it| it.origins[2] = Origin::Imported { file: file("k"), made_by: "\0".to_owned() })
            .contains("control")
    );
    assert!(refused(&|it| it.code[0][0] = 9).contains("out of order"));
    assert!(refused(&|it| it.code.truncate(1)).contains("sources without code"));
    assert!(refused(&|it| it.code.clear()).contains("sources without code"));
    let mut long = write(&record(), container());
    long.push(0);
    let length = long.len() as u32;
    long[12..16].copy_from_slice(&length.to_le_bytes());
    seal(&mut long);
    assert!(find(&long, container()).unwrap_err().contains("not the canonical encoding"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200), cut in 0..300usize, at: prop::sample::Index, to: u8) {
        let _ = find(&body, container());
        let mut bytes = write(&record(), container());
        let model = HEADER_BYTES + at.index(bytes.len() - HEADER_BYTES);
        bytes[model] = to;
        bytes.truncate(bytes.len().saturating_sub(cut).max(HEADER_BYTES));
        for model in [&bytes[HEADER_BYTES..], &body] {
            let mut section = bytes[..HEADER_BYTES].to_vec();
            section.extend(model);
            let length = section.len() as u32;
            section[12..16].copy_from_slice(&length.to_le_bytes());
            seal(&mut section);
            if let Ok(Some(Section::Provenance(found))) = find(&section, container()) {
                prop_assert_eq!(write(&found, container()), section);
            }
        }
    }
}
