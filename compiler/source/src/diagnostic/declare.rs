//! Diagnostics as types: fields that other code can match on, and one place that renders them.

/// Declares the type of a diagnostic and converts it [`From`](std::convert::From) its fields into a [`Diagnostic`](super::Diagnostic).
///
/// The severity takes the rule of the catalogue, if there is one. Each following line calls the method of
/// [`Diagnostic`](super::Diagnostic) of that name; `at` and `related` take a field that is a [`Span`](super::Span). Texts
/// are format strings over the fields. A diagnostic with optional parts implements `From` itself.
///
/// ```
/// use cubinder_source::diagnostic::{Diagnostic, Source, Span};
///
/// cubinder_source::diagnostic! {
///     /// Two plugins of one library have one name.
///     pub(crate) struct PluginTwice { name: String, second: Span, first: Span }
///     error(PLUGIN_TWICE): "`{name}` is declared twice";
///     at second: "declared again";
///     related first: "first declared here";
///     help: "rename one of them";
/// }
///
/// let source = Source::new("a.toml", "name");
/// let span = Span::new(&source, 0..4);
/// let error = Diagnostic::from(PluginTwice { name: "f".into(), second: span.clone(), first: span });
/// assert_eq!(error.message, "`f` is declared twice");
/// assert_eq!(error.related.len(), 1);
/// ```
#[macro_export]
macro_rules! diagnostic {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? { $($(#[$doc:meta])* $field:ident: $ty:ty),* $(,)? }
        $severity:ident $(($rule:ident))?: $message:literal;
        $($part:ident $($span:ident)?: $text:literal;)*
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$life>)? { $($(#[$doc])* $vis $field: $ty),* }

        impl $(<$life>)? From<$name $(<$life>)?> for $crate::diagnostic::Diagnostic {
            fn from(found: $name $(<$life>)?) -> Self {
                let $name { $($field),* } = found;
                let diagnostic = $crate::diagnostic::Diagnostic::$severity(format!($message));
                $(let diagnostic = diagnostic.code($crate::rules::$rule);)?
                $(let diagnostic = diagnostic.$part($($span,)? format!($text));)*
                diagnostic
            }
        }
    };
}
