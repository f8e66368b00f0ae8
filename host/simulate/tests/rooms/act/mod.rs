//! Of `host/act`.

mod budget;
mod calls;
mod delete;
mod node_lock;
