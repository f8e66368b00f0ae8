//! The API client of the simulated cluster, and the faults between it and its API server.

pub mod api_faults;
pub mod client;
pub mod driver;
pub mod interceptor;
pub mod repeats;
