//! The web console, as files in memory: whoever serves HTTP hands them out. Nothing of it is fetched from anywhere else.

use std::io::Read;

/// What browsers are told to allow: the console's own scripts, styles, pictures and typeface, and requests to where it came from.
pub const SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the console.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its path, without a slash in front.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its contents, compressed with gzip.
    pub gzip: &'static [u8],
}

impl Asset {
    /// Its contents, for whoever does not take gzip.
    ///
    /// # Errors
    /// The program was damaged.
    pub fn plain(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(self.gzip).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// How long it may be kept: what has a hash of its contents in its name never changes.
    pub fn cache_control(&self) -> &'static str {
        if self.path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" }
    }
}

/// Every file.
pub static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The file at a path of the service's address; the page itself at `/`.
pub fn asset(path: &str) -> Option<&'static Asset> {
    let wanted = match path.trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    ASSETS.iter().find(|asset| asset.path == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(asset: &Asset) -> String {
        String::from_utf8(asset.plain().expect("whole")).expect("UTF-8")
    }

    #[test]
    fn the_page_names_only_files_that_are_there() {
        let page = asset("/").expect("a page");
        assert_eq!(
            (page.path, page.media_type, page.cache_control()),
            ("index.html", "text/html; charset=utf-8", "no-cache")
        );
        let html = text(page);
        let named: Vec<&str> = html.split(['"', '\'']).filter(|word| word.starts_with("./")).collect();
        assert!(
            named.iter().any(|name| name.ends_with(".js")) && named.iter().any(|name| name.ends_with(".css")),
            "{html}"
        );
        for name in named {
            let asset = asset(&name[1..]).unwrap_or_else(|| panic!("{name} is not there"));
            assert!(asset.cache_control().contains("immutable"), "{name}");
        }
        assert!(asset("/index.htm").is_none());
        assert!(asset("/../Cargo.toml").is_none());
    }

    #[test]
    fn the_page_keeps_to_the_policy() {
        let html = text(asset("/").expect("a page"));
        assert!(!html.contains("style="), "a style in place, which the policy forbids: {html}");
        let inline = html
            .split("<script")
            .skip(1)
            .any(|script| !script.split('>').next().is_some_and(|tag| tag.contains("src=")));
        assert!(!inline, "a script in place, which the policy forbids: {html}");
    }

    #[test]
    fn page_and_styles_name_no_other_address() {
        for asset in ASSETS.iter().filter(|asset| ["index.html", ".css"].iter().any(|end| asset.path.ends_with(end))) {
            assert!(!text(asset).contains("http"), "{}", asset.path);
        }
    }

    #[test]
    fn it_weighs_less_than_promised() {
        let weight: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
        assert!(weight < 300_000, "{weight} bytes compressed");
    }
}
