//! The API's description, made from the code that answers.

use serde_json::Value;
use telemetry::{Unit, table};
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::server::Server;
use utoipa::openapi::{OpenApi, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::bounds;
use crate::api::PREFIX;

/// The description of a device, which follows from the table of fields.
pub struct DeviceFields;

impl PartialSchema for DeviceFields {
    fn schema() -> RefOr<Schema> {
        let mut object = ObjectBuilder::new().description(Some("A device. What is not known is left out."));
        for field in table::fields() {
            let plain = |kind: Type| ObjectBuilder::new().schema_type(kind).description(Some(field.meaning)).build();
            let schema: Schema = match field.unit {
                Unit::Text => plain(Type::String).into(),
                Unit::Flag => plain(Type::Boolean).into(),
                Unit::Count | Unit::Bytes | Unit::Time => plain(Type::Integer).into(),
                Unit::Percent
                | Unit::Ratio
                | Unit::Celsius
                | Unit::Watts
                | Unit::Microseconds
                | Unit::Seconds
                | Unit::BytesPerSecond
                | Unit::PerSecond
                | Unit::Hours
                | Unit::NanosecondsPerByte => plain(Type::Number).into(),
                Unit::List if matches!(field.name, "config" | "emulation") => {
                    let anything = AdditionalProperties::FreeForm(true);
                    ObjectBuilder::new().additional_properties(Some(anything)).description(Some(field.meaning)).into()
                }
                Unit::List => ArrayBuilder::new().description(Some(field.meaning)).build().into(),
            };
            object = object.property(field.name, schema);
        }
        object.required("name").required("state").into()
    }
}

impl ToSchema for DeviceFields {
    fn name() -> std::borrow::Cow<'static, str> {
        "Device".into()
    }
}

/// A fault drill: its name, and what goes with it.
pub struct DrillBody;

impl PartialSchema for DrillBody {
    fn schema() -> RefOr<Schema> {
        let name =
            ObjectBuilder::new().schema_type(Type::String).description(Some("which drill, such as power-cut or rot"));
        ObjectBuilder::new()
            .description(Some("a fault drill; what goes with it is described under Fault drills in the documentation"))
            .property("drill", name)
            .required("drill")
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

impl ToSchema for DrillBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "Drill".into()
    }
}

/// The description as plain values, with what the session's cookie is called.
pub fn document(api: OpenApi, cookie: &str) -> Value {
    let mut document = serde_json::to_value(complete(api, cookie)).unwrap_or_default();
    bounds::complete(&mut document);
    describe_answers(&mut document);
    document
}

/// Describes each response whose route does not: OpenAPI 3.1 requires a description.
fn describe_answers(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let operations = paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut());
    for answers in operations.filter_map(|operation| operation["responses"].as_object_mut()) {
        for (status, answer) in answers {
            let words = match status.as_str() {
                "200" => "Success: the result.",
                "201" => "Created.",
                "202" => "Accepted: the job that does it.",
                "204" => "Success, without content.",
                _ => "Error: what failed, why, and what to do.",
            };
            let described = answer["description"].as_str().is_some_and(|words| !words.is_empty());
            if !described && answer.get("$ref").is_none() {
                answer["description"] = words.into();
            }
        }
    }
}

/// What the routes do not say of themselves.
fn complete(mut api: OpenApi, cookie: &str) -> OpenApi {
    api.info.title = "OpenVSL".into();
    api.info.version = env!("CARGO_PKG_VERSION").into();
    api.info.description = Some("The service that owns attached devices. docs/api.md says how to get in.".into());
    api.info.license = None;
    api.info.contact = None;
    api.servers = Some(vec![Server::new(PREFIX)]);
    let components = api.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("key", SecurityScheme::Http(bearer));
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(cookie))));
    let none: [&str; 0] = [];
    api.security = Some(vec![SecurityRequirement::new("key", none), SecurityRequirement::new("session", none)]);
    api
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_and_method_is_described() {
        let api = crate::web::document("session");
        assert!(api["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")), "{}", api["openapi"]);
        for (path, methods) in [
            ("/devices", &["get", "post"][..]),
            ("/devices/{name}/config", &["get", "patch"]),
            ("/devices/{name}/drills", &["get", "post"]),
            ("/session", &["get", "post", "delete"]),
            ("/alert-rules/{name}", &["put", "delete"]),
            ("/notifications", &["get", "put"]),
            ("/stream", &["get"]),
        ] {
            for method in methods {
                let operation = &api["paths"][path][*method];
                assert!(operation["responses"].is_object(), "{method} {path}: {operation}");
            }
        }
        // Programs made from it call each operation by its id.
        let operations = api["paths"].as_object().expect("paths").values().flat_map(|path| path.as_object());
        let mut ids: Vec<_> =
            operations.flat_map(|path| path.values()).filter_map(|one| one["operationId"].as_str()).collect();
        assert!(ids.len() > 50, "{ids:?}");
        ids.sort_unstable();
        assert_eq!(ids.iter().find(|id| ids.iter().filter(|other| other == id).count() > 1), None);
        let results = api["components"]["schemas"]["JobResult"]["oneOf"].to_string();
        assert!(results.contains("#/components/schemas/Prediction") && results.contains("string"), "{results}");
        let device = &api["components"]["schemas"]["Device"]["properties"];
        assert_eq!(device["host_written_bytes"]["type"], "integer");
        assert_eq!(device.as_object().map(serde_json::Map::len), Some(table::fields().count()));
        // OpenAPI 3.1 wants a description of each answer.
        let operations = api["paths"].as_object().expect("paths").values().flat_map(|path| path.as_object());
        for answers in operations.flat_map(|path| path.values()).filter_map(|one| one["responses"].as_object()) {
            let mute = answers.iter().find(|(_, answer)| answer["description"].as_str().is_none_or(str::is_empty));
            assert_eq!(mute, None);
        }
        // Nothing refers to what is not there.
        let whole = api.to_string();
        for reference in whole.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(api["components"]["schemas"][name].is_object(), "{name} is not described");
        }
    }
}
