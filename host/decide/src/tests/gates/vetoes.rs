//! The gate, and those who keep node-remedy from a node.
#![expect(clippy::needless_raw_string_hashes, reason = "as expect-test writes them")]

use expect_test::expect;

use super::{check, cluster, shares};
use crate::*;

#[test]
fn what_people_said_closes_the_gate_and_says_so() {
    let vetoes = |vetoes: OperatorVetoes| {
        let (view, now) = cluster(30, 1, 23);
        (GateView { vetoes, ..view }, now)
    };
    let now = vetoes(OperatorVetoes::default()).1;
    let pause = |until| Pause { reason: "new switches".into(), by: "alice".into(), until };
    let rows = [
        (
            OperatorVetoes { pauses: [pause(None)].into(), ..OperatorVetoes::default() },
            expect![[r#"
            paused by alice: new switches
            look again in 10 s"#]],
        ),
        (
            OperatorVetoes {
                pauses: [pause(Some(now.after(Span::seconds(4))))].into(),
                ..OperatorVetoes::default()
            },
            expect![[r#"
                paused by alice: new switches
                look again in 4 s"#]],
        ),
        (
            OperatorVetoes { pauses: [pause(Some(now))].into(), ..OperatorVetoes::default() },
            expect!["open"],
        ),
        (
            OperatorVetoes {
                excluded_by: Some("node-remedy.io/exclude".into()),
                ..OperatorVetoes::default()
            },
            expect![[r#"
                excluded by node-remedy.io/exclude; remove it to have it acted on
                look again in 10 s"#]],
        ),
        (
            OperatorVetoes {
                maintenance: Some("NodeMaintenance fans: new fans".into()),
                ..OperatorVetoes::default()
            },
            expect![[r#"
                in maintenance: NodeMaintenance fans: new fans
                look again in 10 s"#]],
        ),
        (
            OperatorVetoes { cordoned_by_other: true, ..OperatorVetoes::default() },
            expect![[r#"
            cordoned by somebody else, which counts as maintenance; uncordon it, or set cordonedByOthers: ignore
            look again in 10 s"#]],
        ),
        (
            OperatorVetoes {
                removed_by: Some("ToBeDeletedByClusterAutoscaler".into()),
                ..OperatorVetoes::default()
            },
            expect![[r#"
                an autoscaler removes this node (taint ToBeDeletedByClusterAutoscaler)
                look again in 10 s"#]],
        ),
        (
            OperatorVetoes {
                unread: ["RemedyPauses: denied".into()].into(),
                ..OperatorVetoes::default()
            },
            expect![[r#"
                failed to read whether somebody wants it left alone: RemedyPauses: denied
                look again in 10 s"#]],
        ),
    ];
    for (said, expected) in rows {
        check(vetoes(said), &expected);
    }
    let (view, now) =
        vetoes(OperatorVetoes { cordoned_by_other: true, ..OperatorVetoes::default() });
    let policy = GatePolicy { foreign_cordon: ForeignCordon::Ignore, ..shares() };
    assert!(gate(&policy, &view, now).is_open());
}
