//! What may be asked of another host, and what of its answers is passed on.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use percent_encoding::percent_decode_str;

use crate::Failure;
use crate::access::content;
use crate::api::Role;

/// How often an address may be escaped over: whoever escapes more has something to hide.
const ESCAPED: usize = 3;

/// Types of answers that the API has. Whatever else a host says its answer is, a browser must not come to see.
const KNOWN: [&str; 6] =
    ["application/json", "text/event-stream", "text/plain", "text/csv", "application/gzip", "text/html"];

/// The parts of the path below a host as its service will read them.
///
/// # Errors
/// A part is empty, goes up or stays where it is, or hides a separator, however often it is escaped: it could be another path there than
/// the one that is looked at here.
pub fn parts(tail: &str) -> Result<Vec<String>, Failure> {
    let refused = || {
        Failure::invalid(format!("the path '{}' below a host", tail.escape_debug()))
            .help("send it without empty parts, '.', '..', backslashes and escaped slashes")
    };
    tail.split('/').map(|part| part_of(part).ok_or_else(refused)).collect()
}

fn part_of(raw: &str) -> Option<String> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned());
    let is_plain = |text: &str| {
        !matches!(text, "" | "." | "..") && !text.contains(['/', '\\', ';']) && !text.contains(char::is_control)
    };
    let first = decode(raw)?;
    let mut text = first.clone();
    for _ in 0..ESCAPED {
        if !is_plain(&text) {
            return None;
        }
        let next = decode(&text)?;
        if next == text {
            return Some(first);
        }
        text = next;
    }
    None
}

/// Which role a request needs that is passed on: it is what it would be here, or more.
pub fn needed(method: &Method, parts: &[String]) -> Role {
    let first = parts.first().map(String::as_str).unwrap_or_default();
    // Wherever it stands: rather too much is asked for than too little.
    let destroys = parts.iter().any(|part| {
        matches!(part.as_str(), "create" | "erase" | "format" | "keys" | "migrate" | "promote" | "roll-back")
    });
    // What that host would pass on again it does with its own key, of which nobody here knows what it may.
    let further = first == "hosts" && parts.len() > 1 || first == "fleet" && *method == Method::POST;
    match *method {
        _ if further => Role::Administrator,
        Method::GET | Method::HEAD if matches!(first, "accounts" | "bugreport" | "notifications") => {
            Role::Administrator
        }
        Method::GET | Method::HEAD if first == "audit" => Role::Operator,
        Method::GET | Method::HEAD => Role::Viewer,
        _ if destroys => Role::Administrator,
        _ if matches!(first, "accounts" | "alert-rules" | "hosts" | "notifications" | "session" | "shutdown") => {
            Role::Administrator
        }
        _ => Role::Operator,
    }
}

/// The headers of an answer that is passed on: its type, where the API has such, and what caches are told; all else is ours.
///
/// # Errors
/// The host says that it is something that the API never gives, or a page where there is none.
pub fn headers(given: &HeaderMap, parts: &[String]) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    if let Some(kind) = given.get(header::CONTENT_TYPE) {
        let named = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let known = KNOWN.iter().find(|known| **known == named);
        let known = known.filter(|known| **known != "text/html" || parts.first().is_some_and(|first| first == "lab"));
        let Some(known) = known else {
            return Err(Failure::unreachable(format!(
                "the host answered with '{}', which is not passed on",
                named.escape_debug()
            ))
            .help("make sure that an OpenVSL service of this version answers at its address"));
        };
        let text = matches!(*known, "text/plain" | "text/csv" | "text/html");
        let value = if text { format!("{known}; charset=utf-8") } else { (*known).to_string() };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(&value).expect("a type of the list"));
    }
    for name in [header::CACHE_CONTROL, header::RETRY_AFTER] {
        if let Some(value) = given.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    content::confine_stranger(&mut headers);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_reach_to_other_hosts() {
        for (method, path, role) in [
            (Method::GET, "devices", Role::Viewer),
            (Method::GET, "audit", Role::Operator),
            (Method::GET, "%61udit", Role::Operator),
            (Method::GET, "accounts", Role::Administrator),
            (Method::GET, "notifications", Role::Administrator),
            (Method::POST, "devices/a/detach", Role::Operator),
            (Method::POST, "devices/a/format", Role::Administrator),
            (Method::POST, "devices/a/f%6Frmat", Role::Administrator),
            (Method::POST, "devices/a/keys/remove", Role::Administrator),
            (Method::POST, "devices/a/snapshots", Role::Operator),
            (Method::PUT, "devices/a/snapshot-schedule", Role::Operator),
            (Method::POST, "devices/a/snapshots/b/roll-back", Role::Administrator),
            (Method::POST, "devices/a/clones", Role::Operator),
            (Method::POST, "devices/a/clones/b/promote", Role::Administrator),
            (Method::POST, "create", Role::Administrator),
            (Method::PUT, "notifications", Role::Administrator),
            (Method::DELETE, "alert-rules/x", Role::Administrator),
            (Method::POST, "shutdown", Role::Administrator),
            (Method::POST, "hosts", Role::Administrator),
            (Method::GET, "hosts", Role::Viewer),
            (Method::GET, "hosts/b/accounts", Role::Administrator),
            (Method::GET, "fleet", Role::Viewer),
            (Method::POST, "fleet/moves", Role::Administrator),
        ] {
            let parts = parts(path).unwrap_or_else(|failure| panic!("{path}: {failure}"));
            assert_eq!(needed(&method, &parts), role, "{method} {path}");
        }
    }

    #[test]
    fn a_path_is_what_it_looks_like() {
        for path in [
            "devices/../shutdown",
            "devices/%2e%2e/shutdown",
            "devices/.%2E/shutdown",
            "devices/%252e%252e/shutdown",
            "devices/%25252e%25252e/shutdown",
            "devices/./a",
            "devices//a",
            "devices/",
            "",
            "devices/a%2fshutdown",
            "devices/a%252Fshutdown",
            "devices/..%5cshutdown",
            "devices/..\\shutdown",
            "devices/..;/shutdown",
            "devices/a%00",
            "devices/%ff",
            "..",
            "%2e%2e%2fshutdown",
        ] {
            assert!(parts(path).is_err(), "{path}");
        }
        assert_eq!(parts("devices/my%20disk").expect("a name"), ["devices", "my disk"]);
        assert_eq!(parts("devices/100%25").expect("a name"), ["devices", "100%"]);
    }

    #[test]
    fn only_what_the_api_has_is_passed_on() {
        let answer = |kind: &'static str, path: &str| {
            let mut given = HeaderMap::new();
            given.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            given.insert(header::SET_COOKIE, HeaderValue::from_static("a=b"));
            given.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src *"));
            headers(&given, &parts(path).expect("a plain path"))
        };
        for kind in
            ["text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "text/javascript", "", "TEXT/HTML ; x"]
        {
            assert!(answer(kind, "devices").is_err(), "{kind}");
        }
        let report = answer("Text/HTML; charset=utf-7", "lab/runs/a/report").expect("a report");
        assert_eq!(report[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = report[header::CONTENT_SECURITY_POLICY].to_str().expect("text");
        assert!(policy.starts_with("sandbox;") && !policy.contains("script"), "{policy}");
        assert_eq!(report[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(!report.contains_key(header::SET_COOKIE));
        assert!(answer("application/json", "devices").is_ok() && answer("text/event-stream", "stream").is_ok());
    }
}
