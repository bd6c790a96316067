use super::*;
use cubinder_expr::DeviceFact;
use cubinder_expr::{BinaryOp, Builtin, UnaryOp, evaluate};

struct Shapes;

const X: [i64; 2] = [4, 6];

impl Environment for Shapes {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        (tensor == 0).then_some(&X)
    }
}

fn leaf(node: Node) -> Expr {
    Expr { nodes: vec![node] }
}

fn aligned(tensor: u32, bytes: u32) -> Expr {
    leaf(Node::Aligned { tensor, bytes })
}

fn int(value: i64) -> Expr {
    leaf(Node::Int(value))
}

fn join(parts: &[&Expr], root: impl FnOnce(&[u32]) -> Node) -> Expr {
    let mut nodes = Vec::new();
    let mut roots = Vec::new();
    for part in parts {
        let base = nodes.len() as u32;
        for node in &part.nodes {
            nodes.push(match node {
                Node::Binary(op, left, right) => Node::Binary(*op, left + base, right + base),
                Node::Unary(op, operand) => Node::Unary(*op, operand + base),
                Node::Call(call, args) => Node::Call(*call, args.iter().map(|arg| arg + base).collect()),
                Node::Conditional { condition, then, otherwise } => Node::Conditional {
                    condition: condition + base,
                    then: then + base,
                    otherwise: otherwise + base,
                },
                other => other.clone(),
            });
        }
        roots.push(nodes.len() as u32 - 1);
    }
    nodes.push(root(&roots));
    Expr { nodes }
}

fn binary(op: BinaryOp, left: &Expr, right: &Expr) -> Expr {
    join(&[left, right], |roots| Node::Binary(op, roots[0], roots[1]))
}

fn and(left: &Expr, right: &Expr) -> Expr {
    binary(BinaryOp::And, left, right)
}

fn numel_is(count: i64) -> Expr {
    binary(BinaryOp::Eq, &leaf(Node::Numel(0)), &int(count))
}

/// `1 // (numel(x) - 24) == 0`: no value for 24 elements.
fn broken() -> Expr {
    let zero = binary(BinaryOp::Sub, &leaf(Node::Numel(0)), &int(24));
    binary(BinaryOp::Eq, &binary(BinaryOp::FloorDiv, &int(1), &zero), &int(0))
}

fn decide(guards: &[Option<&Expr>]) -> Result<GuardDecision, UndecidedGuards> {
    GuardDecision::from_guards(guards.iter().copied().enumerate(), &Shapes, &mut Steps::default())
}

fn pick(choice: &Choice, addresses: [u64; 3]) -> Option<usize> {
    choice.pick(|tensor| addresses.get(tensor).copied())
}

struct Addresses([u64; 3]);

impl Environment for Addresses {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        Shapes.shape(tensor)
    }

    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        self.0.get(tensor as usize).map(|address| address.is_multiple_of(bytes.into()))
    }
}

fn assert_faithful(guards: &[Option<&Expr>]) -> GuardDecision {
    let decided = decide(guards).unwrap();
    let places = [0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 1 << 40];
    for x in places {
        for z in places {
            for y in places {
                let addresses = Addresses([x, z, y]);
                let holds = |guard: &Expr| matches!(evaluate(guard, &addresses), Ok(Value::Bool(true)));
                let expected = guards.iter().position(|guard| guard.is_none_or(holds));
                let found = decided.pick(|tensor| addresses.0.get(tensor).copied());
                assert_eq!(found, expected, "{guards:?} at {:?}", addresses.0);
            }
        }
    }
    decided
}

#[test]
fn shapes_alone_decide_where_they_can() {
    let (yes, no) = (numel_is(24), numel_is(25));
    for (guards, candidates) in [
        (vec![None, Some(&yes)], vec![0]),
        (vec![Some(&no), Some(&yes), None], vec![1]),
        (vec![Some(&no), None], vec![1]),
        (vec![Some(&no)], vec![]),
        (vec![], vec![]),
    ] {
        let found = assert_faithful(&guards);
        assert_eq!((found.candidates, found.choice), (candidates, None));
        assert!(found.without_value.is_empty());
    }
}

#[test]
fn addresses_decide_the_rest() {
    let vectors = and(&numel_is(24), &and(&aligned(0, 16), &aligned(2, 16)));
    let pairs = and(&aligned(0, 8), &aligned(2, 8));
    let found = assert_faithful(&[Some(&vectors), Some(&pairs), None]);
    assert_eq!(found.candidates, [0, 1, 2]);
    let choice = found.choice.unwrap();
    assert_eq!(choice.steps.len(), 4);
    assert_eq!(pick(&choice, [16, 1, 32]), Some(0));
    assert_eq!(pick(&choice, [16, 1, 24]), Some(1));
    assert_eq!(pick(&choice, [4, 16, 16]), Some(2));
    let alone = assert_faithful(&[Some(&vectors)]);
    assert_eq!(pick(&alone.choice.unwrap(), [8, 8, 8]), None);
}

#[test]
fn any_boolean_is_decided_as_evaluation_does() {
    let not = |expr: &Expr| join(&[expr], |roots| Node::Unary(UnaryOp::Not, roots[0]));
    let either = binary(BinaryOp::Or, &aligned(0, 4), &not(&aligned(1, 8)));
    let differs =
        binary(BinaryOp::Ne, &aligned(0, 16), &binary(BinaryOp::Ne, &aligned(1, 16), &aligned(2, 16)));
    // `(4 if aligned(x, 16) else 1) * (2 if aligned(x, 8) else 3) == 8`
    let number = |condition: &Expr, then: i64, otherwise: i64| {
        join(&[condition, &int(then), &int(otherwise)], |roots| Node::Conditional {
            condition: roots[0],
            then: roots[1],
            otherwise: roots[2],
        })
    };
    let product = binary(BinaryOp::Mul, &number(&aligned(0, 16), 4, 1), &number(&aligned(0, 8), 2, 3));
    let counted = binary(BinaryOp::Eq, &product, &int(8));
    let largest = join(&[&number(&aligned(2, 32), 3, 0), &number(&aligned(1, 2), 2, 1)], |roots| {
        Node::Call(Builtin::Max, roots.to_vec())
    });
    let largest = binary(BinaryOp::Ge, &largest, &int(2));
    assert_faithful(&[Some(&either), Some(&differs), Some(&counted)]);
    assert_faithful(&[Some(&counted), Some(&largest)]);
    assert_faithful(&[Some(&differs), Some(&largest), Some(&not(&largest)), None]);
    let always = binary(BinaryOp::Or, &aligned(0, 16), &not(&aligned(0, 16)));
    for guard in [&always, &aligned(1, 1)] {
        let found = assert_faithful(&[Some(guard), None]);
        assert_eq!((found.candidates, found.choice), (vec![0], None));
    }
    let never = and(&aligned(0, 16), &not(&aligned(0, 8)));
    let found = assert_faithful(&[Some(&never), None]);
    assert_eq!((found.candidates, found.choice), (vec![1], None));
}

#[test]
fn a_guard_without_a_value_does_not_hold() {
    let broken_if_aligned = and(&aligned(0, 16), &broken());
    for guard in [broken(), broken_if_aligned] {
        let found = assert_faithful(&[Some(&guard), None]);
        assert_eq!(found.candidates, [1]);
        let [(0, error)] = &found.without_value[..] else { panic!("{:?}", found.without_value) };
        assert!(error.to_string().contains("division by zero: 1 // 0"), "{error}");
    }
    let vectors = aligned(2, 16);
    let found = assert_faithful(&[Some(&broken()), Some(&vectors), Some(&broken()), None]);
    assert_eq!(found.candidates, [1, 3]);
    let without_value: Vec<usize> = found.without_value.iter().map(|(variant, _)| *variant).collect();
    assert_eq!(without_value, [0, 2]);
    let twice = and(&binary(BinaryOp::Ne, &aligned(0, 16), &aligned(1, 16)), &broken());
    assert_eq!(assert_faithful(&[Some(&twice), None]).without_value.len(), 1);
    let guarded = and(&aligned(0, 16), &binary(BinaryOp::Or, &aligned(0, 8), &broken()));
    let found = assert_faithful(&[Some(&guarded), None]);
    assert!(found.without_value.is_empty() && found.candidates == [0, 1]);
    assert_eq!(assert_faithful(&[Some(&int(1)), None]).candidates, [1]);
}

#[test]
fn shared_parts_keep_it_small_and_what_is_too_large_is_refused() {
    let chain =
        |op, count: u32| (1..count).fold(aligned(0, 2), |left, index| binary(op, &left, &aligned(index, 2)));
    let odd = chain(BinaryOp::Ne, 16);
    let found = decide(&[Some(&odd)]).unwrap();
    assert_eq!(found.choice.unwrap().steps.len(), 31);
    // A sum of weights has as many residuals as values.
    let weight = |tensor: u32| {
        join(&[&aligned(tensor, 2), &int(3_i64.pow(tensor)), &int(0)], |roots| Node::Conditional {
            condition: roots[0],
            then: roots[1],
            otherwise: roots[2],
        })
    };
    let sum = (1..16).fold(weight(0), |left, index| binary(BinaryOp::Add, &weight(index), &left));
    let hard = binary(BinaryOp::Eq, &binary(BinaryOp::Mod, &sum, &int(7919)), &int(1));
    assert_eq!(decide(&[Some(&hard)]), Err(UndecidedGuards::TooManyWays));
    assert!(UndecidedGuards::TooManyWays.to_string().contains("use fewer tensors"));
    // Comparing long residuals is expensive.
    let text = |length: usize| leaf(Node::Str("a".repeat(length)));
    let named = join(&[&aligned(16, 2), &text(3200), &text(1)], |roots| Node::Conditional {
        condition: roots[0],
        then: roots[1],
        otherwise: roots[2],
    });
    let wordy = and(&hard, &binary(BinaryOp::Ne, &named, &text(2)));
    assert_eq!(decide(&[Some(&wordy)]), Err(UndecidedGuards::TooManySteps));
    assert!(UndecidedGuards::TooManySteps.to_string().contains("exceed 8000000 evaluation steps"));
    let (one, two) = (aligned(0, 2), and(&aligned(0, 2), &aligned(1, 2)));
    let mut guards = vec![Some(&one); 681];
    guards.push(Some(&two));
    assert!(decide(&guards).is_ok(), "{VISIT_LIMIT} ways");
    assert_eq!(decide(&[Some(&one); 683]), Err(UndecidedGuards::TooManyWays), "{} ways", VISIT_LIMIT + 1);
}

#[test]
fn what_looks_the_same_after_other_answers_is_decided_anew() {
    struct WithList(Value);

    impl Environment for WithList {
        fn attribute(&self, _: u32) -> Option<&Value> {
            Some(&self.0)
        }

        fn shape(&self, _: u32) -> Option<&[i64]> {
            None
        }
    }

    // `aligned(x, 16) != (max(list[1 if aligned(z, 16) else 0], ... 17 times) == 1)`, lists of 1000.
    let mut nodes = vec![Node::Aligned { tensor: 0, bytes: 16 }];
    let mut elements = Vec::new();
    for _ in 0..17 {
        let at = nodes.len() as u32;
        nodes.extend([
            Node::Aligned { tensor: 1, bytes: 16 },
            Node::Int(1),
            Node::Int(0),
            Node::Conditional { condition: at, then: at + 1, otherwise: at + 2 },
            Node::Attribute(0),
            Node::Index { array: at + 4, index: at + 3 },
        ]);
        elements.push(at + 5);
    }
    let most = nodes.len() as u32;
    nodes.extend([
        Node::Call(Builtin::Max, elements),
        Node::Int(1),
        Node::Binary(BinaryOp::Eq, most, most + 1),
        Node::Binary(BinaryOp::Ne, 0, most + 2),
    ]);
    let mut list = vec![Value::Int(0); 1000];
    list[1] = Value::Int(1);
    let guard = Expr { nodes };
    assert_eq!(guard.validate(1, 2), Ok(()));
    let environment = WithList(Value::Array(list));
    let found =
        GuardDecision::from_guards([(0, Some(&guard)), (1, None)], &environment, &mut Steps::default())
            .unwrap();
    for (addresses, expected) in [([16, 16], 1), ([16, 8], 0), ([8, 16], 0), ([8, 8], 1)] {
        assert_eq!(found.pick(|tensor| addresses.get(tensor).copied()), Some(expected), "{addresses:?}");
    }
}

#[test]
fn answers_about_addresses_change_nothing_else_that_is_known() {
    struct Everything;

    impl Environment for Everything {
        fn attribute(&self, index: u32) -> Option<&Value> {
            (index == 2).then_some(&Value::Int(77))
        }

        fn shape(&self, tensor: u32) -> Option<&[i64]> {
            Shapes.shape(tensor)
        }

        fn rank(&self, tensor: u32) -> Option<usize> {
            (tensor == 3).then_some(7)
        }

        fn device(&self, fact: DeviceFact) -> Option<i64> {
            (fact == DeviceFact::Capability).then_some(90)
        }

        fn values(&self, tensor: u32) -> Option<&[i64]> {
            (tensor == 1).then_some(&[5, 6])
        }

        fn size(&self, tensor: u32) -> Option<i64> {
            (tensor == 4).then_some(12)
        }
    }

    let sum = join(&[&leaf(Node::Values(1))], |roots| Node::Call(Builtin::Sum, roots.to_vec()));
    for (read, value) in [
        (leaf(Node::Attribute(2)), 77),
        (leaf(Node::Rank(3)), 7),
        (leaf(Node::Device(DeviceFact::Capability)), 90),
        (leaf(Node::Size(4)), 12),
        (sum, 11),
        (leaf(Node::Numel(0)), 24),
    ] {
        let is_it = binary(BinaryOp::Eq, &read, &int(value));
        for guard in [is_it.clone(), and(&is_it, &aligned(0, 16)), and(&aligned(0, 16), &is_it)] {
            let found = GuardDecision::from_guards(
                [(5, Some(&guard)), (6, None)],
                &Everything,
                &mut Steps::default(),
            );
            let found = found.unwrap();
            assert_eq!(found.pick(|_| Some(32)), Some(5), "{guard:?}");
            assert_eq!(found.without_value, [], "{guard:?}");
        }
    }
}

#[test]
fn a_guard_that_always_holds_ends_the_choice() {
    let not = |of: &Expr| join(&[of], |roots| Node::Unary(UnaryOp::Not, roots[0]));
    let always = binary(BinaryOp::Or, &aligned(0, 16), &not(&aligned(0, 16)));
    let (first, last) = (aligned(1, 8), aligned(2, 32));
    let decided = decide(&[Some(&always), Some(&last)]).unwrap();
    assert_eq!((decided.candidates, decided.choice), (vec![0], None));

    let decided = decide(&[Some(&first), Some(&always), Some(&last), None]).unwrap();
    assert_eq!(decided.candidates, [0, 1]);
    let choice = decided.choice.unwrap();
    assert_eq!(choice.steps.len(), 1);
    assert_eq!([8, 4].map(|address| pick(&choice, [1, address, 1])), [Some(0), Some(1)]);

    let never = and(&aligned(0, 16), &not(&aligned(0, 16)));
    let decided = decide(&[Some(&never), Some(&first), Some(&last)]).unwrap();
    assert_eq!(decided.candidates, [1, 2]);
    let choice = decided.choice.unwrap();
    assert_eq!(choice.steps.len(), 2);
    let picked = [[1, 8, 1], [1, 4, 32], [1, 4, 4]].map(|addresses| pick(&choice, addresses));
    assert_eq!(picked, [Some(0), Some(1), None]);

    let decided = decide(&[Some(&never), Some(&not(&first)), None]).unwrap();
    assert_eq!(decided.candidates, [1, 2]);
    assert_eq!(
        [4, 8].map(|address| pick(decided.choice.as_ref().unwrap(), [1, address, 1])),
        [Some(0), Some(1)]
    );
    let second = aligned(2, 8);
    for (one, other) in [(first.clone(), not(&second)), (not(&first), second.clone())] {
        let guards = [Some(&one), Some(&other), Some(&always), Some(&last)];
        let decided = decide(&guards).unwrap();
        assert_eq!(decided.candidates, [0, 1, 2]);
        let choice = decided.choice.unwrap();
        assert_eq!(choice.steps.len(), 2);
        for addresses in [[1, 4, 4], [1, 4, 8], [1, 8, 4], [1, 8, 8]] {
            let holds = |guard: &Expr| evaluate(guard, &Addresses(addresses)) == Ok(Value::Bool(true));
            let expected = [&one, &other, &always].iter().position(|guard| holds(guard));
            assert_eq!(pick(&choice, addresses), expected, "{addresses:?}");
        }
    }
}
