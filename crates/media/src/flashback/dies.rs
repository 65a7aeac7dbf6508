//! Which dies serve, and whether the device's superblock says so.

/// How a die stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum DieState {
    /// It serves.
    #[default]
    Good = 0,
    /// It failed or is missing: nothing is asked of it any more, and what it held is rebuilt from the others.
    Lost = 1,
    /// It is written like any other, but what it held before is still being rebuilt: nobody reads it.
    Rebuilding = 2,
}

impl TryFrom<u8> for DieState {
    type Error = u8;
    fn try_from(byte: u8) -> Result<DieState, u8> {
        Ok(match byte {
            0 => DieState::Good,
            1 => DieState::Lost,
            2 => DieState::Rebuilding,
            other => return Err(other),
        })
    }
}

pub(super) struct Dies {
    states: Vec<DieState>,
    /// How many may be missing.
    spare: usize,
    /// The states are others than the superblock says.
    changed: bool,
}

impl Dies {
    pub fn new(states: Vec<DieState>, spare: u32) -> Dies {
        Dies { states, spare: spare as usize, changed: false }
    }

    pub fn states(&self) -> &[DieState] {
        &self.states
    }

    /// Whether what it holds counts.
    pub fn reads(&self, die: u32) -> bool {
        self.states[die as usize] == DieState::Good
    }

    /// Whether it is to be written.
    pub fn writes(&self, die: u32) -> bool {
        self.states[die as usize] != DieState::Lost
    }

    /// Whether the device can go on without these dies, and those that are missing already.
    pub fn may_lose(&self, dies: &[u32]) -> bool {
        let missing = self.states.iter().filter(|state| **state != DieState::Good).count();
        let serving = dies.iter().filter(|die| self.reads(**die)).count();
        missing + serving <= self.spare
    }

    /// A die failed; false when there are too many already.
    pub fn lose(&mut self, die: u32) -> bool {
        if !self.may_lose(&[die]) {
            return false;
        }
        if self.writes(die) {
            self.states[die as usize] = DieState::Lost;
            self.changed = true;
        }
        true
    }

    pub fn set(&mut self, die: u32, state: DieState) {
        self.states[die as usize] = state;
        self.changed = true;
    }

    pub fn is_recorded(&self) -> bool {
        !self.changed
    }

    /// The superblock says this now.
    pub fn recorded(&mut self, states: &[DieState]) {
        self.changed &= states != self.states;
    }
}
