//! Graph objects: their buckets, their modes, and captures ahead of time.

mod buckets;
mod capture_all_failures;
mod modes;
mod numerics;
