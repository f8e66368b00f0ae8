//! What `wit/fence.wit` becomes on the host's side. Generated at compile time; nothing here is
//! public: callers see the plain types of [`crate::call`] instead, which no WIT change can break.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::pedantic,
    reason = "generated code; its documentation is the WIT file"
)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "fence-method",
    imports: { default: async | trappable },
    exports: { default: async },
    with: {
        "node-remedy:fence/credentials.secret": crate::handles::SecretHandle,
        "node-remedy:fence/credentials.key": crate::handles::DerivedKey,
        "node-remedy:fence/net.datagram": crate::handles::DatagramHandle,
        "node-remedy:fence/net.connection": crate::handles::ConnectionHandle,
    },
});
