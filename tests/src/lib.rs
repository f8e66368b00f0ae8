//! Fixtures for tests against real parts, in the order a test needs them.
//!
//! [`ControlPlane`] is a real Kubernetes control plane; [`Bmc`] a real management controller's
//! simulator; [`Machine`] a node's hardware with its kubelet, tied to that BMC's power; [`Storage`]
//! and [`Attacher`] the volumes behind the pods; [`Cluster`] all of them together. [`Controller`]
//! is the program under test, [`FaultyApi`] the way between it and the API server when that has
//! faults, and [`Observer`] judges it from outside.
//!
//! Nothing here decides anything about fencing, and nothing here shares code with the controller:
//! a mistake made in both would be invisible.

pub mod attacher;
pub mod attacks;
pub mod audit;
pub mod by_hand;
pub mod cluster;
pub mod control_plane;
pub mod controller;
pub mod crowd;
pub mod ec2;
pub mod faulty_api;
pub mod fence_command;
pub mod fos;
pub mod hardware;
pub mod ipmi;
pub mod kubelet;
pub mod libvirt;
pub mod machine;
pub mod mirror;
pub mod observer;
pub mod openstack;
pub mod ovirt;
pub mod page;
pub mod pki;
pub mod process;
pub mod proxmox;
pub mod public_cloud;
pub mod python;
pub mod redfish;
pub mod registry;
pub mod remedy;
pub mod snmp;
pub mod stand_in;
pub mod storage;
pub mod time;
pub mod timings;
pub mod user;
pub mod vsphere;
pub mod webhook;
pub mod weigh;

pub use attacher::Attacher;
pub use cluster::Cluster;
pub use control_plane::ControlPlane;
pub use controller::Controller;
pub use faulty_api::FaultyApi;
pub use fence_command::FenceCommand;
pub use hardware::Pace;
pub use ipmi::Bmc;
pub use machine::Machine;
pub use observer::Observer;
pub use storage::Storage;
pub use timings::Timings;
