//! How the fields of a device read: in text, and for scripts. Which there are says [`telemetry::table`].

use serde_json::Value;
pub use telemetry::Unit;

use crate::clock;

/// A value as text shows it.
pub fn show(unit: Unit, value: &Value) -> String {
    match (unit, value) {
        (_, Value::Bool(flag)) => if *flag { "yes" } else { "no" }.into(),
        (Unit::Bytes, Value::Number(number)) => number.as_u64().map_or_else(|| number.to_string(), size::show),
        (Unit::Percent, Value::Number(number)) => format!("{:.1} %", number.as_f64().unwrap_or_default()),
        (Unit::Ratio, Value::Number(number)) => format!("{:.2}", number.as_f64().unwrap_or_default()),
        (Unit::Celsius, Value::Number(number)) => format!("{:.1} °C", number.as_f64().unwrap_or_default()),
        (Unit::Watts, Value::Number(number)) => format!("{:.2} W", number.as_f64().unwrap_or_default()),
        (Unit::Microseconds, Value::Number(number)) => format!("{:.1} µs", number.as_f64().unwrap_or_default()),
        (Unit::Seconds, Value::Number(number)) => format!("{:.1} s", number.as_f64().unwrap_or_default()),
        (Unit::NanosecondsPerByte, Value::Number(number)) => format!("{:.2} ns/B", number.as_f64().unwrap_or_default()),
        (Unit::Time, Value::Number(number)) => {
            number.as_u64().and_then(clock::show).unwrap_or_else(|| number.to_string())
        }
        (_, Value::Array(items)) if items.is_empty() => "none".into(),
        (_, value) => plain(value),
    }
}

/// A value as scripts read it: numbers and words bare, lists joined by commas.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        // A client is shown by who it is; settings by name and value.
        Value::Object(map) if map.contains_key("peer") => plain(&map["peer"]),
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_by_unit() {
        assert_eq!(show(Unit::Bytes, &json!(5_120_000)), "5.12 MB (4.88 MiB)");
        assert_eq!(show(Unit::Flag, &json!(true)), "yes");
        assert_eq!(show(Unit::List, &json!([{ "peer": "process 7", "tls": false }])), "process 7");
        let target = json!({ "address": "127.0.0.1", "port": 4420, "subsystem": "nqn.x" });
        assert_eq!(show(Unit::Text, &target), "address=127.0.0.1, port=4420, subsystem=nqn.x");
        assert_eq!(show(Unit::Time, &json!(1_000_000_000)), "2001-09-09T01:46:40Z");
        assert_eq!(show(Unit::Time, &Value::from(u64::MAX)), u64::MAX.to_string(), "a forged format says so");
        assert_eq!(show(Unit::Percent, &json!(25.0)), "25.0 %");
        assert_eq!(
            (show(Unit::Celsius, &json!(32.55)), show(Unit::Watts, &json!(5.0))),
            ("32.5 °C".into(), "5.00 W".into())
        );
        assert_eq!(show(Unit::Microseconds, &json!(12.34)), "12.3 µs");
        assert_eq!(show(Unit::Seconds, &json!(1.25)), "1.2 s");
        assert_eq!(show(Unit::NanosecondsPerByte, &json!(0.5)), "0.50 ns/B");
        assert_eq!(plain(&json!(5_120_000)), "5120000");
    }
}
