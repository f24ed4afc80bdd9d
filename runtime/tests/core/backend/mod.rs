//! The backend below the core: what fails there, what another thread invalidates, and several at once.

mod faults;
mod invalidated;
mod threads;
