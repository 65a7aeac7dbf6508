//! A chart as SVG.

mod axes;
mod bars;
pub(crate) mod canvas;
mod describe;
mod heat;
mod legend;
mod lines;
mod outline;
pub(crate) mod ruler;

use canvas::{Anchor, Canvas, px};
pub(crate) use lines::hue as lines_hue;

use crate::model::{Chart, Plot};
use crate::text::{escaped, wrap};
use crate::theme::{self, Theme};

/// For what width a chart is laid out. Text has the same size in each, so that none is tiny where it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// A phone held upright: 358 wide.
    Narrow,
    /// Half a page: 540 wide.
    #[default]
    Normal,
    /// A whole page: 1,120 wide.
    Wide,
}

impl Size {
    fn width(self) -> f64 {
        match self {
            Size::Narrow => 358.0,
            Size::Normal => 540.0,
            Size::Wide => 1120.0,
        }
    }

    /// Height of the area within the axes.
    fn plot_height(self) -> f64 {
        match self {
            Size::Narrow => 210.0,
            Size::Normal => 230.0,
            Size::Wide => 340.0,
        }
    }

    fn letter(self) -> &'static str {
        match self {
            Size::Narrow => "n",
            Size::Normal => "m",
            Size::Wide => "w",
        }
    }
}

/// Size of ordinary text.
pub(crate) const TEXT: f64 = 12.0;
/// Distance of lines of text.
const LINE: f64 = 16.0;

/// A rectangle of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    fn right(self) -> f64 {
        self.left + self.width
    }

    fn bottom(self) -> f64 {
        self.top + self.height
    }
}

/// What is drawn of a chart, without its heading.
#[derive(Debug)]
struct Drawing {
    width: f64,
    height: f64,
    plot: Option<Area>,
    canvas: Canvas,
}

/// Title and context above a drawing, upwards from zero.
fn heading(chart: &Chart, width: f64) -> (f64, Canvas) {
    let title = wrap(&chart.title, TEXT * 16.0 / 12.0, width);
    let context: Vec<String> = chart.context.iter().flat_map(|line| wrap(line, TEXT, width)).collect();
    let height = title.len() as f64 * 21.0 + context.len() as f64 * LINE + 10.0;
    let mut canvas = Canvas::default();
    let mut y = -height;
    for line in &title {
        y += 21.0;
        canvas.text("tt", (0.0, y - 5.0), Anchor::Start, line);
    }
    for line in &context {
        y += LINE;
        canvas.text("sub", (0.0, y - 3.0), Anchor::Start, line);
    }
    (height, canvas)
}

fn drawing(chart: &Chart, size: Size) -> Drawing {
    let key = format!("{}-{}", chart.key(), size.letter());
    match &chart.plot {
        _ if chart.is_empty() => empty(size),
        Plot::Lines(series) => lines::draw(chart, series, size, &key),
        Plot::Bars(series) if !chart.x.names.is_empty() => bars::draw(chart, series, size),
        Plot::Heat(heat) => heat::draw(chart, heat, size),
        Plot::Bars(_) => empty(size),
    }
}

fn empty(size: Size) -> Drawing {
    let (width, height) = (size.width(), 96.0);
    let mut canvas = Canvas::default();
    canvas.rect("span", (0.5, 0.5), (width - 1.0, height - 1.0), "");
    canvas.text("sub", (width / 2.0, height / 2.0 + 4.0), Anchor::Middle, "no data");
    Drawing { width, height, plot: None, canvas }
}

impl Chart {
    /// A drawing of its own: heading, both themes, readable in any program that shows SVG.
    pub fn svg(&self, size: Size) -> String {
        self.alone(size, &format!("{}{}", theme::switching("svg"), theme::rules()))
    }

    /// The same in the colours of one theme, with no need for variables or media queries.
    pub fn svg_in(&self, size: Size, theme: Theme) -> String {
        self.alone(size, &theme::resolved(theme))
    }

    fn alone(&self, size: Size, style: &str) -> String {
        let drawing = drawing(self, size);
        let (above, head) = heading(self, drawing.width);
        let key = self.key();
        let margin = 12.0;
        let (width, height) = (drawing.width + 2.0 * margin, drawing.height + above + 2.0 * margin);
        let view = format!("{} {} {} {}", px(-margin), px(-above - margin), px(width), px(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ch\" role=\"img\" aria-labelledby=\"{key}-title {key}-desc\" width=\"{}\" height=\"{}\" viewBox=\"{view}\">\n<title id=\"{key}-title\">{}</title>\n<desc id=\"{key}-desc\">{}</desc>\n<style>{style}</style>\n<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>{}{}</svg>\n",
            px(width),
            px(height),
            escaped(&self.title),
            escaped(&describe::description(self)),
            px(-margin),
            px(-above - margin),
            px(width),
            px(height),
            head.into_markup(),
            drawing.canvas.into_markup()
        )
    }

    /// A drawing for a page that has the style sheet. Its heading stands above the visible part, for whoever takes it out.
    pub(crate) fn inline_svg(&self, size: Size) -> String {
        let drawing = drawing(self, size);
        let (above, head) = heading(self, drawing.width);
        let key = format!("{}-{}", self.key(), size.letter());
        let plot = drawing.plot.map_or_else(String::new, |area| {
            let numbers = [area.left, area.top, area.width, area.height].map(px).join(" ");
            format!(" data-plot=\"{numbers}\"")
        });
        format!(
            "<svg class=\"ch {}\" role=\"img\" aria-labelledby=\"{key}-t {key}-d\" viewBox=\"0 0 {} {}\" data-above=\"{}\"{plot}><title id=\"{key}-t\">{}</title><desc id=\"{key}-d\">{}</desc>{}{}</svg>",
            size.letter(),
            px(drawing.width),
            px(drawing.height),
            px(above),
            escaped(&self.title),
            escaped(&describe::description(self)),
            head.into_markup(),
            drawing.canvas.into_markup()
        )
    }
}
