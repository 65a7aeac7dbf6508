//! Where a device's objects lie, as people write it.

use std::fmt;
use std::path::PathBuf;

use url::Url;

/// The address of a device in a store: a bucket and a prefix in it, or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `s3://`, `gs://` or `az://`.
    Remote(Url),
    /// `file://`.
    Directory(PathBuf),
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is none.
    #[error(
        "`{given}` is no address of an object store: {why}; expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY"
    )]
    Address {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store cannot be opened with what the address and the environment say.
    #[error("`{address}` cannot be opened: {why}")]
    Open {
        /// The address.
        address: String,
        /// Why.
        why: String,
    },
}

impl Address {
    /// Whether a text is meant as one, and not as a path or a name.
    pub fn is_meant(text: &str) -> bool {
        ["s3://", "gs://", "az://", "file://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let address = Address::parse_any(text)?;
        match &address {
            Address::Remote(url) if url.path().trim_matches('/').is_empty() => Err(AddressError::Address {
                given: text.into(),
                why: "it names no prefix: each device has one of its own".into(),
            }),
            _ => Ok(address),
        }
    }

    /// Reads one below which devices may lie, such as that of a whole bucket.
    ///
    /// # Errors
    /// It is none.
    pub fn parse_any(text: &str) -> Result<Address, AddressError> {
        let wrong = |why: &str| AddressError::Address { given: text.into(), why: why.into() };
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() || url.password().is_some() || !url.username().is_empty() {
            return Err(wrong("it has parts that an address of a device has not"));
        }
        match url.scheme() {
            "file" => {
                let path = url.to_file_path().map_err(|()| wrong("its path is not absolute"))?;
                if path.parent().is_none() {
                    return Err(wrong("it names the root directory"));
                }
                Ok(Address::Directory(path))
            }
            "s3" | "gs" | "az" => {
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(wrong("it names no bucket"));
                }
                Ok(Address::Remote(url))
            }
            scheme => Err(wrong(&format!("`{scheme}` is no kind of store"))),
        }
    }

    /// The address of what lies below this one, by its path there.
    pub fn below(&self, path: &str) -> Address {
        match self {
            Address::Remote(url) => {
                let mut url = url.clone();
                if let Ok(mut parts) = url.path_segments_mut() {
                    parts.pop_if_empty().extend(path.split('/').filter(|part| !part.is_empty()));
                }
                Address::Remote(url)
            }
            Address::Directory(root) => Address::Directory(root.join(path)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Remote(url) => f.write_str(url.as_str().trim_end_matches('/')),
            Address::Directory(path) => write!(f, "file://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_nonsense_is_refused_with_its_name() {
        for good in ["s3://bucket/a/b", "gs://bucket/a", "az://container/a", "file:///srv/objects"] {
            assert!(Address::is_meant(good));
            assert_eq!(Address::parse(good).expect(good).to_string(), good);
        }
        for (above, device) in [
            ("s3://bucket", "s3://bucket/a/b"),
            ("s3://bucket/x/", "s3://bucket/x/a/b"),
            ("file:///x", "file:///x/a/b"),
        ] {
            assert_eq!(Address::parse_any(above).expect(above).below("a/b").to_string(), device);
        }
        for wrong in ["s3://bucket", "s3://bucket/", "s3:///a", "http://host/a", "file://a", "file:///", "s3://u:p@b/a"]
        {
            let error = Address::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
