//! Writes into the transcript of a call what goes over the wire, without its secrets.

use crate::bindings::node_remedy::fence::net::{HttpRequest, HttpResponse, NetError};
use crate::state::CallState;
use crate::transcript::{Answered, Doing, Event, Happened, Part, RecordedRequest, Refusal};
use crate::types::Fields;

impl CallState {
    pub(crate) fn is_transcribed(&self) -> bool {
        self.record.exchanges.is_whole()
    }

    /// Keeps what happened now.
    fn transcribe(&mut self, endpoint: &str, what: Happened) {
        let (at_ms, endpoint) = (self.elapsed_ms(), endpoint.to_owned());
        self.record.transcript.keep(Event { at_ms, endpoint, what });
    }

    pub(crate) fn transcribe_failed(&mut self, endpoint: &str, doing: Doing, error: NetError) {
        if self.is_transcribed() {
            self.transcribe(endpoint, Happened::Failed(doing, Refusal(error)));
        }
    }

    pub(crate) fn transcribe_sent(&mut self, endpoint: &str, data: &[u8]) {
        if self.is_transcribed() {
            let parts = self.parts(data);
            self.transcribe(endpoint, Happened::Sent(parts));
        }
    }

    pub(crate) fn transcribe_received(&mut self, endpoint: &str, data: &[u8]) {
        if self.is_transcribed() {
            let parts = self.parts(data);
            self.transcribe(endpoint, Happened::Received(parts));
        }
    }

    pub(crate) fn transcribe_asked(&mut self, endpoint: &str, request: &HttpRequest) {
        if self.is_transcribed() {
            let asked = RecordedRequest {
                method: request.method.clone(),
                path: self.redacted(&request.path),
                headers: self.redacted_fields(&request.headers),
                body: self.secrets.redact(&request.body),
            };
            self.transcribe(endpoint, Happened::Asked(asked));
        }
    }

    pub(crate) fn transcribe_answered(
        &mut self,
        endpoint: &str,
        answer: &Result<HttpResponse, NetError>,
    ) {
        match answer {
            Err(error) => self.transcribe_failed(endpoint, Doing::Fetch, *error),
            Ok(HttpResponse { status, headers, body }) if self.is_transcribed() => {
                let (status, headers, body) = (*status, headers.clone(), body.clone());
                let answered = Answered { status, headers, body };
                self.transcribe(endpoint, Happened::Answered(answered));
            }
            Ok(_) => {}
        }
    }

    /// A datagram with secrets by name, and redacted where they stand in another form.
    pub(crate) fn parts(&self, data: &[u8]) -> Vec<Part> {
        let parts = Part::of(data, &self.credentials).into_iter().map(|part| match part {
            Part::Bytes(bytes) => Part::Bytes(self.secrets.redact(&bytes)),
            Part::Secret(name) => Part::Secret(name),
        });
        parts.collect()
    }

    pub(crate) fn redacted(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.secrets.redact(text.as_bytes())).into_owned()
    }

    fn redacted_fields(&self, fields: &Fields) -> Fields {
        fields.iter().map(|(name, value)| (name.clone(), self.redacted(value))).collect()
    }
}
