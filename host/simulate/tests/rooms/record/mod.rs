//! Of `host/record`.

mod audit_file;
mod sentences;
