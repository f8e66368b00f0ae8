//! OCI registries for tests: Debian's docker-registry, plain or behind TLS, open or with an account; and one of
//! our own that says whatever it is told to, for what no honest registry does.
//!
//! What is true is asked for by a few lines of HTTP that share nothing with our client.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports};
use crate::time::{Task, until};

/// It listens within a second on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// The one who may come in where not everybody may.
pub const USERNAME: &str = "alice";
/// And the password: the canary that is searched for (`node_remedy_swarm::corpus::canary`), without its prefix.
pub const PASSWORD: &str = "Vb2yPd48Rf-Chirp";
/// What `htpasswd -B` makes of them, with the smallest cost.
const HTPASSWD: &str = "alice:$2y$05$abcdefghijklmnopqrstuux.gQfLnjcNs3M9YB7ox.UjcKX/QJi0e\n";

/// How it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Plain HTTP, anybody.
    Open,
    /// Plain HTTP, with an account.
    Account,
    /// TLS, with an account.
    TlsAccount,
}

/// A running one; dropped, it is gone, and what was pushed stays in its folder.
#[derive(Debug)]
pub struct Registry {
    process: Option<Process>,
    folder: PathBuf,
    configuration: PathBuf,
    port: u16,
    pki: Pki,
}

impl Registry {
    /// Starts one that keeps everything in `folder`.
    pub async fn start(folder: &Path, door: Door) -> Result<Self> {
        let [port] = free_tcp_ports()?;
        let pki = Pki::generate(&folder.join("pki"))?;
        let accounts = folder.join("htpasswd");
        fs::write(&accounts, HTPASSWD)?;
        let tls = match door {
            Door::Open | Door::Account => String::new(),
            Door::TlsAccount => format!(
                "  tls:\n    certificate: {}\n    key: {}\n",
                pki.server_certificate.display(),
                pki.server_key.display()
            ),
        };
        let auth = match door {
            Door::Open => String::new(),
            Door::Account | Door::TlsAccount => {
                format!("auth:\n  htpasswd:\n    realm: tests\n    path: {}\n", accounts.display())
            }
        };
        let configuration = folder.join("registry.yml");
        let data = folder.join("data").display().to_string();
        fs::write(
            &configuration,
            format!(
                "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {data}\nhttp:\n  \
                 addr: 127.0.0.1:{port}\n{tls}{auth}"
            ),
        )?;
        let folder = folder.to_owned();
        let mut one = Self { process: None, folder, configuration, port, pki };
        one.start_again().await?;
        Ok(one)
    }

    /// Starts it once more, at the same port, with what was pushed.
    pub async fn start_again(&mut self) -> Result<()> {
        let arguments = ["serve".to_owned(), self.configuration.display().to_string()];
        let program = Program {
            name: "docker-registry",
            path: Path::new("/usr/bin/docker-registry"),
            arguments: &arguments,
            logs: &self.folder,
        };
        let mut process = Process::start(&program)?;
        let port = self.port;
        until("docker-registry listens", READY_WITHIN, || {
            let alive = process.check_alive();
            async move {
                alive?;
                Ok(TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(()))
            }
        })
        .await?;
        self.process = Some(process);
        Ok(())
    }

    /// Kills it.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Who vouches for it.
    #[must_use]
    pub fn authority(&self) -> &Pki {
        &self.pki
    }

    /// What is at a path, of one without TLS and accounts.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>> {
        let accept = "application/vnd.oci.image.manifest.v1+json";
        let head = format!("GET {path} HTTP/1.1\r\nAccept: {accept}\r\n");
        let (status, body) = ask(self.port, &head, b"").await?;
        ensure!(status == 200, "{path}: {status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }

    /// Puts a manifest there as it is, of this media type.
    pub async fn put(&self, repository: &str, tag: &str, kind: &str, bytes: &[u8]) -> Result<()> {
        let path = format!("/v2/{repository}/manifests/{tag}");
        let length = bytes.len();
        let head =
            format!("PUT {path} HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
        let (status, body) = ask(self.port, &head, bytes).await?;
        ensure!(status == 201, "{path}: {status}: {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}

/// One request, answered whole.
async fn ask(port: u16, head: &str, body: &[u8]) -> Result<(u16, Vec<u8>)> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    let head = format!("{head}Host: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("no head")?;
    let body = answer.split_off(end + 4);
    let head = String::from_utf8_lossy(&answer);
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body))
}

/// What is answered to one path: status line and headers, and the body.
type Answers = BTreeMap<String, (String, Vec<u8>)>;

/// A registry that says what it is told to.
pub struct Liar {
    port: u16,
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<String>>>,
    _task: Task,
}

impl Liar {
    /// Starts one that knows nothing yet.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (answers, asked) = (Arc::<Mutex<Answers>>::default(), Arc::<Mutex<_>>::default());
        let (known, log) = (answers.clone(), asked.clone());
        let task = Task::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                // One that breaks off harms nobody else.
                let _ = serve(connection, &known, &log).await;
            }
        });
        Ok(Self { port, answers, asked, _task: task })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Says this to a path from now on.
    pub fn say(&self, path: &str, head: &str, body: &[u8]) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(path.to_owned(), (head.to_owned(), body.to_vec()));
    }

    /// The request lines that came, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(
    mut connection: TcpStream,
    known: &Mutex<Answers>,
    log: &Mutex<Vec<String>>,
) -> Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let byte = connection.read_u8().await?;
        request.push(byte);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let line = request.lines().next().unwrap_or_default().to_owned();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let shown = request.lines().find(|line| line.to_lowercase().starts_with("authorization:"));
    let shown = shown.map(|shown| format!(" {shown}")).unwrap_or_default();
    log.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{line}{shown}"));
    let answer = known.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    let (head, body) = answer.unwrap_or_else(|| ("404 Not Found".to_owned(), Vec::new()));
    let length = if head.contains("Content-Length") {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    let head = format!("HTTP/1.1 {head}\r\n{length}Connection: close\r\n\r\n");
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(&body).await?;
    Ok(())
}
