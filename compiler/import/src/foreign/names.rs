use cubinder_model::KernelFacts;

use super::mangled::{Demangled, demangle};

const MOST: usize = 8;
const LONGEST: usize = 80;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::foreign) enum Unclear<'k> {
    /// Such as template instances.
    Several(Vec<&'k str>),
    /// None of several kernels is named.
    Unnamed,
}

/// Finds a symbol (`_Z4permIfLi1EEvPKf`), template instance (`perm<float, 1>`), name (`perm`, `ops::perm`), or the
/// only kernel. Unknown names are unchanged.
pub(in crate::foreign) fn symbol<'k>(
    kernels: &'k [KernelFacts],
    name: Option<&'k str>,
) -> Result<&'k str, Unclear<'k>> {
    let symbols = || kernels.iter().map(|kernel| kernel.symbol.as_str());
    let name = match (name, kernels) {
        (Some(name), _) => name,
        (None, [one]) => return Ok(&one.symbol),
        (None, _) => return Err(Unclear::Unnamed),
    };
    if symbols().any(|symbol| symbol == name) {
        return Ok(name);
    }
    let wanted = without_blanks(name);
    let means = |full: &dyn Fn(Demangled) -> String| -> Vec<&'k str> {
        symbols()
            .filter(|symbol| demangle(symbol).is_some_and(|known| is_called(&full(known), &wanted)))
            .collect()
    };
    let instances = means(&|known| known.full);
    let meant = if instances.is_empty() { means(&|known| known.qualified) } else { instances };
    match meant.as_slice() {
        [] => Ok(name),
        [one] => Ok(one),
        _ => Err(Unclear::Several(meant)),
    }
}

/// Matches `ops::Outer<int>::perm` or its last components.
fn is_called(full: &str, wanted: &str) -> bool {
    let full = without_blanks(full);
    let before = full.strip_suffix(wanted).filter(|_| !wanted.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

pub(in crate::foreign) fn listed<'k>(symbols: impl Iterator<Item = &'k str>) -> String {
    let all: Vec<&str> = symbols.collect();
    let few: Vec<String> = all.iter().take(MOST).map(|symbol| shown(symbol)).collect();
    match all.len() - few.len() {
        0 => few.join(", "),
        more => format!("{} and {more} more", few.join(", ")),
    }
}

fn shown(symbol: &str) -> String {
    match demangle(symbol).filter(|known| known.full.len() <= LONGEST) {
        Some(known) => format!("`{}` (`{symbol}`)", known.full),
        None => format!("`{symbol}`"),
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(symbols: &[&str]) -> Vec<KernelFacts> {
        let kernel = |symbol: &&str| KernelFacts {
            symbol: (*symbol).to_owned(),
            registers: None,
            shared_bytes: None,
            local_bytes: None,
            max_threads: None,
            params: Vec::new(),
        };
        symbols.iter().map(kernel).collect()
    }

    const F32: &str = "_Z4permIfLi1EEvPKT_PS0_x";
    const F64: &str = "_Z4permIdLi2EEvPKT_PS0_x";

    #[test]
    fn a_name_means_the_one_kernel_that_has_it() {
        let all = kernels(&["plain", "_Z5bytesPKhPvx", F32, F64]);
        for (name, expected) in [
            ("plain", "plain"),
            (F64, F64),
            ("bytes", "_Z5bytesPKhPvx"),
            ("perm<float, 1>", F32),
            ("perm<double,2>", F64),
        ] {
            assert_eq!(symbol(&all, Some(name)), Ok(expected), "{name}");
        }
        for name in ["perm<float>", "perm<float, 2>", "per", "", "_Z4perm"] {
            assert_eq!(symbol(&all, Some(name)), Ok(name), "{name}");
        }
    }

    /// ops::scale(float*), Outer<int>::k(float const*, float*), Outer<float>::k(float const*, float*)
    #[test]
    fn names_may_say_what_they_stand_in() {
        let symbols = ["_ZN3ops5scaleEPf", "_ZN5OuterIiE1kEPKfPf", "_ZN5OuterIfE1kEPKfPf"];
        let all = kernels(&symbols);
        for (name, index) in [("ops::scale", 0), ("scale", 0), ("Outer<int>::k", 1), ("Outer< float >::k", 2)]
        {
            assert_eq!(symbol(&all, Some(name)), Ok(symbols[index]), "{name}");
        }
        assert_eq!(symbol(&all, Some("k")), Err(Unclear::Several(vec![symbols[1], symbols[2]])));
        for name in ["Outer", "Outer<int>", "s::scale", "::scale", "cale", "op::scale"] {
            assert_eq!(symbol(&all, Some(name)), Ok(name), "{name}");
        }
    }

    #[test]
    fn a_name_of_several_kernels_means_none_of_them() {
        assert_eq!(symbol(&kernels(&[F32, F64]), Some("perm")), Err(Unclear::Several(vec![F32, F64])));
        assert_eq!(symbol(&kernels(&[F32, F64]), None), Err(Unclear::Unnamed));
        assert_eq!(symbol(&kernels(&[F32]), None), Ok(F32));
        assert_eq!(symbol(&kernels(&["perm", F32, F64]), Some("perm")), Ok("perm"));
    }

    #[test]
    fn kernels_are_listed_by_both_names() {
        let shown = listed(["plain", F32].into_iter());
        assert_eq!(shown, format!("`plain`, `perm<float, 1>` (`{F32}`)"));
        let many: Vec<String> = (0..10).map(|at| format!("k{at}")).collect();
        assert!(listed(many.iter().map(String::as_str)).ends_with("`k7` and 2 more"));
    }
}
