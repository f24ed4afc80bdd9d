//! The numbers that stand for parameters of a launch.

use super::definition::Number;

/// For each parameter, the number that replaces it.
pub(crate) type Constants = [Option<Number>];

/// A bit for each parameter that is a number.
pub(super) fn fixed(constants: &Constants) -> u32 {
    let numbers = constants.iter().enumerate();
    numbers.fold(0, |bits, (i, constant)| bits | u32::from(constant.is_some()) << i)
}
