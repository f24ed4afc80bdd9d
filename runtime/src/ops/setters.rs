//! Methods of the parameters of windows.

/// Methods that set a field of all dimensions to one value.
macro_rules! setters {
    ($config:ident: $($(#[$doc:meta])* $name:ident;)*) => {
        impl<const N: usize> $config<N> {$(
            $(#[$doc])*
            #[must_use]
            pub const fn $name(mut self, $name: usize) -> Self {
                self.$name = [$name; N];
                self
            }
        )*}
    };
}
pub(super) use setters;
