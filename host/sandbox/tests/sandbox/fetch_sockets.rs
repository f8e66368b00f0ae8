//! HTTP through real sockets and real TLS, on the plugins' own threads, against a server of this
//! test: the granted address is dialled and no other, and the other side proves who it is.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use node_remedy_sandbox::manifest::{Auth, Protocol};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    AdminGrant, Authorities, CallReport, Executor, Grants, Names, OpenGate, Seams, SpkiPin,
    SystemEntropy, TokioClock, Trust,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::fetch::{basic, fetch, http_admin, manifest};
use crate::guest::{HOSTILE, PASSWORD, SANDBOX};

/// What the certificate of the server says its name is.
const NAME: &str = "bmc-7.example";

/// How a server answers.
#[derive(Clone, Copy)]
enum Manner {
    /// With what it heard.
    Well,
    /// By pointing at another server.
    Redirect(SocketAddr),
    /// Never.
    Silent,
    /// Without end.
    Endless,
}

/// A server on loopback, for as long as its runtime lives.
struct Server {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(at: &str, manner: Manner, tls: Option<&Identity>) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let tls = tls.map(Identity::acceptor);
        let server = Self { address, heard: Arc::clone(&heard) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, tls.clone(), manner, Arc::clone(&heard)));
            }
        });
        server
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    manner: Manner,
    heard: Arc<Mutex<Vec<String>>>,
) {
    let service = service_fn(|request| answer(request, manner, Arc::clone(&heard)));
    let server = http1::Builder::new();
    // A client that hangs up early is one of the things tested.
    let _ = match tls {
        None => server.serve_connection(TokioIo::new(stream), service).await,
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => server.serve_connection(TokioIo::new(stream), service).await,
            Err(_) => Ok(()),
        },
    };
}

async fn answer(
    request: Request<Incoming>,
    manner: Manner,
    heard: Arc<Mutex<Vec<String>>>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let header = |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
    let line = format!(
        "{} {} host {} as {}",
        request.method(),
        request.uri(),
        header("host").unwrap_or_default(),
        header("authorization").unwrap_or_else(|| "nobody".to_owned())
    );
    let body = request.into_body().collect().await.unwrap().to_bytes();
    heard.lock().unwrap().push(format!("{line}: {}", String::from_utf8_lossy(&body)));
    let whole = |text: &'static str| BodyExt::boxed(Full::new(Bytes::from(text)));
    Ok(match manner {
        Manner::Well => Response::new(whole("hello")),
        Manner::Redirect(to) => {
            let location = format!("http://{to}/redfish/v1");
            Response::builder().status(302).header("location", location).body(whole("")).unwrap()
        }
        Manner::Silent => std::future::pending().await,
        Manner::Endless => {
            let chunks = stream::repeat(Bytes::from_static(&[b'x'; 16 << 10]));
            let frames = chunks.map(|chunk| Ok::<_, Infallible>(Frame::data(chunk)));
            Response::new(BoxBody::new(StreamBody::new(frames)))
        }
    })
}

/// A server's key, with a certificate that it signed itself.
struct Identity(rcgen::CertifiedKey<rcgen::KeyPair>);

impl Identity {
    fn new(name: &str) -> Self {
        Self(rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap())
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.0.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.0.cert.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    fn authority(&self) -> Trust {
        Trust::Authorities(Authorities::from_pem(self.0.cert.pem().as_bytes()).unwrap())
    }

    fn pin(&self) -> Trust {
        use rcgen::PublicKeyData as _;
        Trust::Pins(BTreeSet::from([SpkiPin::of(&self.0.signing_key.subject_public_key_info())]))
    }
}

/// Knows one name's address, whatever the system believes.
struct Known(IpAddr);

impl Names for Known {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![self.0]) })
    }
}

/// What is asked of whom.
struct Ask<'a> {
    protocol: Protocol,
    auth: Auth,
    trust: Trust,
    name: &'a str,
    server: &'a Server,
    parameters: &'a [(&'a str, &'a str)],
}

impl<'a> Ask<'a> {
    fn http(server: &'a Server) -> Self {
        let name = "127.0.0.1";
        let trust = Trust::default();
        Self { protocol: Protocol::Http, auth: Auth::NONE, trust, name, server, parameters: &[] }
    }

    fn https(server: &'a Server, trust: Trust) -> Self {
        Self { protocol: Protocol::Https, trust, name: NAME, ..Self::http(server) }
    }

    async fn report(self) -> CallReport {
        let (address, port) = (self.server.address.ip(), self.server.address.port());
        let lab = AdminGrant {
            cidrs: vec![address.to_string().parse().unwrap()],
            ports: vec![port..=port],
            trust: self.trust,
            ..http_admin()
        };
        let url = format!("{}://{}:{port}/ui", self.protocol.as_str(), self.name);
        let manifest = manifest(self.protocol, self.auth);
        let parameters = BTreeMap::from([("address".to_owned(), url)]);
        let grants = Grants::decide(&manifest, &parameters, &lab, &Known(address)).await.unwrap();
        let seams = Seams {
            net: Arc::new(Sockets),
            clock: Arc::new(TokioClock::starting_at(0)),
            entropy: Arc::new(SystemEntropy),
            gate: Arc::new(OpenGate),
            sessions: Arc::default(),
        };
        let executor = Executor::threads(&SANDBOX, 1).unwrap();
        executor.run(Arc::clone(&HOSTILE), fetch(grants, self.parameters), seams).await
    }

    async fn detail(self) -> String {
        self.report().await.result.unwrap_err().detail
    }
}

#[tokio::test]
async fn a_request_reaches_the_granted_server_as_it_was_written() {
    let server = Server::start("127.0.0.1:0", Manner::Well, None).await;
    let parameters = [("method", "POST"), ("path", "/redfish/v1/a?b=%41"), ("body", "{}")];
    let ask = Ask { parameters: &parameters, auth: basic(), ..Ask::http(&server) };
    let report = ask.report().await;
    assert!(!format!("{report:?}").contains(PASSWORD));
    let detail = report.result.unwrap_err().detail;
    assert!(detail.starts_with("200 ") && detail.contains("[hello]"), "{detail}");
    let basic = "Basic b3BlcmF0b3I6Y29ycmVjdC1ob3JzZQ==";
    let address = server.address;
    assert_eq!(
        server.heard(),
        [format!("POST /redfish/v1/a?b=%41 host {address} as {basic}: {{}}")]
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start("127.0.0.1:0", Manner::Well, None).await;
    let manner = Manner::Redirect(elsewhere.address);
    let server = Server::start("127.0.0.1:0", manner, None).await;
    let detail = Ask::http(&server).detail().await;
    assert!(detail.starts_with("302 location"), "{detail}");
    assert_eq!((server.heard().len(), elsewhere.heard().len()), (1, 0));
}

#[tokio::test]
async fn the_granted_address_is_dialled_whatever_the_system_says_of_the_name() {
    // The system knows localhost as 127.0.0.1; the grant was decided with another answer.
    let granted = Server::start("127.0.0.2:0", Manner::Well, None).await;
    let port = granted.address.port();
    let other = Server::start(&format!("127.0.0.1:{port}"), Manner::Well, None).await;
    let detail = Ask { name: "localhost", ..Ask::http(&granted) }.detail().await;
    assert!(detail.starts_with("200"), "{detail}");
    assert_eq!(granted.heard(), [format!("GET /redfish/v1 host localhost:{port} as nobody: ")]);
    assert!(other.heard().is_empty());
}

#[tokio::test]
async fn a_body_without_end_is_cut_while_it_comes() {
    let server = Server::start("127.0.0.1:0", Manner::Endless, None).await;
    assert_eq!(Ask::http(&server).detail().await, "refused: too-large");
}

#[tokio::test]
async fn a_server_that_never_answers_is_left_when_the_time_is_over() {
    let server = Server::start("127.0.0.1:0", Manner::Silent, None).await;
    let begun = Instant::now();
    let ask = Ask { parameters: &[("timeout-ms", "100")], ..Ask::http(&server) };
    assert_eq!(ask.detail().await, "refused: timeout");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_closed_port_is_refused_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let nobody = Server { address, heard: Arc::default() };
    assert_eq!(Ask::http(&nobody).detail().await, "refused: refused");
}

#[tokio::test]
async fn the_other_side_of_tls_proves_who_it_is() {
    let bmc = Identity::new(NAME);
    let stranger = Identity::new(NAME);
    let misnamed = Identity::new("other.example");
    let Trust::Pins(pins) = bmc.pin() else { panic!("no pin") };
    let another_key = format!("its key is {}, which is not pinned", pins.first().unwrap());
    // Whom the grant trusts, who answers, and if the two do not speak, why.
    let rows = [
        ("its authority", &bmc, bmc.authority(), None),
        ("another authority", &bmc, stranger.authority(), Some("no trusted authority signed its")),
        ("the system's", &bmc, Trust::SystemAuthorities, Some("no trusted authority signed its")),
        ("its pin", &bmc, bmc.pin(), None),
        ("another's pin", &bmc, stranger.pin(), Some(another_key.as_str())),
        (
            "another name",
            &misnamed,
            misnamed.authority(),
            Some("its certificate is for other names"),
        ),
        ("its pin, whatever the name", &misnamed, misnamed.pin(), None),
        ("anyone", &stranger, Trust::Insecure, None),
    ];
    for (whom, identity, trust, refusal) in rows {
        let server = Server::start("127.0.0.1:0", Manner::Well, Some(identity)).await;
        let detail = Ask { auth: basic(), ..Ask::https(&server, trust) }.detail().await;
        if let Some(refusal) = refusal {
            assert!(detail.starts_with(&format!("refused: tls: {refusal}")), "{whom}: {detail}");
            assert!(server.heard().is_empty(), "{whom}: not a byte of the request left");
        } else {
            assert!(detail.starts_with("200"), "{whom}: {detail}");
            assert_eq!(server.heard().len(), 1, "{whom}");
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_is_no_tls_server() {
    let server = Server::start("127.0.0.1:0", Manner::Well, None).await;
    let detail = Ask::https(&server, Trust::Insecure).detail().await;
    assert_eq!(detail, "refused: tls: it agreed on no TLS 1.2 or 1.3");
    assert!(server.heard().is_empty());
}
