use super::*;

fn in_place() -> Plugin {
    let mut plugin = plugin();
    plugin.outputs[0].alias = Some(0);
    plugin
}

#[test]
fn an_input_is_stored_in_the_output_that_shares_its_memory() {
    let of = |plugin: &Plugin| [0, 1, 2, 3].map(|tensor| plugin.storage_of(tensor));
    assert_eq!((of(&plugin()), of(&in_place())), ([0, 1, 2, 3], [1, 1, 2, 3]));
    let mut second = plugin();
    second.inputs.push(second.inputs[0].clone());
    second.outputs.push(Output { alias: Some(0), ..second.outputs[0].clone() });
    assert_eq!(of(&second), [3, 1, 2, 3], "inputs x and z, outputs y and w, which has the memory of x");
}

#[test]
fn an_argument_by_either_name_is_the_outputs_address() {
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[3, 100], &[3, 100]], ..Facts::default() };
    for value in
        [0, 1].into_iter().flat_map(|tensor| [ArgValue::Tensor(tensor), ArgValue::ReadTensor(tensor)])
    {
        let mut launch = plugin().variants[1].launch(0).unwrap().clone();
        launch.args = vec![Arg { name: "a".to_owned(), value }];
        let passed =
            |plugin: &Plugin| numbers(plugin, &launch, &LaunchLimits::ANYTHING, &facts).unwrap().args;
        assert_eq!(passed(&in_place()), [EvaluatedArgument::Output(0)]);
    }
}

#[test]
fn a_guard_asks_for_the_outputs_address_by_either_name() {
    let shape: &[i64] = &[2, 4];
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[shape, shape], ..Facts::default() };
    for (addresses, expected) in [([8, 16], 0), ([16, 8], 1)] {
        let decided = decided(&in_place(), DataType::F32, &facts).unwrap();
        let picked = decided.pick(|tensor: usize| addresses.get(tensor).copied());
        assert_eq!(picked, Some(expected), "x at {}, y at {}", addresses[0], addresses[1]);
    }
}
