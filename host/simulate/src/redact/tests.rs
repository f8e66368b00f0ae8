//! What is redacted, and that everything else stays to the letter.

use super::*;

fn check(kind: Kind, source: &str, expected: &str) {
    let redacted = Redactor::new(kind).text(source).unwrap();
    assert_eq!(redacted, format!("{expected}{NOTE}"), "of {source}");
}

#[test]
fn equal_credentials_get_equal_stand_ins_wherever_they_stand() {
    check(
        Kind::Scenario,
        "# password: hunter2 was it
nodes:
- { name: a, bmc: { user: root, password: 'hunter2' } } # passwd=hunter2
object:
  kind: Secret
  stringData: { username: root, anything: hunter2 }
more:
  data: { anything: aHVudGVyMg==, other: b3RoZXI= }
  kind: Secret
map:
  kind: ConfigMap
  data:
    passwd: hunter2
    ipaddr: 192.0.2.1
    a: |
      login=root
      # passwd=older
      passwd = hunter2
      lanplus=1
    b: \"login=root\\npasswd=hunter2\\n\"
    c: passwd=hunter2
",
        "# password: stand-in-5
nodes:
- { name: a, bmc: { user: stand-in-1, password: \"stand-in-2\" } } # passwd=stand-in-2
object:
  kind: Secret
  stringData: { username: stand-in-1, anything: stand-in-2 }
more:
  data: { anything: \"c3RhbmQtaW4tMg==\", other: \"c3RhbmQtaW4tMw==\" }
  kind: Secret
map:
  kind: ConfigMap
  data:
    passwd: stand-in-2
    ipaddr: 192.0.2.1
    a: |
      login=stand-in-1
      # passwd=stand-in-4
      passwd = stand-in-2
      lanplus=1
    b: \"login=stand-in-1\\npasswd=stand-in-2\\n\"
    c: \"passwd=stand-in-2\"
",
    );
}

#[test]
fn a_block_keeps_its_lines_and_an_alias_is_followed() {
    check(
        Kind::Scenario,
        "x: &it hunter2\npassword: *it\nb:\n  passwd: |\n    one\n    two\n  after: 1\n",
        "x: &it stand-in-1\npassword: *it\nb:\n  passwd: |\n    stand-in-2\n\n  after: 1\n",
    );
}

#[test]
fn a_snapshot_gets_the_account_that_its_bmcs_take() {
    check(
        Kind::Snapshot,
        "data:\n  config: \"login=root\\npasswd=hunter2\"\nmetadata:\n  annotations:\n    \
         kubectl.kubernetes.io/last-applied-configuration: '{\"passwd\":\"hunter2\"}'\n",
        "data:\n  config: \"login=admin\\npasswd=simulated\"\nmetadata:\n  annotations:\n    \
         kubectl.kubernetes.io/last-applied-configuration: \"{}\"\n",
    );
}

#[test]
fn what_is_no_credential_stays_to_the_letter() {
    let plain = "secretKey: password\nidentityKey: username\nsecret: bmc\n\
                 password: simulated\nuser: admin\nempty: {password: ''}\n\
                 env: [{name: PATH, value: 'a=b'}] # a comment: with a colon\n";
    for kind in [Kind::Scenario, Kind::Snapshot] {
        assert_eq!(Redactor::new(kind).text(plain).unwrap(), plain);
    }
}

/// A scenario out of a report is played as it is.
#[test]
fn what_was_redacted_is_not_redacted_again() {
    let source = "a: {user: root, password: hunter2}\nb: {password: other}\n";
    let once = Redactor::new(Kind::Scenario).text(source).unwrap();
    assert_eq!(Redactor::new(Kind::Scenario).text(&once).unwrap(), once);
}

#[test]
fn what_nests_without_end_is_refused() {
    let deep = "[".repeat(1000);
    assert!(Redactor::new(Kind::Scenario).text(&deep).is_err());
}
