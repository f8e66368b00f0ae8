//! The one test binary. Modules are named after their level: `apiserver_` needs a real control
//! plane, `e2e_` the controller as well.
//!
//! All of it runs against real parts; `cargo xtask test` sets them up.

mod apiserver_bmc;
mod apiserver_control_run;
mod apiserver_machine;
mod apiserver_models;
mod apiserver_resources;
mod apiserver_words;
mod e2e_api_faults;
mod e2e_bmc_faults;
mod e2e_configuration;
mod e2e_kdump;
mod e2e_killed;
mod e2e_ladder;
mod e2e_lost_node;
mod e2e_methods;
mod e2e_paths;
mod e2e_people;
mod e2e_rack;
mod e2e_refusals;
mod e2e_release;
mod e2e_signs;
mod e2e_storm;
mod e2e_story;
mod e2e_vetoes;
mod e2e_wiring;
mod e2e_words;
mod examples_bad_input;
mod examples_files;
mod plugins_agent;
mod plugins_aws;
mod plugins_azure;
mod plugins_brocade_rest;
mod plugins_components;
mod plugins_gce;
mod plugins_ipmi;
mod plugins_kdump;
mod plugins_libvirt;
mod plugins_openstack;
mod plugins_ovirt;
mod plugins_proxmox;
mod plugins_redfish;
mod plugins_snmp;
mod plugins_vmware;
mod plugins_webhook;
mod sim_breaker;
mod sim_control_plane;
mod sim_headroom;
mod sim_night;
mod sim_report;
mod sim_signs;
mod sim_storage_lease;
mod sim_stories;
mod sim_sweep;
mod sim_wiring;
