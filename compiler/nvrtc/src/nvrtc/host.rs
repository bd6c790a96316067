//! Suggests device-side replacements of the host's C and C++ libraries: NVRTC's built-in functions, or libcu++ (CUDA
//! headers, `cuda/std/`). Tested with NVRTC 13.0 and the pinned headers. Must not read files.

use super::cause::Cause;

const REPLACED: [(&str, &str); 3] = [
    ("stdint.h inttypes.h cinttypes", "cuda/std/cstdint"),
    ("limits.h", "cuda/std/climits"),
    ("time.h", "cuda/std/ctime"),
];

/// Standard headers that libcu++ has under the same name.
const IN_CUDA_STD: &str = "array atomic barrier bit chrono climits cmath complex concepts cstdint ctime expected functional \
                           initializer_list iterator limits mdspan memory numeric optional ratio span tuple type_traits utility \
                           variant version";

/// Headers whose device functions are built in.
const BUILT_IN: [(&str, &str); 8] = [
    ("assert.h cassert", "`assert` is built in"),
    ("math.h", "functions such as `sqrtf` are built in; `INFINITY` and `NAN` are in `<cuda/std/cmath>`"),
    ("stdbool.h", "`bool` is built in"),
    ("stddef.h cstddef", "`size_t` and `ptrdiff_t` are built in"),
    ("stdio.h cstdio", "`printf` is built in"),
    ("stdlib.h cstdlib", "`malloc`, `free` and `abs` are built in"),
    ("string.h cstring", "`memcpy` and `memset` are built in"),
    ("float.h cfloat", "the limits of types are `cuda::std::numeric_limits<T>` in `<cuda/std/limits>`"),
];

const HOST_ONLY: &str = "algorithm cerrno ctype.h errno.h exception filesystem fstream iomanip iostream map mutex new random set \
                         sstream stdarg.h stdexcept string string_view thread unordered_map vector";

const NAMES: [(&str, &str); 6] = [
    (
        "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t",
        "cuda/std/cstdint",
    ),
    ("INFINITY NAN", "cuda/std/cmath"),
    ("CHAR_BIT INT_MAX INT_MIN LLONG_MAX UINT_MAX", "cuda/std/climits"),
    ("__half half __half2 half2", "cuda_fp16.h"),
    ("__nv_bfloat16 nv_bfloat16 __nv_bfloat162", "cuda_bf16.h"),
    ("__nv_fp8_e4m3 __nv_fp8x2_e4m3 __nv_fp8x4_e4m3", "cuda_fp8.h"),
];

/// Namespaces of the CUDA headers.
const SCOPES: [(&str, &str); 5] = [
    ("cooperative_groups", "add `#include <cooperative_groups.h>`"),
    ("cg", "add `#include <cooperative_groups.h>` and `namespace cg = cooperative_groups;`"),
    ("cub", "include the header of the class, such as `<cub/block/block_reduce.cuh>`"),
    ("cuda", "include the header of the name, such as `<cuda/std/limits>`"),
    ("nvcuda", "add `#include <mma.h>`"),
];

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(names, _)| has(names, name)).map(|(_, found)| *found)
}

/// Returns `None` unless the error at `token` in `file` assumes the host's library, or lacks a header.
pub(super) fn help(cause: &Cause, file: &str, token: &str) -> Option<String> {
    match cause {
        Cause::MissingFile(_) if file.ends_with("/cuda.h") => {
            Some("remove `<cuda.h>`, which is for host code, or include `<cuda_runtime.h>`".to_owned())
        }
        Cause::MissingFile(header) => {
            for_header(header).map(|advice| format!("NVRTC has no host headers: {advice}"))
        }
        Cause::UndefinedName(name) => find(&NAMES, name).map(|header| format!("add `#include <{header}>`")),
        Cause::UnknownScope => find(&SCOPES, token).map(str::to_owned),
        Cause::NoMember { scope, member } => match (scope.as_str(), member.as_str()) {
            ("cooperative_groups", "this_cluster" | "cluster_group") => Some(
                "clusters require compute capability 9.0: remove lower targets, or put this code between `#if __CUDA_ARCH__ >= 900` \
                 and `#endif`"
                    .to_owned(),
            ),
            ("std", name) => Some(format!(
                "NVRTC has no host library: check whether `cuda::std` has `{name}`, in a header such as `<cuda/std/utility>`"
            )),
            _ => None,
        },
        _ => None,
    }
}

fn for_header(header: &str) -> Option<String> {
    if let Some(instead) = find(&REPLACED, header) {
        return Some(format!("include `<{instead}>` instead"));
    }
    if has(IN_CUDA_STD, header) {
        return Some(format!(
            "include `<cuda/std/{header}>` instead, and use `cuda::std::` instead of `std::`"
        ));
    }
    if let Some(advice) = find(&BUILT_IN, header) {
        return Some(format!("remove it, {advice}"));
    }
    has(HOST_ONLY, header).then(|| "device code cannot use this header".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::Settings;
    use crate::nvrtc::tests::compile_unit;
    use crate::test_support::{nvrtc, show, unit};
    use std::path::Path;

    #[test]
    fn what_is_advised_compiles() {
        let Some((toolkit, nvrtc)) = nvrtc("what_is_advised_compiles") else { return };
        let mut text = String::from("#define HAS(what) static_assert(sizeof(what) > 0, \"\")\n");
        let headers = REPLACED.iter().chain(&NAMES).map(|(_, header)| (*header).to_owned());
        let headers =
            headers.chain(["cooperative_groups.h", "cub/block/block_reduce.cuh", "mma.h"].map(str::to_owned));
        for header in headers.chain(IN_CUDA_STD.split(' ').map(|name| format!("cuda/std/{name}"))) {
            text.push_str(&format!("#include <{header}>\n"));
        }
        for name in NAMES.iter().flat_map(|(names, _)| names.split(' ')) {
            text.push_str(&format!("HAS({name});\n"));
        }
        text.push_str(
            "namespace cg = cooperative_groups;\nHAS(cg::thread_block);\nusing R = cub::BlockReduce<float, 32>;\nHAS(R);\n\
             HAS(nvcuda::wmma::row_major*);\nHAS(cuda::std::numeric_limits<float>::max());\nHAS(ptrdiff_t);\n__global__ void k(float* x) {\n    \
             assert(x != nullptr); printf(\"%f\", x[0]); memset(x, 0, sizeof(size_t)); memcpy(x, x + 1, 4);\n    \
             void* p = malloc(4); free(p); x[0] = abs(-1) * sqrtf(INFINITY);\n}\n",
        );
        let unit = unit(Path::new("."), &text, "k", &[]);
        compile_unit(nvrtc, &unit, "sm_89".parse().unwrap(), &Settings::default(), &toolkit.include)
            .unwrap_or_else(|errors| panic!("{}", show(&errors)));
    }

    #[test]
    fn what_only_the_host_has_is_not_there() {
        let Some((toolkit, nvrtc)) = nvrtc("what_only_the_host_has_is_not_there") else { return };
        let replaced = ["stdint.h", "limits.h", "cuda.h"];
        let built_in = BUILT_IN.iter().filter_map(|(names, _)| names.split(' ').next());
        let mut helps = Vec::new();
        for header in replaced.into_iter().chain(["cmath", "vector"]).chain(built_in) {
            let unit =
                unit(Path::new("."), &format!("#include <{header}>\n__global__ void k() {{}}\n"), "k", &[]);
            let target = "sm_89".parse().unwrap();
            let errors =
                compile_unit(nvrtc, &unit, target, &Settings::default(), &toolkit.include).unwrap_err();
            helps.push(format!("{header}: {}\n", errors[0].help.as_deref().unwrap_or("no help")));
        }
        let names = "__global__ void k() {\nint64_t a;\n__half b;\nstd::min(1, 2);\nother c;\n\
                     cub::A<1> d;\nauto e = cooperative_groups::f();\ncg::f();\ncuda::f();\nnvcuda::f();\nothers::f();\n}\n";
        let unit = unit(Path::new("."), names, "k", &[]);
        let target = "sm_89".parse().unwrap();
        let errors = compile_unit(nvrtc, &unit, target, &Settings::default(), &toolkit.include).unwrap_err();
        helps.extend(
            errors
                .iter()
                .map(|error| format!("{}: {}\n", error.message, error.help.as_deref().unwrap_or("no help"))),
        );
        insta::assert_snapshot!("host_library", helps.concat());
    }
}
