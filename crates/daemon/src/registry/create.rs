//! Making devices, and attaching what was made.

use device::Info;

use super::Registry;
use crate::api::{AttachRequest, CreateRequest, DeviceView, Opener};
use crate::{Failure, Target, create, names};

impl Registry {
    /// Makes the devices that are asked for, and attaches them where that is asked for too.
    ///
    /// # Errors
    /// They cannot be made so; or they were, and one cannot be attached.
    pub fn create(&self, request: &CreateRequest) -> Result<Vec<DeviceView>, Failure> {
        if let Some(path) = request.paths.iter().find(|path| path.is_relative()) {
            return Err(Failure::invalid(format!("{}: the path of a new device must be absolute", path.display()))
                .help("the service has another working directory than its clients"));
        }
        if let Some(path) = request.paths.iter().find(|path| path.to_string_lossy().contains([',', '\0'])) {
            return Err(Failure::invalid(format!("{}: a comma stands between the files of a device", path.display()))
                .help("choose a path without"));
        }
        request.name.as_deref().map_or(Ok(()), |name| names::check("device", name))?;
        let opener = request.encrypt.clone().unwrap_or_default();
        let secret = request.encrypt.as_ref().map(Opener::secret).transpose()?;
        let made = create::create(request, secret.as_ref(), None, &|_| {})?;
        let paths: Vec<String> = made.iter().map(|info| Target::Files(info.paths.clone()).to_string()).collect();
        tracing::info!(paths = paths.join(" "), encrypted = secret.is_some(), "made");
        if !request.attach {
            return Ok(made.into_iter().map(|info| DeviceView::detached(&info.paths.clone(), Ok(info))).collect());
        }
        let several = made.len() > 1;
        made.iter().map(|info| self.attach_made(request, &opener, info, several)).collect()
    }

    fn attach_made(
        &self,
        request: &CreateRequest,
        opener: &Opener,
        info: &Info,
        several: bool,
    ) -> Result<DeviceView, Failure> {
        let attach = AttachRequest {
            path: Target::Files(info.paths.clone()).to_string(),
            // Modules of one card are told apart by their files.
            name: request.name.clone().filter(|_| !several),
            remember: request.remember,
            passphrase: opener.passphrase.clone(),
            key_file: opener.key_file.clone(),
            ..AttachRequest::default()
        };
        self.attach(&attach).map_err(|failure| Failure {
            error: format!("{} was made, and cannot be attached: {}", attach.path, failure.error),
            ..failure
        })
    }
}
