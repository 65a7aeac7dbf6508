//! Power and heat: what a module takes, how warm it gets, and how writes are held back for it.
//!
//! The inside is one body that warms and cools exponentially: it heads for ambient plus resistance times power, with one time constant. The
//! resistance falls with the square root of the airflow, as that of a plate in a laminar stream does (Incropera and DeWitt,
//! "Fundamentals of Heat and Mass Transfer", chapter 7: Nu ~ Re^0.5). Power is averaged over [`PERIOD`]; where it exceeds the budget,
//! or the inside is too warm, writes are spaced out further each period, and let go again by steps when it is over.

use media::nand::Nanos;
use profile::Card;

/// Over which power is averaged and after which writes are spaced anew.
pub const PERIOD: Nanos = 100_000_000;
/// Share of a period's power in its running mean: the last third of a second counts.
const SMOOTHING: f64 = 0.3;
/// How strongly the running mean's excess moves the spacing in one period.
const GAIN: f64 = 0.35;
/// Longest time by which one byte is held back: about 1 MB/s is always let through.
const HOLD_MAX: f64 = 1000.0;

/// What surrounds the card.
#[derive(Clone, Debug, PartialEq)]
pub struct Surroundings {
    /// Air in front of the heat sink, degrees Celsius.
    pub ambient_celsius: f64,
    /// Airflow, linear feet a minute; the data sheet's where `None`.
    pub airflow_lfm: Option<f64>,
    /// External power is plugged in, or the slot's limit is overridden.
    pub power_unlimited: bool,
}

impl Default for Surroundings {
    fn default() -> Surroundings {
        Surroundings { ambient_celsius: 25.0, airflow_lfm: None, power_unlimited: false }
    }
}

/// How hard writes are held back, in the original's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Not at all.
    None,
    /// A little.
    Light,
    /// To about a half.
    Moderate,
    /// To much less.
    Heavy,
}

/// Power, heat and what follows from them, for one module.
#[derive(Debug)]
pub struct Governor {
    limit_watts: f64,
    /// The slot's budget, also while it is overridden.
    budget_watts: f64,
    throttle_celsius: f64,
    shutdown_celsius: f64,
    resistance: f64,
    time_constant: f64,
    ambient: f64,
    idle_watts: f64,
    at: Nanos,
    joules: f64,
    written: u64,
    watts: f64,
    smooth_watts: f64,
    celsius: f64,
    /// The warmest that it was.
    peak_celsius: f64,
    /// Nanoseconds that a written byte is held back.
    hold: f64,
    /// Nanoseconds a byte took lately, to start holding from.
    lately: f64,
    shut_down: bool,
    /// So warm it is, whatever it does.
    heated: Option<f64>,
}

impl Governor {
    /// The governor of one of `modules` modules that share a card's budget and heat sink alike.
    pub fn new(card: &Card, modules: u32, idle_watts: f64, surroundings: &Surroundings) -> Governor {
        let share = f64::from(modules.max(1));
        let airflow = surroundings.airflow_lfm.unwrap_or(card.thermal.airflow_lfm).max(1.0);
        // Each module heats the shared sink: for one of them it is as if its own watts counted as many times.
        let resistance = card.thermal.thermal_resistance_c_per_w * share * (card.thermal.airflow_lfm / airflow).sqrt();
        let celsius = surroundings.ambient_celsius + resistance * idle_watts;
        let budget_watts = card.power.throttle_watts / share;
        Governor {
            limit_watts: if surroundings.power_unlimited { f64::INFINITY } else { budget_watts },
            budget_watts,
            throttle_celsius: card.thermal.throttle_celsius,
            shutdown_celsius: card.thermal.shutdown_celsius,
            resistance,
            time_constant: card.thermal.time_constant_s.max(0.001),
            ambient: surroundings.ambient_celsius,
            idle_watts,
            at: 0,
            joules: 0.0,
            written: 0,
            watts: idle_watts,
            smooth_watts: idle_watts,
            celsius,
            peak_celsius: celsius,
            hold: 0.0,
            lately: 0.0,
            shut_down: false,
            heated: None,
        }
    }

    /// Has the inside at a temperature from now on, whatever the card does; or as warm as it gets again, and switched on. For
    /// fault drills.
    pub fn heat(&mut self, celsius: Option<f64>) {
        self.heated = celsius;
        self.celsius = celsius.unwrap_or(self.ambient + self.resistance * self.watts);
        self.peak_celsius = self.peak_celsius.max(self.celsius);
        self.shut_down = self.celsius >= self.shutdown_celsius;
    }

    /// The temperature inside from which on writes are held back.
    pub fn throttle_celsius(&self) -> f64 {
        self.throttle_celsius
    }

    /// Whether a period is over.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now >= self.at + PERIOD
    }

    /// A period is over: `joules` were spent on work so far, without the idle power, and `written` bytes taken.
    pub fn update(&mut self, now: Nanos, joules: f64, written: u64) {
        let seconds = (now - self.at) as f64 * 1e-9;
        let bytes = written - self.written;
        self.watts = self.idle_watts + (joules - self.joules) / seconds;
        let heading = self.ambient + self.resistance * self.watts;
        let by_itself = heading + (self.celsius - heading) * (-seconds / self.time_constant).exp();
        self.celsius = self.heated.unwrap_or(by_itself);
        self.peak_celsius = self.peak_celsius.max(self.celsius);
        (self.at, self.joules, self.written) = (now, joules, written);
        if bytes > 0 {
            self.lately = seconds * 1e9 / bytes as f64;
        }
        self.shut_down |= self.celsius >= self.shutdown_celsius;
        self.smooth_watts += SMOOTHING * (self.watts - self.smooth_watts);
        let share = ((self.smooth_watts - self.idle_watts) / (self.limit_watts - self.idle_watts).max(0.1)).max(0.0);
        let too_warm = self.is_too_warm();
        if bytes == 0 {
            return;
        }
        if share > 1.0 || too_warm {
            let step = if too_warm { 1.1 } else { 1.0 };
            // What comes by itself is where holding begins; from there it moves by small steps.
            let hold = if self.hold > 0.0 { self.hold } else { self.lately };
            self.hold = (hold * share.powf(GAIN).max(step)).min(HOLD_MAX);
        } else if self.hold > 0.0 && self.celsius < self.throttle_celsius - 1.0 {
            self.hold *= share.max(0.5).powf(GAIN);
            // It binds no longer: writes come more slowly than it would let them.
            if self.hold < self.lately / 2.0 {
                self.hold = 0.0;
            }
        }
    }

    /// Nanoseconds that a written byte is held back.
    #[inline]
    pub fn hold(&self) -> f64 {
        self.hold
    }

    /// Power over the last period, watts.
    pub fn watts(&self) -> f64 {
        self.watts
    }

    /// The power above which writes are held back, watts; infinite where there is no limit.
    pub fn limit_watts(&self) -> f64 {
        self.limit_watts
    }

    /// The slot's budget holds writes back no more, or does again.
    pub fn override_limit(&mut self, on: bool) {
        self.limit_watts = if on { f64::INFINITY } else { self.budget_watts };
    }

    /// Temperature inside, degrees Celsius.
    pub fn celsius(&self) -> f64 {
        self.celsius
    }

    /// The highest temperature inside since it was switched on, degrees Celsius.
    pub fn peak_celsius(&self) -> f64 {
        self.peak_celsius
    }

    /// Whether writes are held back for the temperature inside.
    pub fn is_too_warm(&self) -> bool {
        self.celsius >= self.throttle_celsius
    }

    /// Whether it switched itself off.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down
    }

    /// How hard writes are held back.
    pub fn level(&self) -> Level {
        match self.hold {
            hold if hold <= 0.0 => Level::None,
            hold if hold < 3.0 => Level::Light,
            hold if hold < 10.0 => Level::Moderate,
            _ => Level::Heavy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: f64 = 10.0;

    fn card() -> Card {
        let profile = profile::find("iodrive-duo-640-mlc").expect("a sheet");
        profile.flash().and_then(|flash| flash.card.clone()).expect("a card")
    }

    fn governor(modules: u32, surroundings: &Surroundings) -> Governor {
        Governor::new(&card(), modules, IDLE, surroundings)
    }

    /// Steady work at so many watts beside the idle power, and 100 MB/s of writes, for some seconds.
    fn work(governor: &mut Governor, watts: f64, seconds: u64) {
        let (joules, written) = (governor.joules, governor.written);
        let begin = governor.at;
        for period in 1..=seconds * 1_000_000_000 / PERIOD {
            let spent = watts * (period * PERIOD) as f64 * 1e-9;
            assert!(governor.is_due(begin + period * PERIOD) && !governor.is_due(begin + period * PERIOD - 1));
            governor.update(begin + period * PERIOD, joules + spent, written + period * 10_000_000);
        }
    }

    #[test]
    fn modules_share_the_cards_budget() {
        let share = card().power.throttle_watts / 2.0;
        let held = |modules: u32, watts: f64| {
            let mut governor = governor(modules, &Surroundings::default());
            work(&mut governor, watts - IDLE, 10);
            (governor.hold() > 0.0, governor.level() > Level::None)
        };
        assert_eq!(held(2, share * 0.98), (false, false));
        assert_eq!(held(2, share * 1.05), (true, true));
        assert_eq!(held(1, share * 1.05), (false, false), "alone it has all of it");
    }

    #[test]
    fn heat_from_outside_holds_writes_back_until_it_ends() {
        let mut governor = governor(1, &Surroundings::default());
        work(&mut governor, 1.0, 5);
        assert_eq!(governor.level(), Level::None);
        let (cool, throttle) = (governor.celsius(), governor.throttle_celsius());
        governor.heat(Some(throttle + 1.0));
        work(&mut governor, 1.0, 5);
        assert_eq!((governor.celsius(), governor.is_shut_down()), (throttle + 1.0, false));
        assert!(governor.level() > Level::None);
        governor.heat(None);
        work(&mut governor, 1.0, 30);
        assert_eq!(governor.level(), Level::None);
        assert!((governor.celsius() - cool).abs() < 1.0);
        governor.heat(Some(card().thermal.shutdown_celsius));
        assert!(governor.is_shut_down());
        governor.heat(None);
        assert!(!governor.is_shut_down());
    }

    #[test]
    fn an_overridden_budget_holds_nothing_back_until_it_counts_again() {
        let mut governor = governor(1, &Surroundings::default());
        let watts = card().power.throttle_watts * 1.2 - IDLE;
        work(&mut governor, watts, 5);
        assert!(governor.hold() > 0.0);
        governor.override_limit(true);
        work(&mut governor, watts, 30);
        assert_eq!((governor.hold(), governor.limit_watts()), (0.0, f64::INFINITY));
        governor.override_limit(false);
        work(&mut governor, watts, 5);
        assert!(governor.hold() > 0.0 && governor.limit_watts() == card().power.throttle_watts);
    }

    #[test]
    fn modules_share_the_heat_sink_and_air_cools_it() {
        let rise = |modules: u32, airflow: f64| {
            let around = Surroundings { airflow_lfm: Some(airflow), ..Surroundings::default() };
            governor(modules, &around).celsius() - around.ambient_celsius
        };
        let card = card();
        let (one, air) = (card.thermal.thermal_resistance_c_per_w * IDLE, card.thermal.airflow_lfm);
        assert!((rise(1, air) - one).abs() < 1e-9);
        assert!((rise(2, air) - 2.0 * one).abs() < 1e-9, "the other one's heat counts as much");
        assert!((rise(1, 4.0 * air) - one / 2.0).abs() < 1e-9, "as the square root of the air");
    }

    #[test]
    fn about_a_megabyte_a_second_is_always_let_through() {
        let mut governor = governor(1, &Surroundings::default());
        work(&mut governor, 1_000.0, 100);
        assert_eq!((governor.hold(), governor.level()), (HOLD_MAX, Level::Heavy));
        assert!(governor.is_shut_down(), "a thousand watts are too warm as well");
    }

    #[test]
    fn a_peak_of_one_period_counts_for_less_than_a_third() {
        let budget = card().power.throttle_watts - IDLE;
        let held = |watts: f64| {
            let mut governor = governor(1, &Surroundings::default());
            work(&mut governor, 0.0, 1);
            governor.update(governor.at + PERIOD, governor.joules + watts * 0.1, governor.written + 10_000_000);
            governor.hold() > 0.0
        };
        assert!(!held(budget * 3.0) && held(budget * 4.0));
    }

    #[test]
    fn writes_are_let_go_when_the_power_falls() {
        let mut governor = governor(1, &Surroundings::default());
        let budget = card().power.throttle_watts - IDLE;
        work(&mut governor, budget * 1.2, 5);
        assert!(governor.hold() > 0.0);
        work(&mut governor, budget * 0.5, 30);
        assert_eq!((governor.hold(), governor.level()), (0.0, Level::None));
    }
}
