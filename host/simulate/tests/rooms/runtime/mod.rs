//! Of `host/runtime`.

mod leader_election;
