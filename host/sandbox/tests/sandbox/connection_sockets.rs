//! Streams through real sockets and real TLS, on the plugins' own threads, against a server of this
//! test.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use node_remedy_sandbox::manifest::Protocol;
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    AdminGrant, Executor, Grants, Names, OpenGate, Seams, SpkiPin, SystemEntropy, TokioClock, Trust,
};
use rcgen::PublicKeyData as _;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::connection::{converse, manifest, stream_admin};
use crate::guest::{HOSTILE, PASSWORD, SANDBOX};

const NAME: &str = "hypervisor-7.example";

/// A server on loopback that echoes what it hears until `bye`.
struct Server {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Server {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &tls {
                    None => echo(stream, &ear).await,
                    // A client that does not trust us hangs up: one of the things tested.
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            echo(stream, &ear).await;
                        }
                    }
                }
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin, heard: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1_024];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        heard.lock().unwrap().extend_from_slice(&buffer[..length]);
        if buffer[..length].ends_with(b"bye") {
            let _ = stream.shutdown().await;
            return;
        }
        if stream.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// Knows one name's address, whatever the system believes.
struct Known(IpAddr);

impl Names for Known {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![self.0]) })
    }
}

async fn says(server: SocketAddr, protocol: Protocol, trust: Trust, script: &str) -> String {
    let lab = AdminGrant {
        cidrs: vec![server.ip().to_string().parse().unwrap()],
        ports: vec![server.port()..=server.port()],
        trust,
        ..stream_admin()
    };
    let address = format!("{NAME}:{}", server.port());
    let parameters = BTreeMap::from([("address".to_owned(), address)]);
    let manifest = manifest(protocol);
    let grants = Grants::decide(&manifest, &parameters, &lab, &Known(server.ip())).await.unwrap();
    let seams = Seams {
        net: Arc::new(Sockets),
        clock: Arc::new(TokioClock::starting_at(0)),
        entropy: Arc::new(SystemEntropy),
        gate: Arc::new(OpenGate),
        sessions: Arc::default(),
    };
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    let report = executor.run(Arc::clone(&HOSTILE), converse(grants, script), seams).await;
    assert!(!format!("{report:?}").contains(PASSWORD));
    report.result.unwrap_err().detail
}

#[tokio::test]
async fn a_stream_reaches_the_granted_server_and_its_end_is_heard() {
    let server = Server::start(None).await;
    let script = "open;write=pw=$.;read=99,5000;read=99,50;write=bye;read=99,5000;close";
    let detail = says(server.address, Protocol::Tcp, Trust::default(), script).await;
    let hidden = "*".repeat(PASSWORD.len());
    assert_eq!(detail, format!("open | ok | [pw={hidden}.] | timeout | ok | [] | closed"));
    assert_eq!(server.heard(), format!("pw={PASSWORD}.bye"));
}

#[tokio::test]
async fn the_other_side_of_tls_proves_who_it_is_before_it_hears_anything() {
    let key = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let pin = SpkiPin::of(&key.signing_key.subject_public_key_info());
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![key.cert.der().clone()],
                PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap(),
            )
            .unwrap();
    let server = Server::start(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let script = "open;write=$;read=99,5000;write=bye;read=99,5000";
    let ask = |trust| says(server.address, Protocol::Tls, trust, script);
    let refused = ask(Trust::SystemAuthorities).await;
    assert!(refused.starts_with("nothing is open: no trusted authority"), "{refused}");
    assert!(server.heard().is_empty());
    let detail = ask(Trust::Pins(BTreeSet::from([pin]))).await;
    assert_eq!(detail, format!("open | ok | [{}] | ok | []", "*".repeat(PASSWORD.len())));
    assert_eq!(server.heard(), format!("{PASSWORD}bye"));

    let plain = Server::start(None).await;
    let refused = says(plain.address, Protocol::Tls, Trust::Insecure, "open").await;
    assert_eq!(refused, "tls: it agreed on no TLS 1.2 or 1.3");
}

#[tokio::test]
async fn a_closed_port_is_refused_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(says(address, Protocol::Tcp, Trust::default(), "open").await, "refused");
}
