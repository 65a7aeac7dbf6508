//! What the API's description says of each number is what is taken.

use super::*;

/// A number that is asked for: where, and from what to what.
struct Number {
    method: String,
    path: String,
    place: Place,
    schema: Value,
}

enum Place {
    Path(String),
    Query(String),
    /// The names that lead to it.
    Body(Vec<String>),
}

impl Number {
    fn name(&self) -> &str {
        match &self.place {
            Place::Path(name) | Place::Query(name) => name,
            Place::Body(names) => names.last().expect("a name"),
        }
    }

    async fn ask(&self, api: &Api, value: &Value) -> (u16, Value) {
        let mut path = self.path.clone();
        if let Place::Path(name) = &self.place {
            path = path.replace(&format!("{{{name}}}"), &value.to_string());
        }
        // The others are names.
        while let Some((before, rest)) = path.clone().split_once('{') {
            path = format!("{before}x{}", rest.split_once('}').expect("closed").1);
        }
        if let Place::Query(name) = &self.place {
            path = format!("{path}?{name}={value}");
        }
        let body = match &self.place {
            Place::Body(names) => names.iter().rev().fold(value.clone(), |inner, name| match name.as_str() {
                "[]" => json!([inner]),
                name => json!({ name: inner }),
            }),
            Place::Path(_) | Place::Query(_) => json!({}),
        };
        api.ask(&self.method, &format!("{PREFIX}{path}"), &body.to_string()).await
    }
}

fn is(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

/// Every number in a body, with the names that lead to it.
fn in_body(document: &Value, schema: &Value, names: &[String], found: &mut Vec<(Vec<String>, Value)>) {
    assert!(names.len() < 10, "{names:?}");
    let with = |name: &str| [names, &[name.to_string()]].concat();
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).expect("described");
        in_body(document, target, names, found);
    }
    if is(schema, "integer") || is(schema, "number") {
        found.push((names.to_vec(), schema.clone()));
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        in_body(document, schema, &with(name), found);
    }
    if schema["items"].is_object() {
        in_body(document, &schema["items"], &with("[]"), found);
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for schema in schema[word].as_array().into_iter().flatten() {
            in_body(document, schema, names, found);
        }
    }
}

fn numbers(document: &Value) -> Vec<Number> {
    let mut numbers = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let number = |place, schema: &Value| Number {
                method: method.to_uppercase(),
                path: path.clone(),
                place,
                schema: schema.clone(),
            };
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let (name, schema) = (parameter["name"].as_str().expect("a name").to_string(), &parameter["schema"]);
                assert!(schema["$ref"].is_null(), "{path}: {name} is described elsewhere");
                if is(schema, "integer") || is(schema, "number") {
                    let place = if parameter["in"] == "path" { Place::Path(name) } else { Place::Query(name) };
                    numbers.push(number(place, schema));
                }
            }
            let mut found = Vec::new();
            in_body(document, &operation["requestBody"]["content"]["application/json"]["schema"], &[], &mut found);
            numbers.extend(found.into_iter().map(|(names, schema)| number(Place::Body(names), &schema)));
        }
    }
    numbers
}

#[tokio::test]
async fn every_whole_number_is_held_to_what_the_description_says_of_it() {
    let api = owner();
    let document = crate::web::document("session");
    let mut whole = 0;
    for number in numbers(&document) {
        let (name, schema) = (number.name(), &number.schema);
        let told = format!("{} {} {name}", number.method, number.path);
        if is(schema, "number") {
            continue;
        }
        whole += 1;
        let (Some(least), Some(most)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64()) else {
            panic!("{told}: nothing says from where to where it goes: {schema}");
        };
        assert!(least < most, "{told}: {schema}");
        let wanted = format!("is not a whole number from {least} to {most}");
        for beyond in [i128::from(least) - 1, i128::from(most) + 1, i128::from(u64::MAX), i128::from(u64::MAX) + 1] {
            let beyond: Value = serde_json::from_str(&beyond.to_string()).expect("a number");
            let (status, answer) = number.ask(&api, &beyond).await;
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(
                status == 400 && error.contains(name) && error.contains(&wanted),
                "{told}={beyond}: {status} {answer}"
            );
        }
        for within in [least, most] {
            let (status, answer) = number.ask(&api, &json!(within)).await;
            // There may be nothing of that number, or more may be missing.
            let error = answer["error"].as_str().unwrap_or_default();
            let refused = error.contains("whole number")
                || error.contains(&format!("{name}: {within}"))
                || error.contains("invalid value");
            assert!(!refused && status < 500, "{told}={within}: {status} {answer}");
        }
    }
    assert!(whole >= 20, "only {whole} numbers were found");
}

#[tokio::test]
async fn other_numbers_are_held_to_it_too() {
    let api = owner();
    for body in [json!({ "over_provisioning_percent": 0 }), json!({ "over_provisioning_percent": 10_000.5 })] {
        let words = "over_provisioning_percent: ";
        api.fails("POST", "/api/v1/create", &body.to_string(), 400, words).await;
        api.fails("POST", "/api/v1/create", &body.to_string(), 400, "is not a number above 0 up to 10000").await;
    }
    api.fails("GET", "/api/v1/audit?limit=x", "", 400, "limit: 'x' is not a whole number from 1 to 1000").await;
    api.fails("GET", "/api/v1/jobs/x", "", 400, "id: 'x' is not a whole number from 0 to ").await;
    // A head is asked for like the rest.
    assert_eq!(api.ask("HEAD", "/api/v1/audit?limit=0", "").await.0, 400);
}
