//! Which tests failed and what they said, out of what `cargo test` printed.

/// Of what one test said, what usually holds the reason.
const LINES_EACH: usize = 20;
/// How a panic, and an error that a test returned, go on with where it was.
const BACKTRACES: [&str; 2] = ["\nstack backtrace:\n", "\nStack backtrace:\n"];
/// More than these are one defect that shows everywhere.
const TESTS: usize = 8;

/// The tests that failed, by name, each with the end of what it said; empty where none is named.
pub(crate) fn failed_tests(output: &str) -> String {
    let mut told = Vec::new();
    let mut tests = 0_usize;
    for section in output.split("\n---- ").skip(1) {
        let Some((name, said)) = section.split_once(" stdout ----\n") else { continue };
        tests += 1;
        if tests > TESTS {
            continue;
        }
        // The list of names that follows the last test's words is not its own.
        let said = said.split("\n\nfailures:\n").next().unwrap_or_default();
        // Where it failed is in the log; why is said before.
        let said =
            BACKTRACES.iter().fold(said, |said, trace| said.split(trace).next().unwrap_or(said));
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = lines.len().saturating_sub(LINES_EACH);
        told.push(format!("  {name}"));
        told.extend(lines.into_iter().skip(from).map(|line| format!("    | {line}")));
    }
    if tests > TESTS {
        told.push(format!("  and {} more", tests - TESTS));
    }
    told.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_test_is_named_with_the_end_of_what_it_said() {
        let noise = (0..50).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        let output = format!(
            "running 3 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n\
             {noise}\npanicked at b\nstack backtrace:\n   0: rust_begin_unwind\n\n---- c stdout ----\n\nwhy c failed\n\n\nfailures:\n    b\n    c\n"
        );
        let told = failed_tests(&output);
        assert!(told.contains("  b\n") && told.contains("    | panicked at b"), "{told}");
        assert!(told.ends_with("  c\n    | why c failed"), "{told}");
        assert!(!told.contains("line 30\n") && !told.contains("    b"), "{told}");
        assert!(!told.contains("rust_begin_unwind"), "{told}");
        assert_eq!(failed_tests("error[E0425]: cannot find value\n"), "");
    }

    #[test]
    fn many_failures_are_counted() {
        let one = "\n---- t stdout ----\nsaid\n";
        assert!(failed_tests(&one.repeat(TESTS + 3)).ends_with("  and 3 more"));
    }
}
