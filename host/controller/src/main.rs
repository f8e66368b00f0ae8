//! The binary `node-remedy`.

fn main() {}
