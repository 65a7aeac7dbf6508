//! The few elements that charts are drawn with, written as text.

use std::fmt::Write;

use crate::text::escaped;

/// Where a text is anchored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A length with one decimal, as short as it goes.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_string(),
        Some(whole) => whole.to_string(),
        None => text,
    }
}

/// Markup of a drawing.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    out: String,
}

impl Canvas {
    pub(crate) fn into_markup(self) -> String {
        self.out
    }

    /// Markup that is known to be well formed.
    pub(crate) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.out,
            "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>",
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1)
        );
    }

    pub(crate) fn path(&mut self, class: &str, outline: &str) {
        if !outline.is_empty() {
            let _ = write!(self.out, "<path class=\"{class}\" d=\"{outline}\"/>");
        }
    }

    /// A rectangle; `tip` is what a pointer over it shows.
    pub(crate) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), tip: &str) {
        let (width, height) = (px(size.0.max(0.0)), px(size.1.max(0.0)));
        let _ = write!(
            self.out,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\"",
            px(at.0),
            px(at.1)
        );
        if tip.is_empty() {
            self.out.push_str("/>");
        } else {
            let _ = write!(self.out, "><title>{}</title></rect>", escaped(tip));
        }
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        self.turned(class, at, anchor, 0.0, text);
    }

    /// Text turned clockwise about its anchor by so many degrees.
    pub(crate) fn turned(&mut self, class: &str, at: (f64, f64), anchor: Anchor, degrees: f64, text: &str) {
        let _ = write!(self.out, "<text class=\"{class}\" x=\"{}\" y=\"{}\"", px(at.0), px(at.1));
        if anchor != Anchor::Start {
            let _ = write!(self.out, " text-anchor=\"{}\"", anchor.name());
        }
        if degrees != 0.0 {
            let _ = write!(self.out, " transform=\"rotate({} {} {})\"", px(degrees), px(at.0), px(at.1));
        }
        let _ = write!(self.out, ">{}</text>", escaped(text));
    }
}
