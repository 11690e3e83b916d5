//! The tiers, and what the words of a command line select from them.

use std::time::Duration;

/// The name of the module in a fault or conformance suite whose tests are the smoke that continuous integration runs.
const SMOKE: &str = "smoke";

/// Where a test runs and how long that may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Unit and documentation tests of all packages, on the host.
    Unit,
    /// Loop devices and metadata-only LVM, on the host, as root.
    Loop,
    /// Real device-mapper, in the machine.
    System,
    /// The test suites of others against our sockets, in the machine.
    Conformance,
    /// Power cuts, lost disks, full pools and killed workers, in the machine.
    Fault,
    /// Long runs, in the machine, started by hand.
    Soak,
}

impl Tier {
    /// All tiers, in the order in which they run.
    pub const ALL: [Tier; 6] =
        [Tier::Unit, Tier::Loop, Tier::System, Tier::Conformance, Tier::Fault, Tier::Soak];

    /// The word for it on the command line, and the beginning of its suites' names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tier::Unit => "unit",
            Tier::Loop => "loop",
            Tier::System => "system",
            Tier::Conformance => "conformance",
            Tier::Fault => "fault",
            Tier::Soak => "soak",
        }
    }

    /// The tier of a suite such as `system_rig`.
    #[must_use]
    pub fn of_suite(suite: &str) -> Option<Tier> {
        let (first, _) = suite.split_once('_')?;
        Tier::ALL.into_iter().find(|tier| tier.name() == first && *tier != Tier::Unit)
    }

    /// Whether continuous integration runs only its smoke.
    #[must_use]
    fn has_smoke(self) -> bool {
        matches!(self, Tier::Fault | Tier::Conformance)
    }

    /// How long one of its tests may take unless its name says more.
    #[must_use]
    pub fn limit(self) -> Duration {
        match self {
            Tier::Unit | Tier::Loop | Tier::System => Duration::from_secs(120),
            Tier::Fault | Tier::Conformance => Duration::from_secs(300),
            Tier::Soak => Duration::from_secs(3600),
        }
    }
}

/// Which tests to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    tiers: Option<Vec<Tier>>,
    filters: Vec<String>,
}

impl Selection {
    /// Takes tier names, `full`, and anything else as a part of test names.
    #[must_use]
    pub fn parse(words: &[String]) -> Self {
        let mut tiers = Vec::new();
        let mut filters = Vec::new();
        for word in words {
            match Tier::ALL.into_iter().find(|tier| tier.name() == word) {
                Some(tier) => tiers.push(tier),
                None if word == "full" => tiers.extend(Tier::ALL),
                None => filters.push(word.clone()),
            }
        }
        if tiers.is_empty() && !filters.is_empty() {
            // A part of a name that begins like a suite's can only mean that suite's tier.
            let meant: Option<Vec<Tier>> = filters.iter().map(|filter| Tier::of_suite(filter)).collect();
            tiers = meant.unwrap_or_default();
        }
        Selection { tiers: (!tiers.is_empty()).then_some(tiers), filters }
    }

    /// Whether anything of this tier runs.
    #[must_use]
    pub fn has(&self, tier: Tier) -> bool {
        self.tiers.as_ref().map_or(tier != Tier::Soak, |tiers| tiers.contains(&tier))
    }

    /// Why a tier does not run, or not wholly.
    #[must_use]
    pub fn leaves_out(&self, tier: Tier) -> Option<&'static str> {
        match (&self.tiers, tier) {
            (None, Tier::Soak) => Some("not run by default; `cargo xtask test full` runs it"),
            (None, tier) if tier.has_smoke() => {
                Some("only its smoke tests run by default; `cargo xtask test full` runs all")
            }
            (Some(tiers), _) if !tiers.contains(&tier) => Some("not asked for"),
            _ => None,
        }
    }

    /// Whether a test with this full name runs.
    #[must_use]
    pub fn wants(&self, tier: Tier, full_name: &str) -> bool {
        let smoke_only = tier.has_smoke() && self.tiers.is_none();
        self.has(tier)
            && (!smoke_only || full_name.split("::").any(|part| part == SMOKE))
            && (self.filters.is_empty() || self.filters.iter().any(|filter| full_name.contains(filter)))
    }

    /// The parts of test names that were given.
    #[must_use]
    pub fn filters(&self) -> &[String] {
        &self.filters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(words: &[&str]) -> Selection {
        Selection::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn nothing_given_means_everything_but_soak_and_only_the_smoke_of_fault() {
        let default = selection(&[]);
        assert!(default.wants(Tier::System, "system_dm::a"));
        assert!(default.wants(Tier::Fault, "fault_cut::smoke::a"));
        assert!(!default.wants(Tier::Fault, "fault_cut::a"));
        assert!(!default.wants(Tier::Soak, "soak_worker::a"));
        assert!(default.leaves_out(Tier::Fault).is_some());
        assert!(default.leaves_out(Tier::System).is_none());
    }

    #[test]
    fn full_means_everything() {
        let full = selection(&["full"]);
        assert!(full.wants(Tier::Fault, "fault_cut::a"));
        assert!(full.wants(Tier::Soak, "soak_worker::a"));
        assert!(Tier::ALL.into_iter().all(|tier| full.leaves_out(tier).is_none()));
    }

    #[test]
    fn a_word_that_is_no_tier_filters_names_within_the_given_tiers() {
        let some = selection(&["system", "thin"]);
        assert!(some.wants(Tier::System, "system_thin::a"));
        assert!(!some.wants(Tier::System, "system_dm::a"));
        assert!(!some.wants(Tier::Loop, "loop_thin::a"));
        assert_eq!(some.filters(), ["thin"]);
    }

    #[test]
    fn a_filter_that_begins_like_a_suite_means_its_tier() {
        let suite = selection(&["system_rig::a"]);
        assert!(suite.has(Tier::System) && !suite.has(Tier::Unit));
        assert!(selection(&["system_rig", "thin"]).has(Tier::Unit));
        assert!(selection(&["fault_cut"]).wants(Tier::Fault, "fault_cut::not_smoke"));
    }

    #[test]
    fn the_tier_of_a_suite_is_the_beginning_of_its_name() {
        assert_eq!(Tier::of_suite("system_rig"), Some(Tier::System));
        assert_eq!(Tier::of_suite("unit_x"), None);
        assert_eq!(Tier::of_suite("systems"), None);
    }
}
