//! Foreign vtables, and compile-time checks of foreign layouts.

macro_rules! layout {
    ($unit:expr; $($type:ty = $size:literal { $($field:ident = $offset:literal),* };)*) => {
        const _: () = {
            $(
                assert!(size_of::<$type>() == $size * $unit);
                $(assert!(std::mem::offset_of!($type, $field) == $offset * $unit);)*
            )*
        };
    };
}

/// Declares slot structs: bracketed fields, then method pointers.
macro_rules! slots {
    ($(
        $(#[$meta:meta])*
        $name:ident: extern $abi:tt fn($this:ty), [$($field:ident: $type:ty),*]
        { $($(#[$doc:meta])* $method:ident($($arg:ty),*) $(-> $result:ty)?;)* }
    )*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Debug, Clone, Copy)]
            pub struct $name {
                $(
                    /// The slots before the methods.
                    pub $field: $type,
                )*
                $($(#[$doc])* pub $method: unsafe extern $abi fn($this $(, $arg)*) $(-> $result)?,)*
            }
        )*
    };
}
