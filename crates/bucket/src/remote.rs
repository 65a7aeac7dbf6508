//! A store over the network, by the crate `object_store`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use media::object::anchor::ANCHOR_NAME;
use media::object::{Answer, Ask, Failure, Look};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    ClientConfigKey, ClientOptions, Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig,
    UpdateVersion,
};
use url::Url;

use crate::AddressError;

/// How long a request may take as a whole, and until its connection stands.
const DEADLINE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(5);

/// Longest text of an error that is passed on, bytes: stores answer with pages.
const WORDS: usize = 300;

/// A bucket and a prefix in it.
#[derive(Clone, Debug)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Remote {
    /// Opens it; nothing is asked of the store yet.
    pub(crate) fn open(url: &Url, endpoint: Option<&str>) -> Result<Remote, AddressError> {
        // The provider of all of this program's TLS; a second one to install changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |why: String| AddressError::Open { address: url.to_string(), why };
        let refused = |error: Error| failed(words(&error));
        let prefix = Path::from_url_path(url.path()).map_err(|error| failed(error.to_string()))?;
        // What is tried again is the plan's to decide.
        let retry = RetryConfig { max_retries: 0, retry_timeout: DEADLINE, ..RetryConfig::default() };
        let named = |key: &str| std::env::var(key).ok().filter(|value| !value.is_empty());
        let endpoint = endpoint.map(str::to_owned).filter(|endpoint| !endpoint.is_empty());
        let endpoint = endpoint.or_else(|| match url.scheme() {
            "s3" => {
                named("AWS_ENDPOINT_URL_S3").or_else(|| named("AWS_ENDPOINT_URL")).or_else(|| named("AWS_ENDPOINT"))
            }
            _ => None,
        });
        // Naming it with http is saying that it may be.
        let http = endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let client = ClientOptions::new()
            .with_timeout(DEADLINE)
            .with_connect_timeout(CONNECT)
            .with_config(ClientConfigKey::AllowHttp, http.to_string());
        let bucket = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
        let store: Arc<dyn ObjectStore> = match url.scheme() {
            "s3" => {
                let builder =
                    AmazonS3Builder::from_env().with_url(bucket).with_retry(retry).with_client_options(client);
                let builder = match endpoint {
                    Some(endpoint) => builder.with_endpoint(endpoint),
                    None => builder,
                };
                Arc::new(builder.build().map_err(refused)?)
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env()
                    .with_url(bucket)
                    .with_retry(retry)
                    .with_client_options(client);
                let builder = match endpoint {
                    Some(endpoint) => builder.with_base_url(&endpoint),
                    None => builder,
                };
                Arc::new(builder.build().map_err(refused)?)
            }
            _ => {
                let builder =
                    MicrosoftAzureBuilder::from_env().with_url(bucket).with_retry(retry).with_client_options(client);
                let builder = match endpoint {
                    Some(endpoint) => builder.with_endpoint(endpoint),
                    None => builder,
                };
                Arc::new(builder.build().map_err(refused)?)
            }
        };
        Ok(Remote { store, prefix })
    }

    fn path(&self, name: &str) -> Path {
        Path::from_iter(self.prefix.parts().chain(Path::from(name).parts()))
    }

    pub(crate) async fn perform(&self, ask: Ask) -> Answer {
        let done = match ask {
            // One that is there already is an earlier attempt, whose answer was lost.
            Ask::Put { name, bytes } => {
                return self.put_new(&name, bytes).await.map_or_else(Answer::Failed, |_| Answer::Done);
            }
            Ask::Get { name, range } => {
                self.store.get_range(&self.path(&name), range).await.map(|it| Answer::Bytes(it.to_vec()))
            }
            Ask::Swap { bytes, expected } => self.swap(bytes, expected).await,
            Ask::Fetch => self.fetch().await,
            Ask::Delete { name } => self.delete(&name).await,
            Ask::Note { .. } => Ok(Answer::Failed(Failure::Other("a store keeps no notes".into()))),
        };
        done.unwrap_or_else(|error| Answer::Failed(failure(&error)))
    }

    /// Makes an object, and says whether it was made: where one of that name is there already, it stays.
    pub(crate) async fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool, Failure> {
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&self.path(name), bytes.into(), options).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(failure(&error)),
        }
    }

    async fn delete(&self, name: &str) -> Result<Answer, Error> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(Answer::Done),
            Err(error) => Err(error),
        }
    }

    async fn swap(&self, bytes: Vec<u8>, expected: Option<String>) -> Result<Answer, Error> {
        let mode = match expected {
            None => PutMode::Create,
            Some(version) => PutMode::Update(version_of(&version)),
        };
        match self.store.put_opts(&self.path(ANCHOR_NAME), bytes.clone().into(), PutOptions::from(mode)).await {
            Ok(put) if put.e_tag.is_some() || put.version.is_some() => {
                Ok(Answer::Swapped(words_of(put.e_tag, put.version)))
            }
            // A store that does not say: what stands there does.
            Ok(_) => match self.fetch().await? {
                Answer::Anchor(found, version) if found == bytes => Ok(Answer::Swapped(version)),
                _ => Ok(Answer::Failed(Failure::Precondition)),
            },
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Answer::Failed(Failure::Precondition)),
            Err(error) => Err(error),
        }
    }

    /// Looks at the anchor, whose content is sent only where it is not the version that is known.
    pub(crate) async fn look(&self, known: Option<&str>) -> Result<Look, Failure> {
        let if_none_match = known.and_then(|known| version_of(known).e_tag);
        let options = GetOptions { if_none_match, ..GetOptions::default() };
        match self.store.get_opts(&self.path(ANCHOR_NAME), options).await {
            Ok(found) => {
                let version = words_of(found.meta.e_tag.clone(), found.meta.version.clone());
                let bytes = found.bytes().await.map_err(|error| failure(&error))?;
                Ok(Look::Found(bytes.to_vec(), version))
            }
            Err(Error::NotModified { .. }) => Ok(Look::Same),
            Err(Error::NotFound { .. }) => Ok(Look::Missing),
            Err(error) => Err(failure(&error)),
        }
    }

    async fn fetch(&self) -> Result<Answer, Error> {
        let found = self.store.get_opts(&self.path(ANCHOR_NAME), GetOptions::default()).await?;
        let version = words_of(found.meta.e_tag.clone(), found.meta.version.clone());
        Ok(Answer::Anchor(found.bytes().await?.to_vec(), version))
    }

    /// What lies below the prefix.
    pub(crate) fn below(&self, path: &str) -> Remote {
        Remote { store: Arc::clone(&self.store), prefix: self.path(path) }
    }

    /// Whether a device lies at a path, and the paths that go on below it.
    pub(crate) async fn level(&self, path: &str) -> Result<(bool, Vec<String>), Failure> {
        let at = self.path(path);
        let listed = self.store.list_with_delimiter(Some(&at)).await.map_err(|error| failure(&error))?;
        let has_anchor = listed.objects.iter().any(|object| object.location.filename() == Some(ANCHOR_NAME));
        let relative = |path: &Path| {
            let parts: Vec<_> = path.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        Ok((has_anchor, listed.common_prefixes.iter().filter_map(relative).collect()))
    }

    pub(crate) async fn names(&self) -> Result<Vec<String>, Failure> {
        let listed: Result<Vec<_>, Error> = self.store.list(Some(&self.prefix)).try_collect().await;
        let listed = listed.map_err(|error| failure(&error))?;
        let name = |path: &Path| {
            let parts: Vec<_> = path.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        Ok(listed.iter().filter_map(|object| name(&object.location)).collect())
    }
}

/// What a store says of an object's version, as one word, and back.
fn words_of(e_tag: Option<String>, version: Option<String>) -> String {
    format!("{}\n{}", e_tag.unwrap_or_default(), version.unwrap_or_default())
}

fn version_of(words: &str) -> UpdateVersion {
    let (e_tag, version) = words.split_once('\n').unwrap_or((words, ""));
    let some = |word: &str| (!word.is_empty()).then(|| word.to_owned());
    UpdateVersion { e_tag: some(e_tag), version: some(version) }
}

fn failure(error: &Error) -> Failure {
    match error {
        Error::NotFound { .. } => Failure::Missing,
        error => Failure::Other(words(error)),
    }
}

/// An error with its causes, in one line that is not too long.
fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(WORDS)].to_owned()
}
