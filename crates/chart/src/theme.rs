//! Colours, for light and dark, and the style sheet that uses them.
//!
//! Eight of the nine hues follow Okabe and Ito's set for the colour-blind, darkened or lightened until thin lines stand out from their
//! background (3:1 at least); the ninth, a crimson, is for the charts of all policies of the groomer. Every series also has a dash
//! and a marker of its own. The nine steps of heat maps are ColorBrewer's YlGnBu, turned round on dark ground so that little stays
//! close to the ground in both.

/// The ground a chart stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Dark on light.
    #[default]
    Light,
    /// Light on dark.
    Dark,
}

/// Hues, dashes and markers there are before they repeat.
pub(crate) const HUES: usize = 9;
/// Steps of a heat map's colour.
pub(crate) const STEPS: usize = 9;

/// Name, light, dark.
const COLOURS: [(&str, &str, &str); 34] = [
    ("bg", "#ffffff", "#15181d"),
    ("page", "#f6f7f9", "#0e1014"),
    ("fg", "#1b1f24", "#e8ebef"),
    ("muted", "#56606b", "#a5afba"),
    ("grid", "#e4e8ec", "#2a3038"),
    ("axis", "#8a949e", "#6d7782"),
    ("link", "#00609a", "#6cb8ec"),
    ("c0", "#0072b2", "#4da6e0"),
    ("c1", "#d55e00", "#ff8a3d"),
    ("c2", "#00805b", "#2fc79a"),
    ("c3", "#b0508a", "#e193bf"),
    ("c4", "#a87200", "#e6ab1a"),
    ("c5", "#3f86b5", "#9ad4f5"),
    ("c6", "#4b535c", "#c4ccd4"),
    ("c7", "#7a4fb5", "#b79bea"),
    ("c8", "#b3203a", "#ff8095"),
    ("q0", "#ffffd9", "#1c2748"),
    ("q1", "#edf8b1", "#253494"),
    ("q2", "#c7e9b4", "#225ea8"),
    ("q3", "#7fcdbb", "#1d91c0"),
    ("q4", "#41b6c4", "#41b6c4"),
    ("q5", "#1d91c0", "#7fcdbb"),
    ("q6", "#225ea8", "#c7e9b4"),
    ("q7", "#253494", "#edf8b1"),
    ("q8", "#081d58", "#ffffd9"),
    ("t0", "#1b1f24", "#ffffff"),
    ("t1", "#1b1f24", "#ffffff"),
    ("t2", "#1b1f24", "#ffffff"),
    ("t3", "#1b1f24", "#0e1014"),
    ("t4", "#1b1f24", "#0e1014"),
    ("t5", "#0b0d10", "#0e1014"),
    ("t6", "#ffffff", "#0e1014"),
    ("t7", "#ffffff", "#0e1014"),
    ("t8", "#ffffff", "#0e1014"),
];

const DASHES: [&str; HUES] =
    ["none", "7 3", "2 2.5", "9 3 2 3", "13 3", "5 2 1.5 2", "1.5 4", "6 2 2 2 2 2", "18 2 3 2"];

const RULES: &str = "\
.ch{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',Inter,'DejaVu Sans',sans-serif;font-size:12px;fill:var(--fg)}
.ch text{fill:var(--fg);stroke:none}
.ch .tt{font-size:16px;font-weight:600}
.ch .sub{fill:var(--muted)}
.ch .tk{fill:var(--muted)}
.ch .yl{font-weight:600}
.ch .note{fill:var(--fg);stroke:var(--bg);stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.ch .gr{stroke:var(--grid);stroke-width:1;fill:none}
.ch .ax{stroke:var(--axis);stroke-width:1;fill:none}
.ch .at{stroke:var(--fg);stroke-width:1;stroke-dasharray:4 3;fill:none}
.ch .span{fill:var(--muted);fill-opacity:.13;stroke:none}
.ch .ln{fill:none;stroke-width:1.7;stroke-linejoin:round}
.ch .thin{fill:none;stroke-width:1.3;stroke-dasharray:5 4}
.ch .bd{fill-opacity:.2;stroke:none}
.ch .dots{fill:none;stroke-width:3.6;stroke-linecap:round}
.ch .mk{stroke:var(--bg);stroke-width:.8}
.ch .pub{fill:var(--bg);stroke-width:2.2}
.ch .gap{fill:none;stroke:var(--bg);stroke-width:5.5}
.ch .bar{stroke:none}
.ch .pubbar{fill-opacity:.14;stroke-width:1.4;stroke-dasharray:4 2}
.ch .whisker{stroke:var(--fg);stroke-width:1.2;fill:none}
.ch .val{font-size:11px}
.ch .cell{stroke:none;shape-rendering:crispEdges}
.ch .frame{fill:var(--bg)}
";

/// The value of a colour.
fn colour(name: &str, theme: Theme) -> &'static str {
    COLOURS.iter().find(|(known, ..)| *known == name).map_or("#000000", |(_, light, dark)| match theme {
        Theme::Light => light,
        Theme::Dark => dark,
    })
}

/// What each class looks like, in terms of the variables.
pub(crate) fn rules() -> String {
    let mut css = RULES.to_string();
    for (hue, dash) in DASHES.iter().enumerate() {
        css += &format!(".ch .s{hue}{{stroke:var(--c{hue})}}.ch .f{hue}{{fill:var(--c{hue})}}");
        css += &format!(".ch .d{hue}{{stroke-dasharray:{dash}}}\n");
    }
    for step in 0..STEPS {
        css += &format!(".ch .q{step}{{fill:var(--q{step})}}.ch .t{step}{{fill:var(--t{step})}}\n");
    }
    css
}

/// The variables for one theme, set on what `selector` names.
fn variables(selector: &str, theme: Theme) -> String {
    let values: String = COLOURS.iter().map(|(name, ..)| format!("--{name}:{};", colour(name, theme))).collect();
    format!("{selector}{{{values}}}")
}

/// The variables for both themes, as the reader prefers; light on paper.
pub(crate) fn switching(selector: &str) -> String {
    format!(
        "{}\n@media screen and (prefers-color-scheme:dark){{{}}}\n",
        variables(selector, Theme::Light),
        variables(selector, Theme::Dark)
    )
}

/// The rules with the colours of one theme in place, for renderers that know no variables.
pub(crate) fn resolved(theme: Theme) -> String {
    let mut css = rules();
    for (name, ..) in COLOURS {
        css = css.replace(&format!("var(--{name})"), colour(name, theme));
    }
    css.replace("system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',Inter", "Inter")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance after WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("two hex digits")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (f64::max(one, other) + 0.05) / (f64::min(one, other) + 0.05)
    }

    #[test]
    fn lines_and_text_stand_out_from_their_ground() {
        for theme in [Theme::Light, Theme::Dark] {
            let ground = colour("bg", theme);
            for hue in 0..HUES {
                let line = colour(&format!("c{hue}"), theme);
                assert!(contrast(line, ground) >= 3.0, "{theme:?} c{hue}: {}", contrast(line, ground));
            }
            for text in ["fg", "muted", "link"] {
                for ground in ["bg", "page"] {
                    assert!(
                        contrast(colour(text, theme), colour(ground, theme)) >= 4.5,
                        "{theme:?} {text} on {ground}"
                    );
                }
            }
            for step in 0..STEPS {
                let (cell, text) = (colour(&format!("q{step}"), theme), colour(&format!("t{step}"), theme));
                assert!(contrast(cell, text) >= 4.5, "{theme:?} q{step}: {}", contrast(cell, text));
            }
        }
    }

    #[test]
    fn pages_draw_the_same_dashes() {
        let dashes = DASHES.map(|dash| match dash {
            "none" => "[]".to_string(),
            lengths => format!("[{}]", lengths.replace(' ', ", ")),
        });
        let script = include_str!("../assets/page.js");
        assert!(script.contains(&format!("dashes = [{}];", dashes.join(", "))), "{dashes:?}");
    }

    #[test]
    fn no_variable_is_left_where_they_are_not_known() {
        assert!(!resolved(Theme::Dark).contains("var("));
    }
}
