//! What the crates around this file compile, each under its own rules: an edition, a name of the runtime,
//! no prelude, names of ours taken by the user, every warning and pedantic lint an error.
//!
//! These are its macros; `model.rs` is the rest.

/// A graph made by a macro: names, types, dimensions and bodies arrive as fragments.
macro_rules! graph {
    ($(#[$doc:meta])* $name:ident($x:ident: $element:ty, $width:expr) => $body:block) => {
        $(#[$doc])*
        #[graphable]
        pub fn $name(#[host] #[dims(B, { $width })] $x: &Tensor<$element>) -> Result<Tensor<$element>> $body
    };
}

/// A function whose boundaries the macro writes itself, around expressions that it is given.
macro_rules! driven_graph {
    ($name:ident, $x:ident, $y:ident, $eager:expr, $rest:expr) => {
        /// Made by a macro.
        ///
        /// # Errors
        /// Shapes that do not fit.
        #[graphable]
        pub fn $name(#[host] $x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let $y = ops::scale($x, 2.0)?;
            let $y = #[eager]
            $eager;
            $rest
        }
    };
}

/// Parameters made by a macro.
macro_rules! weights {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty),* }) => {
        $(#[$doc])*
        #[derive(Params)]
        pub struct $name {
            $(pub(crate) $field: $ty,)*
            #[config]
            pub(crate) eps: f32,
        }
    };
}
