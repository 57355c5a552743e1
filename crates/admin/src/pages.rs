//! Requests to the console, and its answers, as those of HTTP. Knows hyper and the limit of a body; refuses to know pages.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use std::net::SocketAddr;
use web_console::{Asked, Console, Said};

/// An answer of the port.
pub(crate) type Answer = Response<Full<Bytes>>;

/// The most bytes of a form.
const BODY_BYTES_MAX: usize = 1 << 20;

pub(crate) async fn answer(console: &Console, request: Request<Incoming>, peer: SocketAddr) -> Answer {
    let (head, body) = request.into_parts();
    let is_form = match head.method {
        Method::GET | Method::HEAD => false,
        Method::POST => true,
        _ => return respond(Said::plain(405, "only GET, HEAD and POST\n")),
    };
    let body = match is_form {
        false => Bytes::new(),
        true => match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) => return respond(Said::plain(413, "the form is too long, or ended too early\n")),
        },
    };
    let one = |name: HeaderName| only(&head.headers, name);
    let asked = Asked {
        is_form,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default().as_bytes(),
        host: one(HOST),
        origin: one(ORIGIN),
        fetch_site: one(HeaderName::from_static("sec-fetch-site")),
        cookies: one(COOKIE),
        content_type: one(CONTENT_TYPE),
        body: &body,
        peer,
    };
    respond(console.answer(&asked).await)
}

/// A header that was sent once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    all.next().is_none().then(|| first.as_bytes())
}

fn respond(said: Said) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(said.body)));
    *answer.status_mut() = StatusCode::from_u16(said.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in said.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    answer
}
