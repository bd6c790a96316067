use super::*;

/// Shows `a` for an address, `w` for a written one, else `-`.
fn shown(body: &str) -> String {
    let used = uses(body, &["p", "q", "n"]);
    used.iter()
        .map(|found| match (found.is_address, found.is_written) {
            (_, true) => 'w',
            (true, false) => 'a',
            (false, false) => '-',
        })
        .collect()
}

const LOADS: &str =
    "{ .reg .b64 %rd<9>;\nld.param.u64 %rd1, [p];\nld.param.b64 %rd2, [ q ];\nld.param.s64 %rd3, [n];\n";

#[test]
fn addresses_are_what_is_accessed() {
    for (body, expected) in [
        ("ret; }", "---"),
        ("cvta.to.global.u64 %rd4, %rd1; ret; }", "a--"),
        ("mov.b64 %rd4, %rd2; $L_1: @!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd4+8]; }", "-a-"),
        ("@%p1 ld.f32 %f1, [ %rd1 + 0 ]; }", "a--"),
        (
            "cvta.to.global.u64 %rd4, %rd1; mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5; st.global.f32 [%rd6], %f1; }",
            "w--",
        ),
        (
            "cvta.to.global.u64 %rd4, %rd1; shl.b64 %rd5, %rd3, 2; add.s64 %rd6, %rd5, %rd4; add.s64 %rd7, %rd6, 16; st.global.f32 [%rd7], %f1; }",
            "w--",
        ),
        (
            "cvta.to.global.u64 %rd4, %rd1; shl.b64 %rd5, %rd3, 2; add.s64 %rd6, %rd4, %rd5; add.s64 %rd7, 16, %rd6; st.global.f32 [%rd7], %f1; }",
            "w--",
        ),
        ("cvta.to.global.u64 %rd4, %rd2; atom.global.add.f32 %f1, [%rd4], %f2; }", "-w-"),
        ("red.global.add.u32 [%rd1], 1; }", "w--"),
        ("L: st.global.v4.b32 [ %rd2 + 0 ], { %r1, %r2, %r3, %r4 }; }", "-w-"),
    ] {
        assert_eq!(shown(&format!("{LOADS}{body}")), expected, "{body}");
    }
    let entry = "ld.param::entry.u64 %rd1, [p]; cvta.to.global.u64 %rd4, %rd1;";
    assert_eq!(shown(entry), "a--");
}

#[test]
fn what_is_not_certain_is_left_out() {
    for body in [
        "add.s64 %rd4, %rd1, %rd2; setp.lt.u64 %p1, %rd4, %rd3; }",
        "st.shared.u64 [%rd1], %rd2; ld.local.u32 %r1, [%rd2]; ld.const.u32 %r1, [%rd3]; cvta.to.shared.u64 %rd4, %rd1; }",
        "add.s64 %rd4, %rd1, %rd2; ld.global.u32 %r1, [%rd4]; }",
        "@%p1 mov.u64 %rd4, %rd1; @%p2 mov.u64 %rd4, %rd2; ld.global.u32 %r1, [%rd4]; }",
        "selp.b64 %rd4, %rd1, %rd2, %p1; st.global.u32 [%rd4], %r1; }",
        "mov.u64 %rd4, table; ld.global.u64 %rd5, [%rd4]; ld.global.u32 %r1, [%rd5]; }",
        "ld.param.u32 %r1, [p]; ld.global.u32 %r2, [%r1]; ld.param.u64 %rd4, [q+8]; ld.global.u32 %r2, [%rd4]; }",
        "ld.param.v2.u64 {%rd4, %rd5}, [p]; ld.global.u32 %r1, [%rd4]; }",
        "mov.u64 %rd4, %rd1; ld.global.v2.u64 {%rd5, %rd4}, [%rd6]; ld.global.u32 %r1, [%rd4]; }",
        "ld.global.u64 %rd4, [p]; ld.global.u32 %r1, [%rd4]; }",
        "not.b64 %rd4, %rd1; ld.global.u32 %r1, [%rd4]; }",
        "{ .reg .b64 %rd1; mov.u64 %rd1, 5; ld.global.u32 %r1, [%rd1]; } }",
    ] {
        assert_eq!(shown(&format!("{LOADS}{body}")), "---", "{body}");
    }
    let both = "cvta.to.global.u64 %rd4, %rd1; cvta.to.global.u64 %rd5, %rd2; selp.b64 %rd6, %rd4, %rd5, %p1; st.global.u32 [%rd6], %r1;";
    assert_eq!(shown(&format!("{LOADS}{both}")), "aa-");
    let sum = "cvta.to.global.u64 %rd4, %rd1; cvta.to.global.u64 %rd5, %rd2; add.s64 %rd6, %rd4, %rd5; st.global.u32 [%rd6], %r1;";
    assert_eq!(shown(&format!("{LOADS}{sum}")), "aa-");
    let difference = "ld.global.u32 %r1, [%rd1]; sub.s64 %rd4, %rd1, 4; st.global.u32 [%rd4], %r1;";
    assert_eq!(shown(&format!("{LOADS}{difference}")), "a--");
    assert_eq!(
        shown("mov.u64 %a, %b; mov.u64 %b, %a; st.global.u32 [%a], 1; add.s64 %c, %c, %c; st.u32 [%c], 1;"),
        "---"
    );
    for text in ["", ";;", "@", ":", "a:b:c", "ld.param.u64", "st [", "st.global ], [", "{{{}", "add.s64 ,,,"]
    {
        assert_eq!(shown(text), "---", "{text}");
    }
}
