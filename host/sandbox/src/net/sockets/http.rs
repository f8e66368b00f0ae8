//! HTTP over real sockets: one connection for one exchange, to the granted address and nowhere
//! else. There is no name to resolve, no redirect to follow, no proxy, no cookie and no connection
//! kept, because none of the code here knows any.

use std::error::Error;
use std::io;
use std::pin::pin;

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{HttpConnection, HttpPeer, NetError, stream};
use crate::limits::{HTTP_RESPONSE_HEAD_BYTES_MAX, HTTP_RESPONSE_HEADERS_MAX};
use crate::net::sockets::error::net_error;

/// A stream on which nothing was asked yet.
struct Unused<S>(S);

pub(super) async fn connect(to: HttpPeer) -> Result<Box<dyn HttpConnection>, NetError> {
    Ok(Box::new(Unused(stream::dial(to).await?)))
}

impl<S> HttpConnection for Unused<S>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    fn exchange_up_to(
        self: Box<Self>,
        request: Request<Vec<u8>>,
        body_bytes_max: usize,
    ) -> BoxFuture<'static, Result<Response<Vec<u8>>, NetError>> {
        Box::pin(exchange(self.0, request, body_bytes_max))
    }
}

async fn exchange<S>(
    stream: S,
    mut request: Request<Vec<u8>>,
    body_bytes_max: usize,
) -> Result<Response<Vec<u8>>, NetError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let request = request.map(|body| Full::new(Bytes::from(body)));
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(HTTP_RESPONSE_HEADERS_MAX)
        .max_header_size(HTTP_RESPONSE_HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| http_error(&error))?;
    let answer = async move {
        let response = sender.send_request(request).await.map_err(|error| http_error(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, body_bytes_max);
        let body = body.collect().await.map_err(|error| body_error(&*error))?;
        Ok(Response::from_parts(head, body.to_bytes().into()))
    };
    // The connection moves the bytes that the answer waits for; what becomes of it the answer
    // hears itself.
    let mut answer = pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}

fn body_error(error: &(dyn Error + Send + Sync + 'static)) -> NetError {
    if error.is::<LengthLimitError>() {
        return NetError::TooLarge;
    }
    error.downcast_ref().map_or(NetError::Other, http_error)
}

fn http_error(error: &hyper::Error) -> NetError {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    match source {
        Some(source) => net_error(source),
        None if error.is_parse_too_large() => NetError::TooLarge,
        None if error.is_incomplete_message() || error.is_closed() || error.is_canceled() => {
            NetError::Closed
        }
        None => NetError::Other,
    }
}
