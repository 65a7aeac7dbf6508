//! Placements: what the writes of a load belong together with, as a host says it by NVMe's flexible data placement.

use serde::{Deserialize, Serialize};

/// The placement that the writes of a load name, or several of which each write names one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected the number of a placement, or several such as { among = [1, 2], choose = \"random\" }"
)]
pub enum Placement {
    /// All name this one; 0 is what a write goes to that names none.
    One(u8),
    /// Each names one of these.
    Several(Several),
}

/// See [`Placement::Several`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Several {
    /// Their numbers; where there are none, all that the device tells apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<u8>,
    /// Which one comes next.
    #[serde(default)]
    pub choose: Choose,
}

/// Which of several placements a write names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// Each thread goes through them in order, from the first again after the last.
    #[default]
    InTurn,
    /// All alike.
    Random,
}

impl Placement {
    /// Those that the writes to a device name, which tells `placements` apart.
    ///
    /// # Errors
    /// The device has no such placement; says which there are.
    pub fn on(&self, placements: u8) -> Result<Vec<u8>, String> {
        let named = match self {
            Placement::One(number) => vec![*number],
            Placement::Several(several) if several.among.is_empty() => (0..placements).collect(),
            Placement::Several(several) => several.among.clone(),
        };
        if placements <= 1 {
            return Err(
                "placement: the device tells no placements apart; flash does with the grooming policy `placement` (--groomer placement)"
                    .into(),
            );
        }
        match named.iter().find(|number| **number >= placements) {
            Some(number) => Err(format!("placement {number}: the device has placements 0 to {}", placements - 1)),
            None => Ok(named),
        }
    }

    /// Which of several comes next.
    pub fn choose(&self) -> Choose {
        match self {
            Placement::One(_) => Choose::default(),
            Placement::Several(several) => several.choose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_json, from_toml};
    use super::*;

    fn text(placement: &str) -> String {
        format!(
            "name = \"w\"\n[[phase]]\nname = \"p\"\nstop = {{ duration = 1 }}\n[[phase.load]]\nread_percent = 0\nsize = 4096\n{placement}\n"
        )
    }

    fn placement(line: &str) -> Option<Placement> {
        let workload = from_toml(&text(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        let json = serde_json::to_string(&workload).expect("JSON");
        assert_eq!(from_json(&json).expect("what was written"), workload, "{json}");
        let toml = toml::to_string(&workload).expect("TOML");
        assert_eq!(from_toml(&toml).expect("what was written"), workload, "{toml}");
        workload.phases[0].loads[0].placement.clone()
    }

    #[test]
    fn it_is_one_or_several() {
        let several = |among: &[u8], choose| Some(Placement::Several(Several { among: among.to_vec(), choose }));
        assert_eq!(placement(""), None);
        assert_eq!(placement("placement = 3"), Some(Placement::One(3)));
        assert_eq!(placement("placement = { among = [1, 2] }"), several(&[1, 2], Choose::InTurn));
        assert_eq!(placement("placement = { choose = \"random\" }"), several(&[], Choose::Random));
        for wrong in ["placement = -1", "placement = 300", "placement = \"hot\"", "placement = { of = [1] }"] {
            let message = from_toml(&text(wrong)).expect_err(wrong).to_string();
            assert!(message.contains("expected the number of a placement, or several such as"), "{wrong}: {message}");
        }
    }

    #[test]
    fn a_device_has_those_that_it_tells_apart() {
        let on = |line: &str, placements| placement(line).expect("one").on(placements);
        assert_eq!(on("placement = 5", 6), Ok(vec![5]));
        assert_eq!(on("placement = {}", 3), Ok(vec![0, 1, 2]));
        assert_eq!(on("placement = { among = [2, 0] }", 3), Ok(vec![2, 0]));
        assert_eq!(on("placement = 6", 6), Err("placement 6: the device has placements 0 to 5".into()));
        let message = on("placement = 0", 1).expect_err("none there");
        assert!(message.contains("--groomer placement"), "{message}");
    }
}
