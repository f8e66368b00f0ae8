//! What hides in a stream the secrets that the host wrote on it. An echo may come in any pieces, and a guest may
//! read it byte by byte, so a secret is looked for across the pieces, and a stream's end waits for what
//! follows. It waits whatever it holds, and only whole secrets are hidden from the guest: a wait, or stars, for
//! what begins like a secret would tell a guest that has its guesses echoed how far they are right. Not here: what
//! secrets look like ([`crate::words`]).

use node_remedy_decide::bug::{Bug, is_seeded};
use zeroize::Zeroizing;

use crate::limits::{ECHO_BYTES_MIN, ECHO_TIME};
use crate::words::{SECRET_BYTES_MIN, Secrets};

/// The secrets' hiding place in one stream.
#[derive(Default)]
pub(super) struct StreamRedactor {
    /// What the host wrote on it.
    written: Secrets,
    /// The stream's last bytes as they came, long enough to know the end of a secret by.
    tail: Zeroizing<Vec<u8>>,
    /// How many of them are kept back.
    kept_back: usize,
    /// When the last of those came.
    kept_at_ms: u64,
}

impl StreamRedactor {
    /// From now on this secret is hidden.
    pub(super) fn hide(&mut self, secret: &[u8]) {
        self.written.add(secret);
    }

    /// What the guest may see now that these bytes came.
    pub(super) fn lift(&mut self, came: &[u8], now_ms: u64) -> Vec<u8> {
        if self.written.are_none() || is_seeded(Bug::StreamsUnredacted) {
            return came.to_vec();
        }
        self.kept_at_ms = now_ms;
        self.tail.extend_from_slice(came);
        let fresh = self.kept_back + came.len();
        // Never fewer, or their number would tell how long the secret is.
        let kept = self.before_its_end().max(ECHO_BYTES_MIN).min(fresh);
        let seen = self.seen(fresh, kept);
        self.kept_back = kept;
        self.forget();
        seen
    }

    /// What the guest may see now that nothing came any more.
    pub(super) fn settle(&mut self) -> Vec<u8> {
        let seen = self.seen(self.kept_back, 0);
        self.kept_back = 0;
        self.forget();
        seen
    }

    /// The same as people may see it: what may be the beginning of a secret is hidden from them, too, unless it
    /// is too short to tell anything. No guest sees what is kept for people.
    pub(super) fn for_people(&self, mut settled: Vec<u8>) -> Vec<u8> {
        let begun = self.written.begun_in(&self.tail);
        if begun >= SECRET_BYTES_MIN {
            let clear = settled.len().saturating_sub(begun);
            settled.iter_mut().skip(clear).for_each(|byte| *byte = b'*');
        }
        settled
    }

    /// How long bytes are still kept back, where any are.
    pub(super) fn keeps_for_ms(&self, now_ms: u64) -> Option<u64> {
        let echo_ms = u64::try_from(ECHO_TIME.as_millis()).unwrap_or(u64::MAX);
        let kept_ms = now_ms.saturating_sub(self.kept_at_ms);
        (self.kept_back > 0).then(|| echo_ms.saturating_sub(kept_ms))
    }

    /// The most bytes of a secret that may have come without its end.
    fn before_its_end(&self) -> usize {
        self.written.longest().saturating_sub(1)
    }

    /// The last `fresh` bytes without the last `kept` of them, redacted with all that came before.
    fn seen(&self, fresh: usize, kept: usize) -> Vec<u8> {
        let redacted = self.written.redact(&self.tail);
        let (from, to) =
            (redacted.len().saturating_sub(fresh), redacted.len().saturating_sub(kept));
        redacted.get(from..to).map(<[u8]>::to_vec).unwrap_or_default()
    }

    fn forget(&mut self) {
        let needed = self.kept_back + self.before_its_end();
        let known = self.tail.len().saturating_sub(needed);
        self.tail.drain(..known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream_redactor() -> StreamRedactor {
        let mut stream_redactor = StreamRedactor::default();
        stream_redactor.hide(b"correct-horse");
        stream_redactor
    }

    /// All that is seen of a stream that comes in these pieces, `|` where nothing comes for long.
    fn seen(pieces: &[&str]) -> String {
        let (mut stream_redactor, mut seen) = (stream_redactor(), Vec::new());
        for piece in pieces {
            seen.extend(match *piece {
                "|" => stream_redactor.settle(),
                bytes => stream_redactor.lift(bytes.as_bytes(), 0),
            });
        }
        seen.extend(stream_redactor.settle());
        String::from_utf8(seen).unwrap()
    }

    #[test]
    fn a_secret_is_hidden_in_whatever_pieces_it_comes() {
        let long = "x".repeat(ECHO_BYTES_MIN + 50);
        for around in ["", &long] {
            let whole = format!("{around}you sent correct-horse.{around}");
            let hidden = format!("{around}you sent *************.{around}");
            for cut in around.len()..=whole.len() - around.len() {
                assert_eq!(seen(&[&whole[..cut], &whole[cut..]]), hidden, "{cut}");
            }
            let bytes: Vec<_> = whole.split("").filter(|byte| !byte.is_empty()).collect();
            assert_eq!(seen(&bytes), hidden);
        }
        let hex = "636f72726563742d686f727365";
        assert_eq!(seen(&[&hex[..9], &hex[9..]]), "*".repeat(hex.len()));
        assert_eq!(seen(&["correct-horsecorrect-h", "orse"]), "*".repeat(26));
    }

    /// Who pauses inside of an echo shows a part of it to the guest, which alone could tell by stars how far a guess
    /// is right; nobody else sees it.
    #[test]
    fn a_pause_inside_of_a_secret_shows_people_three_bytes_of_it_at_most() {
        let whole = "=correct-horse=";
        for cut in 0..=whole.len() {
            let mut stream_redactor = stream_redactor();
            stream_redactor.lift(&whole.as_bytes()[..cut], 0);
            let settled = stream_redactor.settle();
            let mut shown = stream_redactor.for_people(settled.clone());
            assert_eq!(settled.len(), cut);
            shown.extend(stream_redactor.lift(&whole.as_bytes()[cut..], 0));
            shown.extend(stream_redactor.settle());
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown.len(), whole.len());
            assert!(shown[4..].bytes().all(|byte| byte == b'*' || byte == b'='), "{shown}");
        }
    }

    #[test]
    fn neither_waits_nor_stars_tell_a_guess_that_begins_right_from_a_wrong_one() {
        for (right, wrong) in [("c", "d"), ("correct", "corrupt"), ("correct-hors", "correct-mule")]
        {
            let [right, wrong] = [right, wrong].map(|guess| {
                let mut stream_redactor = stream_redactor();
                let at_once = stream_redactor.lift(guess.as_bytes(), 5);
                (
                    at_once.len(),
                    stream_redactor.keeps_for_ms(5),
                    stream_redactor.settle() == guess.as_bytes(),
                )
            });
            assert_eq!(right, wrong);
            assert_eq!(right, (0, Some(100), true));
        }
        let mut stream_redactor = stream_redactor();
        let long = "x".repeat(3 * ECHO_BYTES_MIN);
        assert_eq!(stream_redactor.lift(long.as_bytes(), 5).len(), 2 * ECHO_BYTES_MIN);
    }

    #[test]
    fn where_no_secret_was_written_nothing_waits_and_nothing_is_hidden() {
        let mut stream_redactor = StreamRedactor::default();
        assert_eq!(stream_redactor.lift(b"correct-horse", 5), b"correct-horse");
        assert_eq!(stream_redactor.keeps_for_ms(5), None);
        assert!(stream_redactor.tail.is_empty());
        let mut stream_redactor = self::stream_redactor();
        assert_eq!(stream_redactor.lift(b"a cow", 5), b"");
        assert_eq!(
            (stream_redactor.keeps_for_ms(5), stream_redactor.keeps_for_ms(45)),
            (Some(100), Some(60))
        );
        assert_eq!(stream_redactor.settle(), b"a cow");
        assert_eq!(stream_redactor.keeps_for_ms(5), None);
    }
}
