use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;

use super::Settings;
use super::tests::compile_unit;
use crate::cubin::{Cluster, CubinError, Dynamic, LaunchRules, kernels, read, read_ptx};
use crate::test_support::{nvrtc, show, unit};
use cubinder_model::{KernelFacts, Target, TargetKind};

const TEXT: &str = "
__device__ __noinline__ float work(float* x, int n) {
    float a[64];
    for (int i = 0; i < n; i++) a[(i * 7) & 63] = x[i];
    return a[n & 63];
}
template <int V> __global__ void __launch_bounds__(128, 2) first(float* x, int n, double d) { x[0] = work(x, n) + d; }
__global__ void none() {}
extern \"C\" __global__ void plain(char c, short s, long long* l, int q) {
    __shared__ int st[100];
    st[threadIdx.x] = c;
    __syncthreads();
    l[0] = st[q & 63];
}
";

fn launch_rules(target: Target, bytes: &[u8], symbol: &str) -> Result<LaunchRules, CubinError> {
    Ok(kernels(target, bytes)?.1.remove(symbol).unwrap_or_default())
}

fn compiled(test: &str, target: &str) -> Option<Vec<u8>> {
    compiled_text(test, target, TEXT, "first<3>")
}

fn compiled_text(test: &str, target: &str, text: &str, kernel: &str) -> Option<Vec<u8>> {
    let (toolkit, nvrtc) = nvrtc(test)?;
    let unit = unit(Path::new("."), text, kernel, &[]);
    let raw = compile_unit(nvrtc, &unit, target.parse().unwrap(), &Settings::default(), &toolkit.include)
        .unwrap_or_else(|errors| panic!("{}", show(&errors)));
    Some(raw.bytes)
}

fn sample(test: &str) -> Option<&'static [u8]> {
    static SAMPLE: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    SAMPLE.get_or_init(|| compiled(test, "sm_90")).as_deref()
}

#[test]
fn kernels_are_read_for_every_architecture() {
    for (target, arch) in [
        ("sm_75", 75),
        ("sm_80", 80),
        ("sm_89", 89),
        ("sm_90", 90),
        ("sm_90a", 90),
        ("sm_100", 100),
        ("sm_120", 120),
    ] {
        let Some(bytes) = compiled("kernels_are_read_for_every_architecture", target) else { return };
        assert!(matches!(bytes[8], 7 | 8), "{target}");
        let facts = read(&bytes).unwrap();
        assert_eq!(facts.arch, arch);
        let [none, first, plain] = facts.kernels.as_slice() else { panic!("{facts:?}") };
        assert_eq!((first.symbol.as_str(), none.symbol.as_str()), ("_Z5firstILi3EEvPfid", "_Z4nonev"));
        let params = |kernel: &KernelFacts| -> Vec<(u32, u32)> {
            kernel.params.iter().map(|param| (param.offset, param.size)).collect()
        };
        assert_eq!(params(first), [(0, 8), (8, 4), (16, 8)]);
        assert_eq!(params(plain), [(0, 1), (2, 2), (8, 8), (16, 4)]);
        assert_eq!(params(none), []);
        assert_eq!((first.max_threads, none.max_threads), (Some(128), None));
        assert_eq!((plain.shared_bytes, none.shared_bytes), (Some(400), Some(0)), "{target}");
        assert!(first.local_bytes.is_some_and(|bytes| bytes >= 256), "{first:?}");
        assert_eq!(none.local_bytes, Some(0));
        assert!(
            first.registers.is_some_and(|count| count >= 16) && none.registers.is_some_and(|count| count > 0)
        );
    }
}

#[test]
fn ptx_and_machine_code_agree_on_parameters() {
    let test = "ptx_and_machine_code_agree_on_parameters";
    let (Some(cubin), Some(ptx)) = (compiled(test, "sm_89"), compiled(test, "compute_89")) else { return };
    let ptx = read_ptx(&ptx).unwrap();
    assert_eq!(ptx.target, "sm_89");
    for (a, b) in read(&cubin).unwrap().kernels.iter().zip(&ptx.kernels) {
        assert_eq!((&a.symbol, &a.params, a.max_threads), (&b.symbol, &b.params, b.max_threads));
    }
}

#[test]
fn more_than_4_kib_of_parameters_are_read() {
    let test = "more_than_4_kib_of_parameters_are_read";
    for count in [1_u32, 1018, 1019, 1100, 8186] {
        let text = format!(
            "struct A {{ int d[{count}]; }};\n\
             __global__ void k(const float* x, float* y, A n, short q) {{ y[0] = x[0] + n.d[threadIdx.x] + q; }}\n"
        );
        for target in ["sm_75", "sm_89", "sm_90", "sm_100", "sm_120", "compute_89"] {
            let Some(bytes) = compiled_text(test, target, &text, "k") else { return };
            let found = kernels(target.parse().unwrap(), &bytes).unwrap().0;
            let params: Vec<(u32, u32)> =
                found[0].params.iter().map(|param| (param.offset, param.size)).collect();
            let size = 4 * count;
            assert_eq!(params, [(0, 8), (8, 8), (16, size), (16 + size, 2)], "{target}");
        }
    }
}

#[test]
fn what_a_kernel_demands_of_its_launch_is_read() {
    let test = "what_a_kernel_demands_of_its_launch_is_read";
    for (attribute, block, cluster, most) in [
        ("", None, None, None),
        ("__launch_bounds__(128, 2, 4)", None, None, Some(4)),
        ("__block_size__((128, 1, 1))", Some([128, 1, 1]), None, None),
        ("__block_size__((8, 4, 2), (2, 1, 1))", Some([8, 4, 2]), Some(Cluster::Of([2, 1, 1])), None),
        ("__cluster_dims__(2, 1, 1)", None, Some(Cluster::Of([2, 1, 1])), None),
        ("__cluster_dims__(1, 1, 1)", None, None, None),
        ("__cluster_dims__()", None, Some(Cluster::AtLaunch), None),
    ] {
        let text = format!("extern \"C\" __global__ void {attribute} k(float* y) {{ y[0] = 1; }}\n");
        for target in ["sm_90", "sm_100", "sm_120", "compute_90"] {
            let Some(bytes) = compiled_text(test, target, &text, "k") else { return };
            let found = launch_rules(target.parse().unwrap(), &bytes, "k").unwrap();
            assert_eq!(
                (found.block, found.cluster, found.max_cluster),
                (block, cluster, most),
                "{attribute} {target}"
            );
        }
    }
}

#[test]
fn shared_memory_of_the_launch_is_told_from_that_of_the_kernel() {
    let test = "shared_memory_of_the_launch_is_told_from_that_of_the_kernel";
    let fixed =
        "__shared__ float tile[100]; tile[threadIdx.x] = y[1]; __syncthreads(); y[0] += tile[y[2] > 0];";
    let launched =
        "extern __shared__ float rest[]; rest[threadIdx.x] = y[1]; __syncthreads(); y[0] += rest[y[2] > 0];";
    let both = format!("{{ {fixed} }} {{ {launched} }}");
    for (body, of_cubins, of_ptx, bytes) in [
        ("", Dynamic::No, Dynamic::No, 0),
        (launched, Dynamic::Yes, Dynamic::Yes, 0),
        (fixed, Dynamic::NotTold, Dynamic::No, 400),
        (both.as_str(), Dynamic::NotTold, Dynamic::Yes, 400),
    ] {
        let text = format!("extern \"C\" __global__ void k(float* y) {{ {body} }}\n");
        for target in ["sm_80", "sm_90", "sm_100", "compute_90"] {
            let Some(bytes_of) = compiled_text(test, target, &text, "k") else { return };
            let target: Target = target.parse().unwrap();
            let (facts, rules) = (
                kernels(target, &bytes_of).unwrap().0.remove(0),
                launch_rules(target, &bytes_of, "k").unwrap(),
            );
            let (expected, told) = match target.kind {
                TargetKind::Cubin => ((of_cubins, Some(bytes)), facts.shared_bytes),
                TargetKind::Ptx | TargetKind::Native => ((of_ptx, Some(bytes)), Some(rules.shared_bytes)),
            };
            assert_eq!((rules.dynamic_shared, told), expected, "{body} {target}");
        }
    }
    let text = format!(
        "extern \"C\" __global__ void other(float* y) {{ {launched} }}\nextern \"C\" __global__ void k(float* y) {{}}\n"
    );
    for target in ["sm_80", "sm_90"] {
        let Some(bytes) = compiled_text(test, target, &text, "k") else { return };
        let rules = read(&bytes).unwrap().rules;
        assert_eq!(rules.values().map(|own| own.dynamic_shared).collect::<Vec<_>>(), [Dynamic::NotTold; 2]);
    }
}

/// ABI version 7 (NVRTC 12.9) differs only in the architecture's position in the flags.
#[test]
fn the_older_abi_is_read() {
    let Some(cubin) = sample("the_older_abi_is_read") else { return };
    let mut old = cubin.to_vec();
    old[8] = 7;
    old[48..52].copy_from_slice(&0x005a_055a_u32.to_le_bytes());
    let facts = read(&old).unwrap();
    assert_eq!(facts.arch, 90);
    assert_eq!(facts.kernels, read(cubin).unwrap().kernels);
}

#[test]
fn every_truncation_and_every_flipped_byte_is_survived() {
    let Some(cubin) = sample("every_truncation_and_every_flipped_byte_is_survived") else { return };
    for at in 0..cubin.len() {
        let _ = read(&cubin[..at]);
        let mut damaged = cubin.to_vec();
        damaged[at] ^= 0xff;
        let _ = read(&damaged);
    }
}

#[test]
fn an_abi_that_is_not_known_is_refused() {
    let Some(cubin) = sample("an_abi_that_is_not_known_is_refused") else { return };
    let mut old = cubin.to_vec();
    old[8] = 6;
    let error = read(&old).unwrap_err().to_string();
    assert_eq!(error, "unknown cubin ABI version 6: expected 7 or 8");
}

proptest! {
    #[test]
    fn any_damage_is_survived(edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24)) {
        let Some(cubin) = sample("any_damage_is_survived") else { return Ok(()) };
        let mut damaged = cubin.to_vec();
        for (at, byte) in edits {
            damaged[at.index(cubin.len())] = byte;
        }
        let _ = (read(&damaged), launch_rules("sm_90".parse().unwrap(), &damaged, "plain"));
    }
}
