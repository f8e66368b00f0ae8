//! Whose turn it is at a device: one session at a time, because a BMC has few and answers strangely to two.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use node_remedy_api::plan::Method;
use node_remedy_sandbox::Grants;
use tokio::sync::Mutex;

/// Whose turn it is at each device.
#[derive(Default)]
pub struct DeviceMutexes(RefCell<BTreeMap<String, Rc<Mutex<()>>>>);

impl DeviceMutexes {
    /// The turn at the device of a method, for a call with these grants.
    pub(super) fn at(&self, method: &Method, grants: &Grants) -> Rc<Mutex<()>> {
        let mut device_mutexes = self.0.borrow_mut();
        // Nobody waits for those that nobody holds.
        device_mutexes.retain(|_, turn| Rc::strong_count(turn) > 1);
        device_mutexes.entry(device(method, grants)).or_default().clone()
    }
}

/// Two plugins that speak with one address speak with one device, whatever each calls it. Instances of a cloud
/// share its address, and are devices of their own all the same.
fn device(method: &Method, grants: &Grants) -> String {
    let plugin = method.plugin.as_deref().unwrap_or_default();
    let address = method.parameters.get("address");
    let is_own = address.is_some_and(|address| method.device == format!("{plugin}/{address}"));
    let address = grants.endpoints().values().map(|endpoint| endpoint.address).min();
    match address.filter(|_| is_own) {
        Some(address) => place(address),
        None => method.device.clone(),
    }
}

/// Behind the ports of our own machine there is a device each.
fn place(address: SocketAddr) -> String {
    match address.ip() {
        own if own.is_loopback() => address.to_string(),
        device => device.to_string(),
    }
}
