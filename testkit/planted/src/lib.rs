//! Planted defects: lists of them, and the switch. Nothing of it is in a build without the feature `mutants` of the crate that has a list.

/// A list of planted defects as a module `mutants` of the crate that it stands in: an enumeration, all of it with names and
/// what is wrong, and whether one is on. A process has at most one, named by the variable `OPENVSL_MUTANT`.
#[macro_export]
macro_rules! defects {
    ($($name:ident $what:literal)*) => {
        /// The defects, and the switch.
        #[cfg(feature = "mutants")]
        pub mod mutants {
            /// A planted defect.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum Mutant {
                $(#[doc = $what] $name,)*
            }

            impl Mutant {
                /// All of them, with their names and what is wrong with them.
                pub const ALL: &[(Mutant, &str, &str)] = &[$((Mutant::$name, stringify!($name), $what),)*];
            }

            /// Whether it is on.
            pub fn is_on(mutant: Mutant) -> bool {
                static ON: std::sync::OnceLock<Option<Mutant>> = std::sync::OnceLock::new();
                *ON.get_or_init(|| {
                    let name = std::env::var("OPENVSL_MUTANT").ok()?;
                    // One that is not here stands in the list of another crate of the same program.
                    Mutant::ALL.iter().find(|(_, other, _)| *other == name).map(|(mutant, ..)| *mutant)
                }) == Some(mutant)
            }
        }
    };
}
