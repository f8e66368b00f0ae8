//! Headers that the host alone writes.

/// Headers that are not a plugin's to set.
pub(crate) const OF_THE_HOST: [&str; 23] = [
    // In an answer that is packed, or that comes in pieces, an echo of what the host adds is not seen.
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "http2-settings",
    "if-range",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    // Some servers take the method or the path from these, past what was granted.
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
];
