//! Of `host/controller`.

mod refusals;
