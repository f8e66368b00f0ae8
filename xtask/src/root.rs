//! Where things lie, and how cargo is called.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
});

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    &ROOT
}

/// A path below the root.
pub(crate) fn at(path: &str) -> PathBuf {
    ROOT.join(path)
}

/// cargo, in the root, building into `target` wherever this process was built: other programs look
/// for its results there.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).env("CARGO_TARGET_DIR", at("target"));
    // Its output goes to a log, or is read.
    command.env("CARGO_TERM_COLOR", "never");
    if is_ci() {
        // Who builds once has no use for what a second build would start from, nor for line tables: gigabytes.
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    }
    // rustup's choice for this process must not bind the child: the toolchain file decides.
    for inherited in ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(inherited);
    }
    command
}

/// The build of a program of `tests/` together with node-remedy, which it starts. Alone it would need
/// fewer features of their dependencies, and cargo would build all of these once more.
pub(crate) fn with_node_remedy(program: &str) -> Command {
    let mut build = cargo();
    build.args(["build", "--package", "node-remedy", "--bin", "node-remedy"]);
    build.args(["--package", "node-remedy-tests", "--bin", program]);
    build
}

/// Whether a build system runs this, which wants a missing part to be a failure.
#[expect(clippy::disallowed_methods, reason = "build systems announce themselves in this way only")]
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Finds a program as a shell would.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Debian keeps daemons where only root's PATH looks.
    let more = ["/usr/sbin", "/sbin", "/usr/local/go/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|folder| folder.join(name)).find(|at| at.is_file())
}
