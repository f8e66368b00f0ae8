//! What `node-remedy check` is given beside files: stdin and a shell's `<(…)` are read to their end; a
//! pipe by name and a device, which may never end, are refused.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use node_remedy_tests::Controller;

use crate::sim_run::examples;

/// What bash makes of a line in which `$CHECK` is the command and `$FILE` an example.
fn said(line: &str) -> Result<(String, Option<i32>)> {
    let mut shell = Command::new("bash");
    let check = format!("{} check", Controller::binary().display());
    shell.args(["-c", line]).env("CHECK", check).stdin(Stdio::null());
    shell.env("FILE", examples().join("config/remedy.yaml"));
    let ran = shell.output().context("bash is there")?;
    let both = [ran.stdout, ran.stderr].concat();
    Ok((String::from_utf8_lossy(&both).into_owned(), ran.status.code()))
}

#[test]
fn stdin_and_what_a_shell_opens_are_read() -> Result<()> {
    for line in [
        "$CHECK - <$FILE",
        "cat $FILE | $CHECK -",
        "cat $FILE | $CHECK /dev/stdin",
        "$CHECK <(cat $FILE)",
    ] {
        let good = ("1 documents, 0 errors, 0 warnings\n".to_owned(), Some(0));
        assert_eq!(said(line)?, good, "{line}");
    }
    let (endless, code) = said("$CHECK - </dev/zero")?;
    assert_eq!(code, Some(1));
    assert!(
        endless.contains("-: failed to read it: found more than the 1048576 bytes"),
        "{endless}"
    );
    Ok(())
}

#[test]
fn a_named_pipe_and_a_device_are_refused() -> Result<()> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pipes");
    std::fs::create_dir_all(&folder)?;
    let pipe = folder.join("nobody-writes").display().to_string();
    ensure!(
        Command::new("sh")
            .args(["-c", &format!("rm -f {pipe} && mkfifo {pipe}")])
            .status()?
            .success()
    );
    for (file, found) in [(&*pipe, "a named pipe, which may never end"), ("/dev/zero", "a device")]
    {
        let (refusal, code) = said(&format!("$CHECK {file}"))?;
        let expected =
            format!("{file}: failed to read it: found {found}, expected a file, or - for stdin");
        assert!(refusal.contains(&expected), "{refusal}");
        assert_eq!(code, Some(1));
    }
    Ok(())
}
