//! Where the parameters of two results differ.

use serde_json::Value;

use super::Parameters;
use crate::plain;

/// The first place at which two parameters differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The way to it: `phases[3].operations`.
    pub(crate) place: String,
    /// What the first has there, as JSON.
    pub(crate) then: String,
    /// What the second has there.
    pub(crate) now: String,
}

impl Difference {
    /// The first difference; none if both are the same.
    pub(crate) fn first(then: &Parameters, now: &Parameters) -> Option<Self> {
        let [then, now] = [then, now].map(serde_json::to_value);
        // What is no JSON was never read from a result, nor will be.
        let (then, now) = (then.ok(), now.ok());
        // Of another workload all parameters are others, and none of them is the reason.
        let [was, is] = [&then, &now].map(|of| of.as_ref().and_then(|fields| fields.get("name")));
        find("the workload", was, is).or_else(|| find("", then.as_ref(), now.as_ref()))
    }
}

fn find(place: &str, then: Option<&Value>, now: Option<&Value>) -> Option<Difference> {
    match (then, now) {
        _ if then == now => None,
        (Some(Value::Object(was)), Some(Value::Object(is))) => {
            let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(*name)));
            let dot = if place.is_empty() { "" } else { "." };
            names
                .map(|name| find(&format!("{place}{dot}{name}"), was.get(name), is.get(name)))
                .find_map(|found| found)
        }
        (Some(Value::Array(was)), Some(Value::Array(is))) => (0..was.len().max(is.len()))
            .map(|at| find(&format!("{place}[{at}]"), was.get(at), is.get(at)))
            .find_map(|found| found),
        _ => Some(Difference { place: place.to_owned(), then: told(then), now: told(now) }),
    }
}

fn told(value: Option<&Value>) -> String {
    let text = value.map_or("absent".to_owned(), Value::to_string);
    plain::shortened(&text, 200).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_found_with_the_way_to_it() {
        let long = "x".repeat(1_000);
        for (then, now, place, was, is) in [
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), "b", "2", "3"),
            (json!({"a": 1}), json!({}), "a", "1", "absent"),
            (json!({}), json!({"a": null}), "a", "absent", "null"),
            (
                json!({"a": [{"b": "x"}, 1]}),
                json!({"a": [{"b": "y"}, 2]}),
                "a[0].b",
                "\"x\"",
                "\"y\"",
            ),
            (json!({"a": [1]}), json!({"a": [1, 2]}), "a[1]", "absent", "2"),
            (json!({"a": {}}), json!({"a": []}), "a", "{}", "[]"),
        ] {
            let found = find("", Some(&then), Some(&now)).unwrap();
            assert_eq!((&*found.place, &*found.then, &*found.now), (place, was, is));
            assert_eq!(find("", Some(&then), Some(&then)), None);
        }
        let found = find("", Some(&json!({"a": long})), Some(&json!({"a": ""}))).unwrap();
        assert!(
            found.then.len() < 300 && found.then.contains("802 characters left out"),
            "{found:?}"
        );
    }
}
