//! A function with boundaries as data: the actions of its host code in order, and the values that enter and
//! leave each segment.
//!
//! `analyze` makes it, `check` reads it, `expand` writes it down. Nothing here concludes anything.

mod boundary;
mod device_flow;
mod header;
mod host_code;
mod plan;
mod segment;
mod value;

pub(crate) use boundary::{Carrier, PiecewiseCall, Region};
pub(crate) use device_flow::{
    Alternatives, Changed, DeviceCode, DeviceFlow, DeviceFlowKind, End, How, Limit, ReadByArms, Rounds,
};
pub(crate) use header::Header;
pub(crate) use host_code::{Block, Closure, HostCode, HostLet, Part, Run};
pub(crate) use plan::{Location, PlanItem};
pub(crate) use segment::{
    Asked, Ending, Guard, GuardPart, Inside, LiveIn, LiveOut, Probe, Segment, Step, this,
};
pub(crate) use value::{Arm, Control, ControlKind, Otherwise, Value, Wrapper};
