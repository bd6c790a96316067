use std::time::{Duration, Instant};

use super::support::{Maker, circ_pad, elemwise_add};
use crate::proof::Domain;
use cubinder_expr::value::Value;
use cubinder_model::model::Interval;

fn statements(maker: &Maker, block: &str, args: &[&str]) -> Duration {
    let (output, input) = (&maker.plugin.outputs[0].name, &maker.plugin.inputs[0].name);
    let grid = format!("ceil_div(numel({output}), {block})");
    let mut integers = vec![grid.clone(), block.to_owned(), format!("numel({output})")];
    integers.extend(args.iter().map(|&text| text.to_owned()));
    let guards = [format!("{output}.shape[-1] % 4 == 0"), format!("numel({input}) < 2147483648")];
    let integers: Vec<_> = integers.iter().map(|text| maker.expr(text)).collect();
    let guards = guards.map(|text| maker.try_expr(&text));
    let started = Instant::now();
    let domain = maker.domain();
    for expr in &integers {
        let begun = Instant::now();
        let verdicts =
            (domain.has_value(expr), domain.within(expr, Interval { min: 0, max: i32::MAX.into() }));
        println!("{:?} {verdicts:?}", begun.elapsed());
    }
    for guard in guards.iter().flatten() {
        let begun = Instant::now();
        let verdicts = (domain.always(guard), domain.never(guard));
        println!("{:?} {verdicts:?}", begun.elapsed());
        let assumed = domain.clone().assuming(guard);
        for expr in &integers {
            drop((assumed.has_value(expr), assumed.within(expr, Interval { min: 0, max: i32::MAX.into() })));
        }
        println!("{:?} assuming", begun.elapsed());
    }
    for output in &maker.plugin.outputs {
        let before = maker.domain().before_outputs();
        drop((before.has_value(&output.shape), before.within(&output.shape, Interval::ANY_SIZE)));
    }
    started.elapsed()
}

#[test]
fn a_check_is_quick() {
    let pads = [
        "len(pads) // 2",
        "[get(x.shape, x.rank - 1 - d, 1) for d in range(8)]",
        "[get(y.shape, y.rank - 1 - d, 1) for d in range(8)]",
        "[shift(x.rank - 1 - d) for d in range(8)]",
    ];
    for (name, spent) in [
        ("circ_pad", statements(&circ_pad(), "256", &pads)),
        ("elemwise_add", statements(&elemwise_add(), "block_size", &[])),
    ] {
        println!("{name}: {spent:?}");
        // Unoptimized code is fifty times slower.
        assert!(spent < Duration::from_secs(10), "{name}: {spent:?}");
    }
}

#[test]
fn a_guard_over_a_profile_is_quick() {
    let maker = circ_pad();
    let guard = maker.expr("y.shape[-1] % 4 == 0 and numel(y) < 2147483648");
    let attributes = [Value::Array([2, 2, 1, 1].map(Value::Int).to_vec())];
    let dim = |min, max| Interval { min, max };
    let profile = [vec![dim(1, 16), dim(3, 3), dim(32, 64), dim(32, 32)]];
    let started = Instant::now();
    let proved =
        Domain::new(&maker.plugin).with_attributes(&attributes).with_profile(&profile).proves(&guard);
    let spent = started.elapsed();
    println!("{spent:?}");
    assert!(proved);
    assert!(spent < Duration::from_secs(1), "{spent:?}");
}

#[test]
fn many_inputs_are_quick() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let names: Vec<String> =
        NAMES.iter().flat_map(|name| (0..45).map(move |at| format!("{name}{at}"))).collect();
    let maker = names.iter().fold(Maker::new(), |maker, name| maker.input(name, (1, 8), |_| {}));
    let maker = maker.output("y", "a0.shape", |_| {});
    let count = maker.expr("numel(y)");
    let started = Instant::now();
    let verdict = maker.domain().within(&count, Interval { min: 0, max: i32::MAX.into() });
    let spent = started.elapsed();
    println!("{spent:?}");
    assert!(matches!(verdict, crate::proof::Verdict::Refuted(_)), "{verdict:?}");
    assert!(spent < Duration::from_secs(5), "{spent:?}");
}
