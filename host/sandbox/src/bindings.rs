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

/// The same for the world of watchers, which shares the interfaces that both import.
pub(crate) mod watcher {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "datagram-watcher",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "node-remedy:fence/op": crate::bindings::node_remedy::fence::op,
            "node-remedy:fence/types": crate::bindings::node_remedy::fence::types,
        },
    });
}

/// And for the world of remedies.
pub(crate) mod remedy {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "remedy-plugin",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "node-remedy:fence/op": crate::bindings::node_remedy::fence::op,
            "node-remedy:fence/types": crate::bindings::node_remedy::fence::types,
        },
    });
}
