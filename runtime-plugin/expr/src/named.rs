//! Enums whose variants have names and other constants.

/// Declares an enum with the name of each variant, as expressions and manifests write it, and one more constant for each.
///
/// The order of the variants is their number in serialized models: append only.
macro_rules! named {
    (
        $(#[$meta:meta])* $type:ident, $name:ident;
        $(#[$constant_doc:meta])* $visibility:vis $constant:ident: $constant_type:ty
        { $($(#[$doc:meta])* $variant:ident = $text:literal, $value:expr;)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $type { $($(#[$doc])* $variant),* }

        impl $type {
            /// Every variant, in the order in which errors list them.
            pub const ALL: [$type; [$($type::$variant),*].len()] = [$($type::$variant),*];

            /// How it is written.
            #[must_use]
            pub const fn $name(self) -> &'static str {
                match self { $($type::$variant => $text),* }
            }

            $(#[$constant_doc])*
            #[must_use]
            $visibility const fn $constant(self) -> $constant_type {
                match self { $($type::$variant => $value),* }
            }

            /// The variant that is written so.
            #[must_use]
            pub fn from_name(name: &str) -> Option<$type> {
                Self::ALL.into_iter().find(|variant| variant.$name() == name)
            }
        }
    };
}
