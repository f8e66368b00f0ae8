//! Child processes that never outlive the tests, and ports for them.
//!
//! A child is killed when its handle is dropped and, by the kernel, when the test process dies in
//! any other way.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, mpsc};

use anyhow::{Context, Result, anyhow};

/// How much of a log is told when a process ends unasked.
const LOG_TAIL_LINES: usize = 15;

/// A running child process with its log file.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

/// What to start.
#[derive(Debug)]
pub struct Program<'a> {
    /// The name in messages and of the log file.
    pub name: &'a str,
    /// The executable.
    pub path: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// The folder that gets NAME.log.
    pub logs: &'a Path,
}

impl Process {
    /// Starts a program with its output in `logs/NAME.log`.
    pub fn start(program: &Program<'_>) -> Result<Self> {
        let log = program.logs.join(format!("{}.log", program.name));
        let out = File::options().create(true).append(true).open(&log)?;
        // setpriv asks the kernel to kill the child with its parent, which only unsafe code could
        // do from here; it then becomes the program, so the pid is the program's.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program.path).args(program.arguments);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = spawn_from_lasting_thread(command)
            .with_context(|| format!("failed to start {}", program.path.display()))?;
        Ok(Self { name: program.name.to_owned(), child, log })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file with its output.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Fails, with the end of its log, when the process has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default();
        Err(anyhow!("{} ended with {status}:\n{}", self.name, tail.join("\n")))
    }

    /// Whether the process has ended by itself or by a signal.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Sends SIGTERM: a polite end.
    pub fn terminate(&self) -> Result<()> {
        self.signal("-TERM")
    }

    /// Sends SIGSTOP: it is there and does nothing.
    pub fn hang(&self) -> Result<()> {
        self.signal("-STOP")
    }

    /// Sends SIGCONT: it goes on.
    pub fn go_on(&self) -> Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let status = Command::new("kill").args([signal, &self.pid().to_string()]).status()?;
        status.success().then_some(()).with_context(|| format!("failed to signal {}", self.name))
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill9(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already, which is all that a drop wants.
        let _ = self.kill9();
    }
}

type Spawning = (Command, mpsc::Sender<std::io::Result<Child>>);

/// The kernel's "parent" is the thread that spawned, so all children come from one thread that
/// lasts as long as this process.
static SPAWNER: LazyLock<mpsc::Sender<Spawning>> = LazyLock::new(|| {
    let (orders, inbox) = mpsc::channel::<Spawning>();
    std::thread::spawn(move || {
        for (mut command, answer) in inbox {
            // The asker waits for this answer; it can only be gone with the whole process.
            let _ = answer.send(command.spawn());
        }
    });
    orders
});

fn spawn_from_lasting_thread(command: Command) -> Result<Child> {
    let (answer, child) = mpsc::channel();
    SPAWNER.send((command, answer)).map_err(|_| anyhow!("failed to reach the spawning thread"))?;
    Ok(child.recv()??)
}

/// TCP ports on loopback that nobody listens on. All are held until all are found, so that they
/// differ.
pub fn free_tcp_ports<const N: usize>() -> Result<[u16; N]> {
    let held: Vec<_> =
        (0..N).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    let ports: Vec<_> = held
        .iter()
        .map(|listener| listener.local_addr().map(|address| address.port()))
        .collect::<Result<_, _>>()?;
    ports.try_into().map_err(|_| anyhow!("failed to find {N} ports"))
}

/// A UDP port on loopback that nobody is bound to.
pub fn free_udp_port() -> Result<u16> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The root of the repository.
#[must_use]
pub fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A fresh folder `target/logs/levels/NAME-PID`; folders that dead runs of the same name left are
/// removed first.
pub fn fresh_folder(name: &str) -> Result<PathBuf> {
    let levels = repository().join("target/logs/levels");
    std::fs::create_dir_all(&levels)?;
    for entry in std::fs::read_dir(&levels)? {
        let entry = entry?;
        let file_name = entry.file_name();
        let left_by = file_name
            .to_str()
            .and_then(|text| text.strip_prefix(name)?.strip_prefix('-')?.parse::<u32>().ok());
        if left_by.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    let folder = levels.join(format!("{name}-{}", std::process::id()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder.canonicalize()?)
}
