//! What lives in the network of the attacks: devices that answer as a test wants, victims that count what
//! reached them, and the resolver.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_tests::time::{Task, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// How long an honest device takes at most to hear of a client.
const SOON: Duration = Duration::from_secs(5);

/// What a server says to a request.
pub(crate) enum Answer {
    /// These bytes, and then it hangs up.
    Whole(Vec<u8>),
    /// These bytes, one each so many milliseconds.
    Drip(Vec<u8>, u64),
    /// These bytes, and then as many more as anybody takes.
    Endless(Vec<u8>),
    /// Nothing, ever.
    Silence,
}

/// A server on a stream. It hears a request by its head, bodies of known length included.
pub(crate) struct Server {
    state: Arc<State>,
    _task: Task,
}

#[derive(Default)]
struct State {
    connections: AtomicUsize,
    heard: Mutex<Vec<String>>,
}

/// A power device on UDP, which believes everybody.
pub(crate) struct Device {
    is_on: Arc<AtomicBool>,
    heard: Arc<Mutex<Vec<String>>>,
    _task: Task,
}

impl Server {
    pub(crate) async fn start(
        at: &str,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Result<Self> {
        // Who was there before may be about to go.
        let free = format!("{at} is free");
        let listener = until(&free, SOON, || async { Ok(Some(TcpListener::bind(at).await?)) });
        let listener = listener.await?;
        let state = Arc::new(State::default());
        let (shared, answer) = (Arc::clone(&state), Arc::new(answer));
        let task = Task::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let (shared, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                // A client that hangs up early is one of the things tested.
                tokio::spawn(async move { serve(stream, &shared, &*answer).await.ok() });
            }
        });
        Ok(Self { state, _task: task })
    }

    /// One that nobody may reach, which would answer anybody.
    pub(crate) async fn victim(at: &str) -> Result<Self> {
        Self::start(at, |_| plain(200, "keys for everybody")).await
    }

    /// A device that is on.
    pub(crate) async fn well(at: &str) -> Result<Self> {
        Self::start(at, |_| plain(200, "on")).await
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.state.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails if anybody was here; and shows that somebody who comes is counted.
    pub(crate) async fn nobody_came(&self, at: &str) -> Result<()> {
        let came = self.connections();
        ensure!(came == 0, "{came} connections reached {at}: {:?}", self.heard());
        let _visitor = TcpStream::connect(at).await?;
        let counted = async {
            while self.connections() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, counted).await.with_context(|| format!("{at} counts nobody"))
    }
}

async fn serve(
    mut stream: TcpStream,
    state: &State,
    answer: &(dyn Fn(&str) -> Answer + Send + Sync),
) -> io::Result<()> {
    let mut heard = Vec::new();
    let mut piece = vec![0; 16 << 10];
    while !is_whole(&heard) {
        let count = stream.read(&mut piece).await?;
        heard.extend_from_slice(piece.get(..count).unwrap_or_default());
        if count == 0 {
            break;
        }
    }
    let heard = String::from_utf8_lossy(&heard).into_owned();
    let answer = answer(&heard);
    state.heard.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
    match answer {
        Answer::Whole(bytes) => stream.write_all(&bytes).await,
        Answer::Drip(bytes, every_ms) => {
            for byte in bytes {
                stream.write_all(&[byte]).await?;
                tokio::time::sleep(Duration::from_millis(every_ms)).await;
            }
            Ok(())
        }
        Answer::Endless(bytes) => {
            stream.write_all(&bytes).await?;
            let more = vec![b'x'; 64 << 10];
            loop {
                stream.write_all(&more).await?;
            }
        }
        Answer::Silence => std::future::pending().await,
    }
}

/// Whether an HTTP request, a line of text or a TLS client's greeting has come to its end.
fn is_whole(heard: &[u8]) -> bool {
    let text = String::from_utf8_lossy(heard);
    if heard.first() == Some(&0x16) {
        let length = heard.get(3..5).and_then(|two| two.try_into().ok()).map(u16::from_be_bytes);
        return length.is_some_and(|length| heard.len() >= usize::from(length) + 5);
    }
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return text.ends_with('\n') && !text.contains("HTTP/1.1");
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.parse().ok()).is_none_or(|length: usize| body.len() >= length)
}

/// A device that says back each byte as it comes.
pub(crate) async fn echo(at: &str) -> Result<Task> {
    let listener = TcpListener::bind(at).await?;
    Ok(Task::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                // A client that goes ends it.
                tokio::io::copy(&mut from, &mut to).await.ok();
            });
        }
    }))
}

/// A whole answer.
pub(crate) fn plain(status: u16, body: &str) -> Answer {
    with_headers(status, "", body)
}

/// The same with more headers, each with its line's end.
pub(crate) fn with_headers(status: u16, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status} Said\r\n{headers}content-length: {length}\r\n\r\n{body}");
    Answer::Whole(answer.into_bytes())
}

impl Device {
    pub(crate) async fn start(at: &str) -> Result<Self> {
        let free = format!("{at} is free");
        let socket = until(&free, SOON, || async { Ok(Some(UdpSocket::bind(at).await?)) }).await?;
        let is_on = Arc::new(AtomicBool::new(true));
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let (power, ear) = (Arc::clone(&is_on), Arc::clone(&heard));
        let task = Task::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let asked = buffer.get(..length).unwrap_or_default();
                let asked = String::from_utf8_lossy(asked).into_owned();
                let answer = match asked.as_str() {
                    "off" | "on" => {
                        power.store(asked == "on", Ordering::Relaxed);
                        "done"
                    }
                    _ if power.load(Ordering::Relaxed) => "on",
                    _ => "off",
                };
                ear.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
                // Whoever asked may be gone.
                let _ = socket.send_to(answer.as_bytes(), from).await;
            }
        });
        Ok(Self { is_on, heard, _task: task })
    }

    /// What is true, whatever anybody says.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn switch(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers the system's resolver; remembers what it was asked.
pub(crate) struct Resolver {
    asked: Arc<Mutex<Vec<String>>>,
    _task: Task,
}

impl Resolver {
    pub(crate) async fn start() -> Result<Self> {
        let socket = UdpSocket::bind(SocketAddr::from(([127, 0, 0, 53], 53))).await?;
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let ear = Arc::clone(&asked);
        let task = Task::spawn(async move {
            let mut buffer = vec![0; 1 << 10];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let question = buffer.get(..length).unwrap_or_default();
                let Some((name, is_v4)) = read_question(question) else { continue };
                let before = {
                    let mut asked = ear.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = asked.iter().filter(|one| **one == name).count();
                    if is_v4 {
                        asked.push(name.clone());
                    }
                    before
                };
                let addresses = if is_v4 { addresses_of(&name, before) } else { Vec::new() };
                let _ = socket.send_to(&reply(question, &addresses), from).await;
            }
        });
        Ok(Self { asked, _task: task })
    }

    /// The names that were asked for, each time.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What this network's names lead to; `before` is how often that was asked already.
fn addresses_of(name: &str, before: usize) -> Vec<Ipv4Addr> {
    let (bmc, other) = (Ipv4Addr::new(10, 9, 0, 7), Ipv4Addr::new(10, 9, 0, 8));
    let metadata = Ipv4Addr::new(169, 254, 169, 254);
    match (name, before) {
        ("bmc.example" | "xn--bmc-oua.example", _) | ("rebind.example", 0) => vec![bmc],
        ("rebind.example", _) => vec![metadata],
        ("mixed.example", _) => vec![bmc, metadata],
        ("two.example", _) => vec![other, bmc],
        ("kubernetes.default.svc", _) => vec![Ipv4Addr::new(10, 96, 0, 1)],
        (_, _) => Vec::new(),
    }
}

/// The name that is asked for (RFC 1035 §4.1.2), and whether an IPv4 address is wanted.
fn read_question(message: &[u8]) -> Option<(String, bool)> {
    let mut labels = Vec::new();
    let mut rest = message.get(12..)?;
    while let Some((length, tail)) = rest.split_first() {
        let length = usize::from(*length);
        if length == 0 {
            return Some((labels.join("."), tail.get(1) == Some(&1)));
        }
        labels.push(String::from_utf8_lossy(tail.get(..length)?).to_lowercase());
        rest = tail.get(length..)?;
    }
    None
}

/// The answer, good for no time at all.
fn reply(question: &[u8], addresses: &[Ipv4Addr]) -> Vec<u8> {
    let end = question.iter().skip(12).position(|byte| *byte == 0).map_or(0, |at| at + 12 + 5);
    let mut message = question.get(..end).unwrap_or_default().to_vec();
    let count = u8::try_from(addresses.len()).unwrap_or(u8::MAX);
    // Flags and counts: an answer, recursion available; one question, so many answers, nothing more.
    for (at, byte) in [0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0].into_iter().enumerate() {
        if let Some(place) = message.get_mut(at + 2) {
            *place = byte;
        }
    }
    for address in addresses {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        message.extend(address.octets());
    }
    message
}
