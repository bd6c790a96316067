/// Declares diagnostic types and converts each [`From`](std::convert::From) its fields into a [`Diagnostic`](super::Diagnostic) or a `Vec` of one.
///
/// The severity may name a rule. Each part calls the equally named method of [`Diagnostic`](super::Diagnostic); `at`
/// and `related` need a [`Span`](super::Span) field. Texts are format strings. `?FIELD` adds the part if the field is
/// `Some`, `*FIELD` for each element.
///
/// ```
/// use cubinder_source::diagnostic::{Diagnostic, Source, Span};
///
/// cubinder_source::diagnostics! {
///     /// Two plugins of one library have one name.
///     pub(crate) struct PluginTwice { name: String, second: Span, first: Span, near: Option<String>, plans: Vec<String> }
///     error(PLUGIN_TWICE) "`{name}` is declared twice" {
///         at second: "declared again";
///         related first: "first declared here";
///         note *plans: "`{plans}` uses it";
///         help ?near: "rename it to `{near}`";
///     }
/// }
///
/// let source = Source::new("a.toml", "name");
/// let span = Span::new(&source, 0..4);
/// let twice = PluginTwice { name: "f".into(), second: span.clone(), first: span, near: None, plans: vec!["a".into()] };
/// let error = Diagnostic::from(twice);
/// assert_eq!(error.message, "`f` is declared twice");
/// assert_eq!((error.related.len(), error.help), (1, None));
/// assert_eq!(error.notes, ["`a` uses it"]);
/// ```
#[macro_export]
macro_rules! diagnostics {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? $({ $($(#[$doc:meta])* $field:ident: $ty:ty),* $(,)? })?
        $severity:ident $(($rule:ident))? $message:literal
        { $($part:ident $($span:ident)? $(? $some:ident)? $(* $each:ident)?: $text:literal;)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$life>)? { $($($(#[$doc])* $vis $field: $ty),*)? }

        impl $(<$life>)? From<$name $(<$life>)?> for $crate::diagnostic::Diagnostic {
            fn from(found: $name $(<$life>)?) -> Self {
                let $name { $($($field),*)? } = found;
                let diagnostic = $crate::diagnostic::Diagnostic::$severity(format!($message));
                $(let diagnostic = diagnostic.code($crate::rules::$rule);)?
                $(let diagnostic = $crate::diagnostics!(
                    @part diagnostic, $part ($($span)?) ($(? $some)? $(* $each)?) $text
                );)*
                diagnostic
            }
        }

        impl $(<$life>)? From<$name $(<$life>)?> for Vec<$crate::diagnostic::Diagnostic> {
            fn from(found: $name $(<$life>)?) -> Self {
                vec![found.into()]
            }
        }
    )*};
    (@part $diagnostic:ident, $part:ident ($($span:ident)?) () $text:literal) => {
        $diagnostic.$part($($span,)? format!($text))
    };
    (@part $diagnostic:ident, $part:ident ($($span:ident)?) (? $some:ident) $text:literal) => {
        match $some {
            Some($some) => $diagnostic.$part($($span,)? format!($text)),
            None => $diagnostic,
        }
    };
    (@part $diagnostic:ident, $part:ident ($($span:ident)?) (* $each:ident) $text:literal) => {
        $each.into_iter().fold($diagnostic, |diagnostic, $each| diagnostic.$part($($span,)? format!($text)))
    };
}
