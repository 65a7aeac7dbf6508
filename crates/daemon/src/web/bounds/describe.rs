//! Bounds in the API's description: said of every whole number that is asked for, and read from there.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::shape::{Range, Shape};
use super::{Operation, resolved};

/// How deep bodies are looked at; ours are not deeper than half of it.
const DEPTH: usize = 8;

/// Says of every whole number that is asked for from where to where it goes: what its format says, where the code says no more.
pub fn complete(document: &mut Value) {
    let mut asked = Vec::new();
    let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    for operation in paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut()) {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for schema in parameters.into_iter().flatten().filter_map(|parameter| parameter.get_mut("schema")) {
            bound(schema, &mut asked);
        }
        if let Some(schema) = operation.pointer_mut("/requestBody/content/application~1json/schema") {
            bound(schema, &mut asked);
        }
    }
    // What bodies are made of is said elsewhere, and refers to more.
    let mut done = 0;
    while let Some(reference) = asked.get(done).cloned() {
        if let Some(schema) = document.pointer_mut(&reference) {
            bound(schema, &mut asked);
        }
        done += 1;
    }
}

/// Bounds the whole numbers in a schema, and notes which others it refers to.
fn bound(schema: &mut Value, asked: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        if !asked.iter().any(|known| known == reference) {
            asked.push(reference.to_string());
        }
        return;
    }
    if is(schema, "integer") {
        let (least, most) = match schema["format"].as_str() {
            Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        for (word, bound) in [("minimum", least), ("maximum", most)] {
            if !schema[word].is_number() {
                schema[word] = json!(bound);
            }
        }
    }
    let Some(schema) = schema.as_object_mut() else { return };
    for (word, part) in schema.iter_mut() {
        match (word.as_str(), part) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|schema| bound(schema, asked));
            }
            ("oneOf" | "anyOf" | "allOf", Value::Array(parts)) => {
                parts.iter_mut().for_each(|schema| bound(schema, asked));
            }
            ("items", part) => bound(part, asked),
            _ => {}
        }
    }
}

/// Every operation that asks for numbers, by path and method.
pub fn operations(document: &Value) -> HashMap<(String, String), Operation> {
    let mut operations = HashMap::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, described) in methods.as_object().into_iter().flatten() {
            let mut operation = Operation::default();
            for parameter in described["parameters"].as_array().into_iter().flatten() {
                let (Some(name), Some(range)) = (parameter["name"].as_str(), range(&parameter["schema"])) else {
                    continue;
                };
                match parameter["in"].as_str() {
                    Some("path") => operation.path.insert(name.to_string(), range),
                    Some("query") => operation.query.insert(name.to_string(), range),
                    _ => None,
                };
            }
            let body = described.pointer("/requestBody/content/application~1json/schema");
            operation.body = body.and_then(|schema| shape(document, schema, DEPTH));
            if !operation.is_empty() {
                operations.insert((path.clone(), method.clone()), operation);
            }
        }
    }
    operations
}

fn shape(document: &Value, schema: &Value, depth: usize) -> Option<Shape> {
    let depth = depth.checked_sub(1)?;
    let schema = resolved(document, schema);
    if let Some(range) = range(schema) {
        return Some(Shape::Number(range));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let fields: BTreeMap<String, Shape> = properties
            .iter()
            .filter_map(|(name, schema)| Some((name.clone(), shape(document, schema, depth)?)))
            .collect();
        return (!fields.is_empty()).then_some(Shape::Fields(fields));
    }
    if schema["items"].is_object() {
        return Some(Shape::Each(Box::new(shape(document, &schema["items"], depth)?)));
    }
    // Something or null.
    schema["oneOf"].as_array().into_iter().flatten().find_map(|schema| shape(document, schema, depth))
}

fn range(schema: &Value) -> Option<Range> {
    if is(schema, "integer") {
        // What is whole in Rust's types may be written with a fraction of zero.
        let whole = |word: &str| schema[word].as_i64().or_else(|| schema[word].as_f64().map(|bound| bound as i64));
        return Some(Range::Whole(whole("minimum")?.into(), whole("maximum")?.into()));
    }
    if is(schema, "number") {
        let real = |word: &str| schema[word].as_f64();
        let above = real("exclusiveMinimum");
        let from = above.or_else(|| real("minimum"));
        let to = real("maximum");
        let bounded = from.is_some() || to.is_some();
        return bounded.then(|| Range::Real {
            from: from.unwrap_or(f64::NEG_INFINITY),
            above: above.is_some(),
            to: to.unwrap_or(f64::INFINITY),
        });
    }
    None
}

/// Whether a schema is of this type, or of this or null.
fn is(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    }
}
