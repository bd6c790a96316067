use super::*;

fn input(name: &str, dims: &[i64], is_integer: bool) -> NetworkInput {
    let dim = |extent: &i64| if *extent < 0 { Dim::Named("n".to_owned()) } else { Dim::Known(*extent) };
    NetworkInput { name: name.to_owned(), dims: Some(dims.iter().map(dim).collect()), is_integer }
}

fn inputs() -> Vec<NetworkInput> {
    vec![input("x", &[-1, 8], false), input("a=b:0", &[4], true)]
}

fn shapes(texts: &[&str]) -> Result<Vec<InputRange>, Vec<String>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let found = ranges(&inputs(), &texts, &[]);
    found.map(|(shapes, _)| shapes).map_err(|errors| errors.into_iter().map(|error| error.message).collect())
}

fn extents(min: &[i64], opt: &[i64], max: &[i64]) -> [Vec<i64>; 3] {
    [min.to_vec(), opt.to_vec(), max.to_vec()]
}

#[test]
fn a_range_is_one_shape_or_three() {
    let of = |text: &str| shapes(&[text]).unwrap().pop().unwrap().extents;
    assert_eq!(of("x=1x8:4x8:16x8"), extents(&[1, 8], &[4, 8], &[16, 8]));
    assert_eq!(of("x = 1,8 : [4,8] : 16x8"), of("x=1x8:4x8:16x8"));
    assert_eq!(of("x=3x8"), extents(&[3, 8], &[3, 8], &[3, 8]));
    let both = shapes(&["x=3x8", "a=b:0=4"]).unwrap();
    assert_eq!((both[1].name.as_str(), &both[1].extents), ("a=b:0", &extents(&[4], &[4], &[4])));
}

#[test]
fn malformed_ranges_are_rejected() {
    for text in [
        "x",
        "=1x8",
        "x=1x8:2x8",
        "x=1x8:2x8:3x8:4x8",
        "x=1x8:2:3x8",
        "x=2x8:1x8:3x8",
        "x=1x8:3x8:2x8",
        "x=nx8",
        "x=-1x8",
        "x=",
    ] {
        let errors = shapes(&[text]).unwrap_err();
        assert!(errors.len() == 1 && errors[0].starts_with("`--shape "), "{text}: {errors:?}");
    }
}

#[test]
fn ranges_are_compared_with_the_model() {
    assert_eq!(shapes(&[]).unwrap_err(), ["the input `x` is dynamic, but `--shape x=...` is missing"]);
    assert_eq!(shapes(&["y=1"]).unwrap_err(), ["`--shape y=...`: the model has no input `y`"]);
    assert_eq!(shapes(&["x=8"]).unwrap_err(), ["`--shape x=8`: rank 1, expected 2"]);
    assert_eq!(
        shapes(&["x=1x8:1x8:1x9"]).unwrap_err(),
        ["`--shape x=1x8:1x8:1x9`: the dimension at position 1 must be 8"]
    );
    assert_eq!(shapes(&["x=1x8", "x=2x8"]).unwrap_err(), ["duplicate `--shape x=...`"]);
}

#[test]
fn values_are_integers_of_the_inputs_length() {
    let x = ["x=1x8".to_owned()];
    let of = |text: &str| ranges(&inputs(), &x, &[text.to_owned()]);
    assert_eq!(of("a=b:0=1,1,1,1:2,2,2,2:3,3,3,3").unwrap().1[0].extents[2], [3; 4]);
    for text in ["x=1,2", "a=b:0=1,2", "a=b:0=1x1x1x1", "none=1"] {
        assert!(of(text).is_err(), "{text}");
    }
}
