//! Compiles a plugin ahead of time: `node-remedy-compile IN.wasm OUT.cwasm`, for the plugins that
//! are embedded in the binary; the code is packed. With `--child` it is the bounded process that compiles plugins
//! from outside. Not a check of the plugin: the host inspects it before.

use std::path::Path;
use std::process::ExitCode;

use node_remedy_sandbox::compile;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [compile::CHILD_ARGUMENT, ..] => compile::child_main(),
        [wasm, code] => match compile_file(Path::new(wasm), Path::new(code)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("failed to compile {wasm}: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: node-remedy-compile IN.wasm OUT.cwasm");
            ExitCode::from(2)
        }
    }
}

fn compile_file(wasm: &Path, code: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write(code, compile::pack(&compile::compile(&std::fs::read(wasm)?)?)?)?;
    Ok(())
}
