//! The bounds of numbers that are asked for: the API's description says them, and what it says is what is enforced, in front of every handler.

mod describe;
mod shape;

use std::collections::HashMap;
use std::sync::OnceLock;

use axum::http::Method;
use serde_json::Value;

pub use describe::complete;
use shape::{Range, Shape};

use crate::Failure;

/// The numbers of one method of one path.
#[derive(Default)]
pub struct Operation {
    /// In the path, by name.
    path: HashMap<String, Range>,
    /// Behind the question mark, by name.
    query: HashMap<String, Range>,
    body: Option<Shape>,
}

/// By path and method; where no number is asked for there is no entry.
static OPERATIONS: OnceLock<HashMap<(String, String), Operation>> = OnceLock::new();

/// Takes the bounds from the API's description, before anything is asked.
pub fn learn(document: impl FnOnce() -> Value) {
    OPERATIONS.get_or_init(|| describe::operations(&document()));
}

/// The numbers that are asked for there, if there are any: the path is the pattern of the route, behind the API's prefix.
pub fn of(method: &Method, path: &str) -> Option<&'static Operation> {
    let method = if *method == Method::HEAD { Method::GET } else { method.clone() };
    OPERATIONS.get()?.get(&(path.to_string(), method.as_str().to_ascii_lowercase()))
}

impl Operation {
    /// Looks at what stands behind the question mark.
    ///
    /// # Errors
    /// A number is none, or not within its bounds.
    pub fn check_query<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), Failure> {
        check_texts("the question", &self.query, pairs)
    }

    /// Looks at what stands in the path.
    ///
    /// # Errors
    /// A number is none, or not within its bounds.
    pub fn check_path<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), Failure> {
        check_texts("the path", &self.path, pairs)
    }

    /// Looks at a JSON body. What is wrong with it otherwise is not said here.
    ///
    /// # Errors
    /// A number is not within its bounds.
    pub fn check_body(&self, body: &[u8]) -> Result<(), Failure> {
        let wrong = self.body.as_ref().and_then(|shape| shape.wrong_in(body));
        wrong.map_or(Ok(()), |wrong| Err(refused("the request's body", &wrong)))
    }

    fn is_empty(&self) -> bool {
        self.path.is_empty() && self.query.is_empty() && self.body.is_none()
    }
}

fn check_texts<'a>(
    place: &str,
    ranges: &HashMap<String, Range>,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), Failure> {
    let wrong = pairs.into_iter().find_map(|(name, text)| {
        let range = ranges.get(name)?;
        (!range.holds_text(text)).then(|| format!("{name}: '{}' is not {range}", text.escape_debug()))
    });
    wrong.map_or(Ok(()), |wrong| Err(refused(place, &wrong)))
}

fn refused(place: &str, wrong: &str) -> Failure {
    Failure::invalid(format!("{place}: {wrong}")).help("`GET /api/v1/openapi.json` says what each number may be")
}

/// The description that a reference leads to, or this.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|reference| document.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(schema)
}
