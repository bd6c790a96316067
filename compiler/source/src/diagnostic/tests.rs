use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn sample() -> Arc<Source> {
    Source::new("m.toml", "schema = 1\n[plugin]\n\tname = \"größe\"\r\nversion = 1\n")
}

fn span_of(source: &Arc<Source>, part: &str) -> Span {
    let start = source.text.find(part).expect("the part is in the text");
    Span::new(source, start..start + part.len())
}

#[test]
fn looks_like_rustc() {
    let source = sample();
    let other = Source::new("kernel.cu", "__global__ void f(int n) {}\n");
    let diagnostic = Diagnostic::error("`name` is not an identifier")
        .at(span_of(&source, "größe"), "found `ö`")
        .related(span_of(&source, "schema"), "the edition")
        .related(span_of(&other, "int n"), "used here")
        .note("names contain letters, digits and `_`")
        .help("write `groesse`");
    assert_snapshot!(render_one(&diagnostic, Colour::Plain));
}

#[test]
fn without_a_place() {
    let text = render(&[Diagnostic::error("no manifest found").help("create one")], Colour::Plain);
    assert_snapshot!(text);
}

#[test]
fn colour_adds_nothing_but_escapes() {
    let source = sample();
    let diagnostic =
        Diagnostic::warning("`x` is never used").at(span_of(&source, "version"), "").note("a fact");
    let coloured = render_one(&diagnostic, Colour::Ansi);
    assert!(coloured.contains('\u{1b}'));
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').expect("a complete escape").1;
    }
    bare.push_str(rest);
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&bare), trimmed(&render_one(&diagnostic, Colour::Plain)));
}

#[test]
fn the_end_of_the_text() {
    let source = sample();
    let end = source.text.len();
    let diagnostic = Diagnostic::error("unexpected end").at(Span::new(&source, end..end), "here");
    assert_snapshot!(render_one(&diagnostic, Colour::Plain));
}

#[test]
fn several_lines_show_the_first() {
    let source = sample();
    let diagnostic = Diagnostic::error("too much").at(Span::new(&source, 11..source.text.len()), "from here");
    assert_snapshot!(render_one(&diagnostic, Colour::Plain));
}

#[test]
fn json_says_everything() {
    let source = sample();
    let diagnostic = Diagnostic::error("wrong")
        .at(span_of(&source, "größe"), "this")
        .related(span_of(&source, "schema"), "that")
        .note("because")
        .help("fix it");
    let text = to_json_lines(&[diagnostic]).expect("it is JSON");
    assert_eq!(text.lines().count(), 1);
    let value: serde_json::Value = serde_json::from_str(&text).expect("it parses");
    assert_snapshot!(serde_json::to_string_pretty(&value).expect("it prints"));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let source = Source::new("m.toml", "a\u{1b}[31mb\u{8}\u{9b}1m\n");
    let diagnostic = Diagnostic::error("bad \u{1b}[2J")
        .at(Span::new(&source, 0..3), "\u{7}")
        .note("n\u{1b}")
        .help("\u{9b}");
    let text = render_one(&diagnostic, Colour::Plain);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn of_very_many_the_rest_is_counted() {
    let source = sample();
    let all: Vec<Diagnostic> = (0..250)
        .map(|number| match number % 5 {
            0 => Diagnostic::warning("odd").at(span_of(&source, "schema"), "here"),
            _ => Diagnostic::error("wrong").at(span_of(&source, "schema"), "here"),
        })
        .collect();
    let text = render(&all, Colour::Plain);
    assert_eq!(text.matches("error: wrong").count(), 80);
    assert!(text.ends_with("error: 120 more errors\n\n"), "{text}");
    let warnings = vec![Diagnostic::warning("odd"); 101];
    assert!(render(&warnings, Colour::Plain).ends_with("warning: 1 more warning\n\n"));
    assert!(!render(&all[..100], Colour::Plain).contains("more"));
    assert_eq!(to_json_lines(&all).expect("it is JSON").lines().count(), 250);
}

#[test]
fn lines_far_away_do_not_count() {
    let line = "key = 1\n".repeat(3);
    let shown = |before: usize, after: usize| {
        let text = line.repeat(before) + "wrong = 2\n" + &line.repeat(after);
        let source = Source::new("m.toml", text);
        render_one(&Diagnostic::error("no").at(span_of(&source, "wrong"), "this"), Colour::Plain)
    };
    assert_eq!(shown(10, 0), shown(10, 3000));
    assert_eq!(
        shown(1000, 1).replace("3001", "31").replace("    |", "  |").replace("   -->", " -->"),
        shown(10, 1)
    );
}

#[test]
fn sorts_by_place() {
    let (a, b) = (Source::new("a", "0123456789"), Source::new("b", "0123456789"));
    let at = |source: &Arc<Source>, start: usize, name: &str| {
        Diagnostic::error(name).at(Span::new(source, start..start), "")
    };
    let mut list = vec![
        Diagnostic::error("nowhere"),
        at(&b, 5, "b5"),
        at(&a, 3, "a3"),
        at(&b, 1, "b1"),
        at(&a, 3, "a3 again"),
        at(&a, 0, "a0"),
    ];
    sort(&mut list);
    let names: Vec<&str> = list.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(names, ["b1", "b5", "a0", "a3", "a3 again", "nowhere"]);
}

#[test]
fn places_count_characters() {
    let source = Source::new("t", "äb\r\nc");
    assert_eq!(source.line_column(0), LineColumn { line: 1, column: 1 });
    assert_eq!(source.line_column(1), LineColumn { line: 1, column: 1 });
    assert_eq!(source.line_column(2), LineColumn { line: 1, column: 2 });
    assert_eq!(source.line_column(5), LineColumn { line: 2, column: 1 });
    assert_eq!(source.line_column(99), LineColumn { line: 2, column: 2 });
}

#[test]
fn messages_of_many_lines_take_linear_time() {
    const LINES: usize = 50_000;
    let source = Source::new("m.toml", "a = 1\n".repeat(LINES));
    let warning = |line: usize| {
        let text = format!("`a{}` is never used", line % (LINES / 2));
        Diagnostic::warning(text).at(Span::new(&source, line * 6..line * 6 + 1), "here")
    };
    let started = std::time::Instant::now();
    let mut all: Vec<Diagnostic> = (0..LINES).map(warning).collect();
    dedup(&mut all);
    assert_eq!(all.len(), LINES);
    let folded = fold(all.clone(), |_| true);
    assert_eq!(folded.len(), LINES / 2);
    let alike = all.iter().cloned().map(|one| Diagnostic { message: "alike".into(), ..one });
    let mut alike: Vec<Diagnostic> = alike.collect();
    dedup(&mut alike);
    assert_eq!(alike.len(), LINES);
    assert_eq!(fold(alike, |_| true).len(), 1);
    for line in 0..LINES {
        assert_eq!(source.line_column(line * 6), LineColumn { line: line + 1, column: 1 });
    }
    let limit = std::time::Duration::from_secs(30);
    assert!(started.elapsed() < limit, "{:?}", started.elapsed());
}

fn hard_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r".to_owned()),
        Just("\t".to_owned()),
        Just("日本語".to_owned()),
        Just("e\u{301}".to_owned()),
        Just("🦀".to_owned()),
        Just("\u{1b}[0m".to_owned()),
        Just("\u{0}".to_owned()),
        Just("\u{202e}".to_owned()),
        Just(" ".repeat(200)),
        "[ -~]{0,12}",
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_spans_of_any_text_render(
        text in hard_text(),
        spans in proptest::collection::vec((0usize..400, 0usize..400), 1..6),
        label in "[a-z \n\t]{0,8}",
    ) {
        let source = Source::new("m.toml", text);
        let mut diagnostic = Diagnostic::error(label.clone());
        for (index, (start, end)) in spans.into_iter().enumerate() {
            let span = Span::new(&source, start..end);
            diagnostic = if index == 0 { diagnostic.at(span, label.clone()) } else { diagnostic.related(span, label.clone()) };
        }
        let plain = render_one(&diagnostic, Colour::Plain);
        prop_assert!(plain.starts_with("error"));
        prop_assert!(render_one(&diagnostic, Colour::Ansi).contains("error"));
        to_json_lines(&[diagnostic]).expect("it is JSON");
    }
}

#[test]
fn a_message_is_told_once_for_a_place() {
    let at = |message: &str, note: &str| Diagnostic::error(message).note(note);
    let mut said = vec![at("a", "1"), at("b", "1"), at("a", "1"), at("a", "2"), at("b", "1")];
    super::dedup(&mut said);
    assert_eq!(said, [at("a", "1"), at("b", "1"), at("a", "2")]);
}

proptest! {
    #[test]
    fn places_are_counted_from_the_start(text in hard_text(), byte in 0_usize..80) {
        let at = (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let before: Vec<&str> = text[..at].split('\n').collect();
        let place = Source::new("t", text.as_str()).line_column(byte);
        prop_assert_eq!((place.line, place.column), (before.len(), before.last().unwrap().chars().count() + 1));
    }
}
