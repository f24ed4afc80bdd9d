use super::*;
use crate::{DType, backend::View, value::layout::Layout};

fn node(bodies: usize, repeats: bool) -> Conditional {
    let selector = View { addr: 0, dtype: DType::U32, layout: Layout::contiguous(&[]).unwrap() };
    Conditional { name: "switch", selector, bodies, repeats }
}

#[test]
fn old_drivers_get_a_chain() {
    use ConditionalKind::{If, Switch, While};
    let lowered =
        |bodies, repeats, has_switches| Lowering::of(&node(bodies, repeats), has_switches).nodes(bodies);
    assert_eq!(lowered(2, false, true), [(Switch, 2)]);
    assert_eq!(lowered(2, false, false), [(If, 1), (If, 1)]);
    assert_eq!(lowered(5, false, true), [(Switch, 5)]);
    assert_eq!(lowered(3, false, false), [(If, 1); 3]);
    for has_switches in [true, false] {
        assert_eq!(lowered(1, true, has_switches), [(While, 1)]);
        assert_eq!(lowered(1, false, has_switches), [(If, 1)]);
    }
}

#[test]
fn the_version_decides() {
    let refused =
        |version, has_functions| match ConditionalSupport::new(version, has_functions).check("cuda:0") {
            Ok(()) => None,
            Err(Error::NoConditionalNodes { device, needs, found }) => {
                assert_eq!((device.as_str(), needs.as_str()), ("cuda:0", "12.4"));
                Some(found)
            }
            Err(other) => panic!("{other}"),
        };
    assert_eq!(refused(12_020, true).as_deref(), Some("12.2"));
    assert_eq!(refused(12_030, false).as_deref(), Some("12.3"));
    assert_eq!(refused(12_040, false).as_deref(), Some("12.4"));
    assert_eq!(refused(12_040, true), None);
    assert!(!ConditionalSupport::new(12_070, true).has_switches());
    assert!(ConditionalSupport::new(12_080, true).has_switches());
    assert!(!ConditionalSupport::new(13_000, true).without_switches().has_switches());
}
