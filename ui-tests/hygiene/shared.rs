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

/// A function that decides on the device: a variable of the macro has the name of one that it is given.
macro_rules! decided_graph {
    ($name:ident, $h:ident, $predicate:expr, $then:expr) => {
        /// Made by a macro.
        ///
        /// # Errors
        /// Shapes that do not fit.
        #[graphable]
        pub fn $name(#[host] $h: &Tensor<f32>, #[host] p: &Scalar<bool>) -> Result<Tensor<f32>> {
            let mut h = ops::scale($h, 2.0)?;
            let mut rounds = ops::full(h.scope(), (), 0i32)?;
            #[device(limit = 4)]
            while ops::lt(&rounds, 2)? {
                rounds = ops::add(&rounds, 1)?;
                h = ops::add(&h, $h)?;
            }
            let value = #[device]
            if $predicate { $then } else { ops::neg(&h)? };
            #[device]
            if p {
                h = ops::add(&h, &value)?;
            } else {
                h = value;
            }
            #[device]
            match rounds {
                0 => ops::neg(&h),
                2 | 3 => ops::scale(&h, 0.5),
                _ => ops::exp(&h),
            }
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
