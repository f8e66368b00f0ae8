//! What hides secrets in a stream. An echo may come in any pieces, and a guest may read it byte by
//! byte, so a secret is looked for across the pieces, and what may be the beginning of one waits
//! for its end. Not here: what the secrets are ([`crate::words`]).

use zeroize::Zeroizing;

use crate::limits::ECHO_TIME;
use crate::words::{SECRET_BYTES_MIN, Secrets};

/// The secrets' hiding place in one stream.
#[derive(Default)]
pub(super) struct Veil {
    /// The stream's last bytes as they came, long enough to know the end of a secret by.
    tail: Zeroizing<Vec<u8>>,
    /// How many of them are kept back.
    kept_back: usize,
    /// When the last of those came.
    kept_at_ms: u64,
}

impl Veil {
    /// What may be seen now that these bytes came.
    pub(super) fn lift(&mut self, secrets: &Secrets, came: &[u8], now_ms: u64) -> Vec<u8> {
        self.kept_at_ms = now_ms;
        self.tail.extend_from_slice(came);
        let fresh = self.kept_back + came.len();
        let begun = secrets.begun_in(&self.tail).min(fresh);
        let seen = self.seen(secrets, fresh, begun);
        self.kept_back = begun;
        self.forget(secrets);
        seen
    }

    /// What may be seen now that nothing came any more: what looked like the beginning of a secret
    /// is hidden as if it were one, unless it is too short to tell anything.
    pub(super) fn settle(&mut self, secrets: &Secrets) -> Vec<u8> {
        let begun = secrets.begun_in(&self.tail);
        let mut seen = self.seen(secrets, self.kept_back, 0);
        if begun >= SECRET_BYTES_MIN {
            let clear = seen.len().saturating_sub(begun);
            seen.iter_mut().skip(clear).for_each(|byte| *byte = b'*');
        }
        self.kept_back = 0;
        seen
    }

    /// How long bytes are still kept back, where any are.
    pub(super) fn keeps_for_ms(&self, now_ms: u64) -> Option<u64> {
        let echo_ms = u64::try_from(ECHO_TIME.as_millis()).unwrap_or(u64::MAX);
        let kept_ms = now_ms.saturating_sub(self.kept_at_ms);
        (self.kept_back > 0).then(|| echo_ms.saturating_sub(kept_ms))
    }

    /// The last `fresh` bytes without the last `begun` of them, blotted with all that came before.
    fn seen(&self, secrets: &Secrets, fresh: usize, begun: usize) -> Vec<u8> {
        let blotted = secrets.blot(&self.tail);
        let (from, to) = (blotted.len().saturating_sub(fresh), blotted.len().saturating_sub(begun));
        blotted.get(from..to).map(<[u8]>::to_vec).unwrap_or_default()
    }

    fn forget(&mut self, secrets: &Secrets) {
        let needed = secrets.longest().saturating_sub(1).max(self.kept_back);
        let known = self.tail.len().saturating_sub(needed);
        self.tail.drain(..known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets::new([b"correct-horse".as_slice()])
    }

    /// All that is seen of a stream that comes in these pieces, `|` where nothing comes for long.
    fn seen(pieces: &[&str]) -> String {
        let (mut veil, secrets, mut seen) = (Veil::default(), secrets(), Vec::new());
        for piece in pieces {
            seen.extend(match *piece {
                "|" => veil.settle(&secrets),
                bytes => veil.lift(&secrets, bytes.as_bytes(), 0),
            });
        }
        seen.extend(veil.settle(&secrets));
        String::from_utf8(seen).unwrap()
    }

    #[test]
    fn a_secret_is_hidden_in_whatever_pieces_it_comes() {
        let whole = "you sent correct-horse.";
        let hidden = "you sent *************.";
        for cut in 0..=whole.len() {
            assert_eq!(seen(&[&whole[..cut], &whole[cut..]]), hidden, "{cut}");
        }
        let bytes: Vec<_> = whole.split("").filter(|byte| !byte.is_empty()).collect();
        assert_eq!(seen(&bytes), hidden);
        let hex = "636f72726563742d686f727365";
        assert_eq!(seen(&[&hex[..9], &hex[9..]]), "*".repeat(hex.len()));
        assert_eq!(seen(&["correct-horsecorrect-h", "orse"]), "*".repeat(26));
    }

    #[test]
    fn a_pause_inside_of_a_secret_tells_three_bytes_of_it_at_most() {
        let whole = "=correct-horse=";
        for cut in 0..=whole.len() {
            for second in cut..=whole.len() {
                let (one, two, three) = (&whole[..cut], &whole[cut..second], &whole[second..]);
                let seen = seen(&[one, "|", two, "|", three]);
                assert_eq!(seen.len(), whole.len());
                assert!(seen[4..].bytes().all(|byte| byte == b'*' || byte == b'='), "{seen}");
            }
        }
    }

    #[test]
    fn what_is_no_secret_is_seen_whole_and_nothing_waits_without_need() {
        assert_eq!(seen(&["corr", "ectly a cor"]), "correctly a cor");
        let mut veil = Veil::default();
        assert_eq!(veil.lift(&secrets(), b"a cow", 5), b"a cow");
        assert_eq!(veil.keeps_for_ms(5), None);
        assert_eq!(veil.lift(&secrets(), b"a co", 5), b"a ");
        assert_eq!((veil.keeps_for_ms(5), veil.keeps_for_ms(45)), (Some(100), Some(60)));
        assert_eq!(veil.settle(&secrets()), b"co");
        assert_eq!(veil.keeps_for_ms(5), None);
        let none = Secrets::default();
        assert_eq!(veil.lift(&none, b"correct-horse", 5), b"correct-horse");
        assert!(veil.tail.is_empty());
    }
}
