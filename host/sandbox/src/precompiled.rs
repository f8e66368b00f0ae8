//! The two places where machine code is taken on trust, and the only `unsafe` of the host.
//! Deserialising code from anywhere else is running it: no other file may.

use std::io::Read as _;

use flate2::read::DeflateDecoder;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Code that our own compiling child wrote to its pipe, for bytes we gave it.
#[expect(unsafe_code, reason = "machine code from our own child process")]
pub(crate) fn from_own_child(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes came over a pipe from a process this one started from its own executable,
    // which does nothing but `Engine::precompile_component` (see `compile`). wasmtime checks that
    // the same version and configuration made them.
    unsafe { Component::deserialize(engine, code) }
}

/// Code that stands in this very binary, packed ([`crate::compile::pack`]). Whoever could change it could
/// change this function.
#[expect(unsafe_code, reason = "machine code embedded in our own binary")]
pub(crate) fn from_own_binary(
    engine: &Engine,
    packed: &'static [u8],
) -> wasmtime::Result<Component> {
    let mut code = Vec::new();
    DeflateDecoder::new(packed).read_to_end(&mut code)?;
    // SAFETY: the bytes are part of the program image, made by the build's own run of
    // `node-remedy-compile`. wasmtime checks that the same version and configuration made them.
    unsafe { Component::deserialize(engine, &code) }
}
