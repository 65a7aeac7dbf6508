//! Against pages of others: a browser that was sent here by another page, or that was told another name for our address, is refused.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, header};

use crate::Failure;

/// The names under which the service may be asked, besides the addresses that it listens on.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Host names, without ports.
    pub names: Vec<String>,
}

impl Origins {
    /// Whether a request over TCP comes from our own pages, or from no page at all. Somebody may follow a link of another page to the
    /// console itself (`page`), which does nothing by being shown.
    ///
    /// # Errors
    /// It does not, and why.
    pub fn check(&self, headers: &HeaderMap, page: bool) -> Result<(), Failure> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if hosts.next().is_some() || !self.is_ours(host) {
            return Err(Failure::forbidden(format!("the request is for the host '{}'", host.escape_debug()))
                .help("ask by the address that the service listens on, or start it with --host-name NAME"));
        }
        if let Some(site) = headers.get("sec-fetch-site")
            && !matches!(site.as_bytes(), b"same-origin" | b"none")
            && !(page && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate"))
        {
            return Err(foreign("another site"));
        }
        if let Some(origin) = headers.get(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let ours = ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(host));
            if !ours {
                return Err(foreign(&origin.escape_debug().to_string()));
            }
        }
        Ok(())
    }

    /// Whether a `Host` header names us: by an address, as `localhost`, or by a name that was given. A name that somebody else
    /// points at our address is none of these.
    fn is_ours(&self, host: &str) -> bool {
        if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
            return true;
        }
        if host.starts_with('[') && host.ends_with(']') {
            return host[1..host.len() - 1].parse::<IpAddr>().is_ok();
        }
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            Some(_) => return false,
            None => host,
        };
        name.eq_ignore_ascii_case("localhost") || self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

fn foreign(origin: &str) -> Failure {
    Failure::forbidden(format!("the request comes from a page of {origin}"))
        .help("use the console that this service serves")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &str)]) -> Result<(), Failure> {
        let map = headers
            .iter()
            .map(|(name, value)| (axum::http::HeaderName::from_static(name), value.parse().expect("a value")));
        Origins { names: vec!["vsl.example.org".into()] }
            .check(&map.collect(), headers.contains(&("sec-fetch-dest", "document")))
    }

    #[test]
    fn foreign_names_and_pages_are_refused() {
        for host in
            ["127.0.0.1:7420", "localhost:7420", "LOCALHOST", "[::1]:7420", "[::1]", "192.0.2.1", "vsl.example.org:1"]
        {
            assert_eq!(check(&[("host", host)]), Ok(()), "{host}");
        }
        for host in
            ["evil.example.org", "evil.example.org:7420", "", "localhost:x", "localhost.evil.org", "[evil]", "a b"]
        {
            assert!(check(&[("host", host)]).is_err(), "{host}");
        }
        let host = ("host", "127.0.0.1:7420");
        check(&[host, ("origin", "http://127.0.0.1:7420"), ("sec-fetch-site", "same-origin")]).expect("our page");
        check(&[host, ("origin", "http://127.0.0.1:80")]).expect_err("another port is another page");
        check(&[host, ("origin", "http://evil.example.org")]).expect_err("another page");
        check(&[host, ("origin", "null")]).expect_err("a page that hides where it is from");
        check(&[host, ("sec-fetch-site", "cross-site")]).expect_err("another site");
        check(&[host, ("sec-fetch-site", "same-site")]).expect_err("another port or host");
        check(&[host, ("sec-fetch-site", "none")]).expect("typed by its user");
        check(&[]).expect_err("no host");
        let link = [host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        check(&link).expect_err("a link to the API");
        check(&[link[0], link[1], link[2], ("sec-fetch-dest", "document")]).expect("a link to the console");
    }
}
