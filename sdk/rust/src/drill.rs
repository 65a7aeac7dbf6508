//! Faults on command, on devices that were made for it.

use device::{Drill, Unsynced};

use crate::job::Job;
use crate::pending::Answer;
use crate::{Device, Error};

impl Device {
    /// Begins a drill, and says in words what was done. The device must be marked for drills
    /// ([`CreateOptions::drills`](crate::CreateOptions)) and open in this process.
    ///
    /// # Errors
    /// The drill does not fit the device, or is on already.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("drill.vsl");
    /// use openvsl::{CreateOptions, Device, Error};
    ///
    /// let mut options = CreateOptions::default();
    /// options.drills = true;
    /// openvsl::create(&path, 64 << 20, &options)?;
    /// let device = Device::open(&path)?;
    ///
    /// device.write_durable(0, &[1; 4096])?;
    /// device.write(0, &[2; 4096])?; // not flushed: the cut may take it, but not tear it
    /// device.cut_power()?;
    /// assert_eq!(device.read(0, 1), Err(Error::PowerOff));
    /// device.power_on()?;
    /// let found = device.read(0, 1)?;
    /// assert!(found == [1; 4096] || found == [2; 4096]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drill(&self, drill: Drill) -> Result<String, Error> {
        self.ask(|done| Job::Drill(drill, done), Answer::said).wait()
    }

    /// Ends the drills of a name, or `all` of them.
    ///
    /// # Errors
    /// There is no such drill, or it is not on.
    pub fn undo_drill(&self, name: &str) -> Result<(), Error> {
        let name = name.to_string();
        self.ask(|done| Job::UndoDrill(name, done), Answer::nothing).wait()
    }

    /// Cuts the power now. Of what was written and not flushed, chance decides what is lost, kept or torn on the media. What that was
    /// is said in words, with the seed that repeats it.
    ///
    /// Requests fail with [`Error::PowerOff`] until [`Device::power_on`].
    ///
    /// # Errors
    /// The device is not marked for drills.
    pub fn cut_power(&self) -> Result<String, Error> {
        self.drill(Drill::PowerCut { at_write: None, at_program: None, unsynced: Unsynced::Random, seed: None })
    }

    /// Switches the device on again, and recovers it from what is on its files. Does nothing where the power is on.
    ///
    /// # Errors
    /// It does not come back, which no power cut may cause.
    pub fn power_on(&self) -> Result<(), Error> {
        self.ask(Job::PowerOn, Answer::nothing).wait()
    }
}
