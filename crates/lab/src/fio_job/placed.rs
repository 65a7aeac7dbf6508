//! fio's options for flexible data placement, as fio's HOWTO explains them.

use super::value;
use crate::workload::{Choose, Placement, Several};

/// The most handles that fio takes for a job.
const MOST: usize = 16;

/// What a job says of placements.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    on: bool,
    among: Vec<u8>,
    choose: Choose,
}

impl Placed {
    /// Takes an option, if it is one of these.
    ///
    /// # Errors
    /// Its value is none that fio knows, or asks for what is not simulated.
    pub fn set(&mut self, key: &str, given: Option<&str>) -> Result<bool, String> {
        let text = given.unwrap_or_default();
        match key {
            "fdp" => self.on = value::switch(given)?,
            "dataplacement" => {
                self.on = match text {
                    "none" => false,
                    "fdp" => true,
                    "streams" => {
                        return Err("streams of NVMe's directives are not simulated; expected none or fdp".into());
                    }
                    other => return Err(format!("'{other}' is not known; expected none or fdp")),
                }
            }
            "fdp_pli" | "plids" => {
                let numbers: Vec<u8> = text
                    .split(',')
                    .map(|number| value::number(number.trim()).map_err(|problem| format!("{problem} from 0 to 255")))
                    .collect::<Result<_, _>>()?;
                if numbers.len() > MOST {
                    return Err(format!("{} handles; fio takes at most {MOST}", numbers.len()));
                }
                self.among = numbers;
            }
            "fdp_pli_select" | "plid_select" => {
                self.choose = match text {
                    "random" => Choose::Random,
                    "roundrobin" => Choose::InTurn,
                    "scheme" => {
                        return Err("a scheme is a file of fio's own; give each of its parts a job with plids".into());
                    }
                    other => return Err(format!("'{other}' is not known; expected random or roundrobin")),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What writes name: nothing unless it is switched on, and all handles of the device where it says none.
    pub fn placement(self) -> Option<Placement> {
        let Placed { on, among, choose } = self;
        on.then_some(match among[..] {
            [one] => Placement::One(one),
            _ => Placement::Several(Several { among, choose }),
        })
    }
}
