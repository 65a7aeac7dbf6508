//! JSON as every command prints it: with the version of its schema, moments in RFC 3339, switches as true and false.

use daemon::fields::{self, Unit};
use daemon::settings::MEANINGS;
use serde_json::{Map, Value, json};

/// Raised when something that was there is called otherwise, or means something else.
pub const SCHEMA_VERSION: u32 = 1;

/// Members that are moments in milliseconds; they are shown without the end of their names.
const MILLISECONDS: &[&str] =
    &["at_ms", "began_ms", "ended_ms", "made_ms", "seen_ms", "raised_ms", "cleared_ms", "acknowledged_ms"];
/// Members that are moments in seconds.
const SECONDS: &[&str] = &["formatted", "since", "created", "began", "ended", "ends"];

/// A result as it is printed. What is a list by itself stands in `items`.
pub fn shown(value: Value) -> Value {
    let mut shown = match value {
        Value::Object(map) => object(map),
        Value::Array(list) => {
            Map::from_iter([("items".to_string(), Value::Array(list.into_iter().map(inner).collect()))])
        }
        other => return other,
    };
    shown.insert("schema_version".into(), SCHEMA_VERSION.into());
    Value::Object(shown)
}

fn inner(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(object(map)),
        Value::Array(list) => Value::Array(list.into_iter().map(inner).collect()),
        other => other,
    }
}

fn object(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().map(|(name, value)| member(name, value)).collect()
}

fn member(name: String, value: Value) -> (String, Value) {
    if MILLISECONDS.contains(&name.as_str()) && (value.is_u64() || value.is_null()) {
        let shown = value.as_u64().and_then(|ms| moment(ms / 1000));
        return (name.trim_end_matches("_ms").to_string(), shown.unwrap_or(value));
    }
    if let Some(seconds) = value.as_u64().filter(|_| SECONDS.contains(&name.as_str())) {
        return (name, moment(seconds).unwrap_or(value));
    }
    let is_setting = name != "label" && MEANINGS.iter().any(|(setting, _)| *setting == name);
    match value.as_str() {
        Some("on") if is_setting => (name, json!(true)),
        Some("off") if is_setting => (name, json!(false)),
        _ => (name, inner(value)),
    }
}

/// Nothing for what cannot be a moment, such as a format's that somebody forged.
fn moment(seconds: u64) -> Option<Value> {
    let text = fields::show(Unit::Time, &json!(seconds));
    text.ends_with('Z').then(|| json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_switches_are_written_in_one_way() {
        let value = json!({
            "devices": [{ "formatted": 1_000_000_000, "config": { "trim": "on", "label": "on", "durability": "write-back" } }],
            "raised_ms": 1_000_000_000_000u64, "cleared_ms": null, "p99_ms": 1_000_000_000_000u64,
        });
        assert_eq!(
            shown(value),
            json!({
                "schema_version": 1,
                "devices": [{
                    "formatted": "2001-09-09T01:46:40Z",
                    "config": { "trim": true, "label": "on", "durability": "write-back" },
                }],
                "raised": "2001-09-09T01:46:40Z", "cleared": null, "p99_ms": 1_000_000_000_000u64,
            })
        );
        assert_eq!(shown(json!([1, 2])), json!({ "schema_version": 1, "items": [1, 2] }));
        assert_eq!(shown(json!({ "formatted": u64::MAX }))["formatted"], json!(u64::MAX), "a forged one stays");
    }
}
