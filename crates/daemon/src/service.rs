//! What a service is made of, for whoever answers requests.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::access::{Access, Origins};
use crate::alerts::{Alerting, Outgoing};
use crate::audit::Audit;
use crate::hosts::Hosts;
use crate::jobs::Jobs;
use crate::monitor::Monitor;
use crate::registry::Registry;
use crate::{Failure, Program};

/// What every route may use.
#[derive(Clone)]
pub struct Service {
    /// The devices.
    pub registry: Arc<Registry>,
    /// Who may ask.
    pub access: Arc<Access>,
    /// Who changed what.
    pub audit: Arc<Audit>,
    /// What is measured.
    pub monitor: Arc<Monitor>,
    /// What is wrong.
    pub alerting: Arc<Alerting>,
    /// Other hosts' services.
    pub hosts: Arc<Hosts>,
    /// What takes long.
    pub jobs: Arc<Jobs>,
    /// Where lab runs are kept.
    pub lab: PathBuf,
    /// Where everything is kept that is remembered.
    pub state: PathBuf,
    /// The console's files, and what the lab knows.
    pub program: Program,
    /// Set to stop the service.
    pub stop: watch::Sender<bool>,
}

impl Service {
    /// With what is kept in a directory; and alerts that wait to be sent.
    ///
    /// # Errors
    /// Something in it is damaged.
    pub fn open(
        registry: Arc<Registry>,
        directory: &std::path::Path,
        origins: Origins,
        program: Program,
    ) -> Result<(Service, mpsc::Receiver<Outgoing>), Failure> {
        let (alerting, outgoing) = Alerting::open(directory)?;
        let (stop, _) = watch::channel(false);
        let monitor = Arc::new(Monitor::open(&directory.join("history.db"))?);
        let service = Service {
            registry,
            access: Arc::new(Access::open(directory, origins)?),
            audit: Arc::new(Audit::open(directory.join("audit.jsonl"))?),
            jobs: Arc::new(Jobs::new(Arc::clone(&monitor))),
            lab: directory.join("lab"),
            state: directory.into(),
            monitor,
            alerting: Arc::new(alerting),
            hosts: Arc::new(Hosts::open(directory)?),
            program,
            stop,
        };
        Ok((service, outgoing))
    }
}
