use cubinder_expr::Value;
use cubinder_expr::{Environment, evaluate};
use proptest::prelude::*;

use super::super::compile;
use crate::diagnostic::{Colour, Source, render};

type Atom = (&'static str, fn(&At) -> bool);

const ATOMS: [Atom; 7] = [
    ("numel(x) % 4 == 0", |at| at.shape[0] % 4 == 0),
    ("numel(x) == 12", |at| at.shape[0] == 12),
    ("aligned(x, 16)", |at| at.aligned.0),
    ("aligned(y, 16)", |at| at.aligned.1),
    ("n == 3", |at| at.attributes[0] == Value::Int(3)),
    ("factor > 5.0", |at| matches!(at.attributes[1], Value::Float(factor) if factor > 5.0)),
    ("mode == \"a or (b) and c\"", |at| at.attributes[2] == Value::Str("a or (b) and c".into())),
];

struct At {
    shape: [i64; 1],
    aligned: (bool, bool),
    attributes: [Value; 3],
}

impl Environment for At {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(usize::try_from(index).ok()?)
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        Some(&self.shape)
    }

    fn aligned(&self, tensor: u32, _: u32) -> Option<bool> {
        Some(if tensor == 0 { self.aligned.0 } else { self.aligned.1 })
    }
}

#[derive(Debug, Clone)]
enum Said {
    Atom(usize),
    Not(Box<Said>),
    And(Box<Said>, Box<Said>),
    Or(Box<Said>, Box<Said>),
    If(Box<Said>, Box<Said>, Box<Said>),
}

impl Said {
    fn holds(&self, at: &At) -> bool {
        match self {
            Said::Atom(index) => ATOMS[*index].1(at),
            Said::Not(inner) => !inner.holds(at),
            Said::And(a, b) => a.holds(at) && b.holds(at),
            Said::Or(a, b) => a.holds(at) || b.holds(at),
            Said::If(then, condition, otherwise) => {
                if condition.holds(at) {
                    then.holds(at)
                } else {
                    otherwise.holds(at)
                }
            }
        }
    }

    fn level(&self) -> u8 {
        match self {
            Said::If(..) => 0,
            Said::Or(..) => 1,
            Said::And(..) => 2,
            Said::Not(_) => 3,
            Said::Atom(_) => 4,
        }
    }

    fn write(&self, least: u8, style: &mut Style, text: &mut String) {
        let bare = self.level() >= least && style.next(3) != 0;
        if !bare {
            text.push('(');
        }
        let binary = |a: &Said, b: &Said, word: &str, level: u8, style: &mut Style, text: &mut String| {
            a.write(level, style, text);
            style.word(word, text);
            b.write(level + 1, style, text);
        };
        match self {
            Said::Atom(index) => {
                let spaced = ATOMS[*index].0.replace(" == ", ["==", " == ", "\t==\n"][style.next(3)]);
                text.push_str(&spaced);
            }
            Said::Not(inner) => {
                text.push_str("not");
                let at = text.len();
                inner.write(4, style, text);
                if !text[at..].starts_with('(') || style.next(2) == 0 {
                    text.insert_str(at, style.blank());
                }
            }
            Said::And(a, b) => binary(a, b, "and", 2, style, text),
            Said::Or(a, b) => binary(a, b, "or", 1, style, text),
            Said::If(then, condition, otherwise) => {
                then.write(1, style, text);
                style.word("if", text);
                condition.write(1, style, text);
                style.word("else", text);
                otherwise.write(0, style, text);
            }
        }
        if !bare {
            text.push(')');
        }
    }
}

struct Style(Vec<u8>, usize);

impl Style {
    fn next(&mut self, of: usize) -> usize {
        self.1 += 1;
        usize::from(self.0[self.1 % self.0.len()]) % of
    }

    fn blank(&mut self) -> &'static str {
        [" ", "\t", "\n", "  ", "\r\n"][self.next(5)]
    }

    fn word(&mut self, word: &str, text: &mut String) {
        if !text.ends_with([')', '"']) || self.next(2) == 0 {
            text.push_str(self.blank());
        }
        text.push_str(word);
        text.push_str(self.blank());
    }
}

fn said() -> impl Strategy<Value = Said> {
    let atom = (0..ATOMS.len()).prop_map(Said::Atom);
    atom.prop_recursive(4, 24, 3, |inner| {
        let one = || inner.clone().prop_map(Box::new);
        prop_oneof![
            one().prop_map(Said::Not),
            (one(), one()).prop_map(|(a, b)| Said::And(a, b)),
            (one(), one()).prop_map(|(a, b)| Said::And(a, b)),
            (one(), one()).prop_map(|(a, b)| Said::Or(a, b)),
            (one(), one(), one()).prop_map(|(a, b, c)| Said::If(a, b, c)),
        ]
    })
}

fn guard_of(guard: &str, factor: &str) -> cubinder_model::Guard {
    let guard = toml::Value::String(guard.to_owned());
    let text = format!(
        "schema = 1\n[plugin]\nname = \"k\"\n[attributes]\nn = {{ type = \"i64\", range = \"0..=9\" }}\nfactor = {{ type = \"f32\" }}\n\
         mode = {{ type = \"string\" }}\n\
         [[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = 1\n[[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\
         [[variants]]\nid = 1\nguard = {guard}\n\
         [[code]]\nname = \"k\"\nptx = [\"k.ptx\"]\n\
         parameters = [\"x: const f32* aligned(16)\", \"y: f32* aligned(16)\", \"count: i64 multiple_of(4)\", \"{factor}\"]\n\
         [[launches]]\ncode = \"k\"\ngrid = [1]\nblock = [1]\n\
         args = {{ x = \"x\", y = \"y\", count = \"numel(x)\", fixed = \"factor\" }}\n"
    );
    let resolved = compile(&Source::new("dir/m.toml", text))
        .unwrap_or_else(|errors| panic!("{guard}\n{}", render(&errors, Colour::Plain)));
    resolved.draft.plugin.variants[0].guard.clone().unwrap()
}

fn holds(guard: &cubinder_model::Guard, at: &At) -> bool {
    evaluate(&guard.expr, at) == Ok(Value::Bool(true))
}

fn nodes() -> impl Iterator<Item = At> {
    let counts = [7, 12, 1001, 1004];
    let bits = 0..32_usize;
    counts.into_iter().flat_map(move |count| {
        bits.clone().map(move |bits| {
            let is = |bit: usize| bits >> bit & 1 == 1;
            let attributes = [
                Value::Int(if is(2) { 3 } else { 4 }),
                Value::Float(if is(3) { 6.0 } else { 0.5 }),
                Value::Str(if is(4) { "a or (b) and c" } else { "b" }.into()),
            ];
            At { shape: [count], aligned: (is(0), is(1)), attributes }
        })
    })
}

#[test]
fn what_only_looks_as_if_it_were_said_is_said() {
    let mut at = At {
        shape: [1001],
        aligned: (true, true),
        attributes: [Value::Int(3), Value::Float(6.0), Value::Str(String::new())],
    };
    for guard in [
        "not(numel(x) == 12 and numel(x) % 4 == 0 and factor > 5.0)",
        "(numel(x) > 1000)or numel(x) == 7 and numel(x) % 4 == 0",
        "numel(x) > 1000 or\n numel(x) == 7 and aligned(x, 16) and aligned(y, 16) and numel(x) % 4 == 0",
        "numel(x) > 1000\tor numel(x) == 7 and numel(x) % 4 == 0",
    ] {
        let whole = guard_of(guard, "fixed == 6.0");
        at.shape = [1001];
        assert!(!holds(&whole, &at), "{guard}: {}", whole.text);
        at.shape = [1004];
        assert!(holds(&whole, &at), "{guard}: {}", whole.text);
        at.aligned.0 = false;
        assert!(!holds(&whole, &at), "{guard}: {}", whole.text);
        at.aligned.0 = true;
    }
}

#[test]
fn what_is_said_is_not_said_again() {
    let guard = "(numel(x)%4 == 0) and (aligned(y, 16) and n > 1) and aligned(x, 16)and factor == 6.0";
    assert_eq!(guard_of(guard, "fixed == 6.0").text, guard);
}

#[test]
fn constants_are_rounded_as_attributes_are() {
    let whole = guard_of("n == 3", "fixed == 0.1");
    let at = |factor: f64| At {
        shape: [4],
        aligned: (true, true),
        attributes: [Value::Int(3), Value::Float(factor), Value::Str(String::new())],
    };
    assert!(holds(&whole, &at(f64::from(0.1_f32))), "{}", whole.text);
    assert!(!holds(&whole, &at(f64::from(0.1_f32.next_up()))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn guards_ask_for_all_that_they_and_the_code_ask_for(said in said(), style in prop::collection::vec(any::<u8>(), 1..40)) {
        let mut text = String::new();
        said.write(0, &mut Style(style, 0), &mut text);
        let whole = guard_of(&text, "fixed == 6.0");
        for at in nodes() {
            let assumed = at.shape[0] % 4 == 0 && at.aligned == (true, true) && at.attributes[1] == Value::Float(6.0);
            let expected = said.holds(&at) && assumed;
            prop_assert_eq!(holds(&whole, &at), expected, "{} at {:?}", whole.text, at.shape);
        }
    }
}
