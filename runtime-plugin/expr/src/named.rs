/// Declares an enum of named constants, serialized by position: append only.
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
            /// All variants, in the order of error messages.
            pub const ALL: [$type; [$($type::$variant),*].len()] = [$($type::$variant),*];

            /// Returns the name in expressions and manifests.
            #[must_use]
            pub const fn $name(self) -> &'static str {
                match self { $($type::$variant => $text),* }
            }

            $(#[$constant_doc])*
            #[must_use]
            $visibility const fn $constant(self) -> $constant_type {
                match self { $($type::$variant => $value),* }
            }

            /// Returns the variant with this name.
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
