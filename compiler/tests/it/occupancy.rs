//! Compares occupancy with the toolkit's `cuda_occupancy.h`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use cubinder_model::Target;
use cubinder_node::eval::occupancy::{Limiter, Multiprocessor, Needs, WARP, occupancy};
use cubinder_skip::skip;

use crate::support::{self};

/// Reads our multiprocessor figures; other limits, granularities and arithmetic are the header's.
const ORACLE: &str = r#"
#include <stdio.h>
#include "cuda_occupancy.h"

int main()
{
    long long major, minor, threads, shared, optin, reserved, block, registers, fixed, dynamic;
    while (scanf("%lld %lld %lld %lld %lld %lld %lld %lld %lld %lld", &major, &minor, &threads, &shared, &optin, &reserved,
                 &block, &registers, &fixed, &dynamic) == 10) {
        cudaOccDeviceProp device;
        device.computeMajor = (int)major;
        device.computeMinor = (int)minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = (int)threads;
        device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = shared;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = optin;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = (int)registers;
        kernel.sharedSizeBytes = fixed;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = dynamic;
        kernel.numBlockBarriers = 1;
        cudaOccDeviceState state;
        cudaOccResult result;
        cudaOccError error =
            cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, (int)block, dynamic);
        printf("%d %d %u\n", (int)error, result.activeBlocksPerMultiprocessor, result.limitingFactors & 15u);
    }
    return 0;
}
"#;

const ARCHS: [&str; 11] =
    ["sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"];

fn cases() -> Vec<(Multiprocessor, Target, Needs, u64)> {
    let mut cases = Vec::new();
    for name in ARCHS {
        let target: Target = name.parse().unwrap();
        let multiprocessor = Multiprocessor::for_arch(target.arch).unwrap();
        let most = u64::from(multiprocessor.block_shared_bytes);
        for threads in [1, 32, 33, 96, 128, 192, 256, 384, 500, 512, 768, 1023, 1024] {
            for registers in [0, 1, 8, 16, 24, 32, 40, 48, 63, 64, 65, 80, 96, 127, 128, 168, 200, 254, 255] {
                for shared in
                    [0, 1, 127, 128, 1024, 3000, 16 << 10, 48 << 10, 49 << 10, most - 1, most, most + 1]
                {
                    for fixed in [0, 4096.min(shared)] {
                        cases.push((
                            multiprocessor,
                            target,
                            Needs { threads, registers, shared_bytes: shared },
                            fixed,
                        ));
                    }
                }
            }
        }
    }
    cases
}

fn factors(limited_by: &[Limiter]) -> u32 {
    let bit = |limiter: &Limiter| match limiter {
        Limiter::Threads => 1,
        Limiter::Registers => 2,
        Limiter::SharedMemory => 4,
        Limiter::Blocks => 8,
    };
    limited_by.iter().map(bit).sum()
}

#[test]
fn occupancy_is_what_nvidia_computes() {
    let Some(toolkit) = support::toolkit() else { return };
    let Some(include) = toolkit.include.iter().find(|folder| folder.join("cuda_occupancy.h").is_file())
    else {
        return skip("the CUDA headers at hand have no `cuda_occupancy.h`");
    };
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "g++".into());
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("oracle.cpp"), folder.path().join("oracle"));
    std::fs::write(&source, ORACLE).unwrap();
    let built = Command::new(&compiler).arg("-I").arg(include).arg(&source).arg("-o").arg(&program).output();
    let Ok(built) = built else { return skip("no C++ compiler; install g++, or set `CXX`") };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let cases = cases();
    let mut input = String::new();
    for (sm, Target { arch, .. }, needs, fixed) in &cases {
        let _ = writeln!(
            input,
            "{} {} {} {} {} {} {} {} {} {}",
            arch.major,
            arch.minor,
            sm.threads,
            sm.shared_bytes,
            sm.block_shared_bytes,
            sm.reserved_bytes,
            needs.threads,
            needs.registers,
            fixed,
            needs.shared_bytes - fixed
        );
    }
    let mut oracle = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = oracle.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = oracle.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), cases.len());
    for (answer, (sm, target, needs, fixed)) in answers.lines().zip(&cases) {
        let found = occupancy(sm, needs);
        let ours = format!("0 {} {}", found.blocks, factors(&found.limited_by));
        assert_eq!(ours, answer, "{target} {needs:?}, {fixed} bytes of it static");
        assert_eq!(found.most_warps, sm.threads / WARP);
    }
    println!("{} cases", cases.len());
}
