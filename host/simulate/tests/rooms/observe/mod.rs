//! Of `host/observe`.

mod config;
mod device_quarantine;
mod incident_rate;
mod kdump;
mod reflector;
mod storage_leases;
mod vetoes;
