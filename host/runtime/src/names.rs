//! Names of objects, made from the names of others.

/// Object names are at most 253 long; a number and a dash must fit.
pub const NODE_NAME_MAX: usize = 230;

/// The node's name, or a hash in its place where it is too long to carry a number.
pub fn stem(node: &str) -> String {
    if node.len() <= NODE_NAME_MAX {
        return node.to_owned();
    }
    let digest = crate::digest::sha256(node.as_bytes());
    format!("node-{}", digest.get(..32).unwrap_or(&digest))
}

/// A Job's name is a label of its pods, and those end here.
pub const JOB_NAME_MAX: usize = 63;

/// The name of an incident's Job of this number.
pub fn job_name(nodefence: &str, number: u32) -> String {
    let plain = format!("{nodefence}-job-{number}");
    if plain.len() <= JOB_NAME_MAX {
        return plain;
    }
    let digest = crate::digest::sha256(nodefence.as_bytes());
    format!("nodefence-{}-job-{number}", digest.get(..32).unwrap_or(&digest))
}
