//! The workload of a pod, by its name.

/// The letters of the random part that Kubernetes puts behind a pod's name.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Length of that part, and the lengths of a ReplicaSet's hash before it.
const RANDOM_LENGTH: usize = 5;

const HASH_LENGTHS: std::ops::RangeInclusive<usize> = 6..=10;

/// The name without what Kubernetes drew for this one pod: `web-7d4b9c6f5-x2x7k` is `web`, and
/// `db-0` is itself.
pub fn workload(pod: &str) -> String {
    let is_random = |part: &str| part.chars().all(|letter| RANDOM.contains(letter));
    let Some((stem, last)) = pod.rsplit_once('-') else { return pod.to_owned() };
    if last.len() != RANDOM_LENGTH || !is_random(last) {
        return pod.to_owned();
    }
    match stem.rsplit_once('-') {
        Some((name, hash)) if HASH_LENGTHS.contains(&hash.len()) && is_random(hash) => {
            name.to_owned()
        }
        Some(_) | None => stem.to_owned(),
    }
}
