//! The web console, as files in memory: whoever serves HTTP hands them out. Nothing of it is fetched from anywhere else.

/// A file of the console.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its path, without a slash in front.
    pub path: &'static str,
    /// Its Content-Type.
    pub content_type: &'static str,
    /// Changes with its contents.
    pub etag: &'static str,
    /// Its contents, compressed with gzip.
    pub gzip: &'static [u8],
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
    use std::io::Read;

    use super::*;

    fn text(asset: &Asset) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(asset.gzip).read_to_string(&mut text).expect("whole, and UTF-8");
        text
    }

    fn page() -> String {
        text(asset("/").expect("a page"))
    }

    #[test]
    fn the_page_names_only_files_that_are_there() {
        let html = page();
        let named: Vec<&str> = html.split(['"', '\'']).filter(|word| word.starts_with("./")).collect();
        for ending in [".js", ".css", ".svg"] {
            assert!(named.iter().any(|name| name.ends_with(ending)), "no {ending} in {html}");
        }
        for name in named {
            assert!(asset(&name[1..]).is_some_and(|asset| !asset.etag.is_empty()), "{name} is not there");
        }
        assert!(asset("/index.htm").is_none());
        assert!(asset("/../Cargo.toml").is_none());
    }

    #[test]
    fn the_page_holds_no_scripts_and_styles_of_its_own() {
        let html = page();
        assert!(
            !html.contains("style=") && !html.contains("<style"),
            "the content security policy forbids styles: {html}"
        );
        let inline =
            html.split("<script").skip(1).find(|tag| !tag.split('>').next().is_some_and(|tag| tag.contains("src=")));
        assert_eq!(inline, None, "the content security policy forbids scripts");
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
