//! Parsing of tokens, without conclusions: attributes, signatures, types, names.

pub(crate) mod attributes;
pub(crate) mod cfg;
pub(crate) mod device;
pub(crate) mod format_strings;
pub(crate) mod hygiene;
pub(crate) mod instrument;
pub(crate) mod item_attributes;
pub(crate) mod lifetimes;
pub(crate) mod parameter_kind;
pub(crate) mod parameters;
pub(crate) mod referents;
pub(crate) mod rename;
pub(crate) mod scopes;
pub(crate) mod signature;
pub(crate) mod surroundings;
pub(crate) mod syntax;
pub(crate) mod types;
