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

#[cfg(test)]
mod tests {
    use crate::format::Format;
    use crate::node::{BinaryOp, Builtin, DeviceFact, UnaryOp};

    /// The variants' names in the order of the numbers that serialized models hold.
    fn names<T: Copy + serde::Serialize>(all: &[T], name: fn(T) -> &'static str) -> String {
        let number = |variant: &T| postcard::to_allocvec(variant).unwrap();
        let numbers: Vec<u8> = all.iter().flat_map(number).collect();
        let expected: Vec<u8> = (0..).take(all.len()).collect();
        assert_eq!(numbers, expected);
        all.iter().map(|variant| name(*variant)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn serialized_numbers_stay() {
        let formats = "linear chw2 chw4 chw32 hwc hwc8 hwc16 dhwc dhwc8 cdhw32";
        assert!(names(&Format::ALL, Format::name).starts_with(formats));
        let facts = "sms shared_bytes capability";
        assert!(names(&DeviceFact::ALL, DeviceFact::name).starts_with(facts));
        assert!(names(&UnaryOp::ALL, UnaryOp::symbol).starts_with("- not"));
        let operators = "+ - * // % / == != < <= > >= and or";
        assert!(names(&BinaryOp::ALL, BinaryOp::symbol).starts_with(operators));
        let functions = "min max abs ceil_div len get range sum prod sqrt rsqrt exp log float int";
        assert!(names(&Builtin::ALL, Builtin::name).starts_with(functions));
    }
}
