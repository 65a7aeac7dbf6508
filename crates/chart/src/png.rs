//! A chart as pixels.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::model::Chart;
use crate::svg::Size;
use crate::theme::Theme;

/// The face of charts where no system's fonts are asked for: Inter, reduced to what charts print. See `assets/Inter.LICENSE`.
const FACES: [&[u8]; 2] =
    [include_bytes!("../assets/Inter-Regular.subset.otf"), include_bytes!("../assets/Inter-SemiBold.subset.otf")];

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The drawing cannot be read by the renderer.
    #[error("chart '{chart}' cannot be drawn: {reason}")]
    Drawing {
        /// Which chart.
        chart: String,
        /// In the renderer's words.
        reason: String,
    },
    /// Too many pixels.
    #[error("chart '{chart}' at scale {scale} has too many pixels; expected a scale of 0.25 to 8")]
    Scale {
        /// Which chart.
        chart: String,
        /// What was asked for.
        scale: f32,
    },
}

fn faces() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    Arc::clone(FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        for face in FACES {
            fonts.load_font_data(face.to_vec());
        }
        fonts.set_sans_serif_family("Inter");
        Arc::new(fonts)
    }))
}

impl Chart {
    /// The chart with its heading as PNG, `scale` pixels for each unit of [`Size`]. The same bytes on every machine.
    pub fn png(&self, size: Size, theme: Theme, scale: f32) -> Result<Vec<u8>, PngError> {
        if !(0.25..=8.0).contains(&scale) {
            return Err(PngError::Scale { chart: self.key(), scale });
        }
        let failed = |reason: String| PngError::Drawing { chart: self.key(), reason };
        let options = Options { fontdb: faces(), font_family: "Inter".to_string(), ..Options::default() };
        let tree = Tree::from_str(&self.svg_in(size, theme), &options).map_err(|error| failed(error.to_string()))?;
        let extent = tree.size();
        let (width, height) = ((extent.width() * scale).ceil() as u32, (extent.height() * scale).ceil() as u32);
        let mut pixels = Pixmap::new(width, height).ok_or_else(|| failed(format!("{width} x {height} pixels")))?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| failed(error.to_string()))
    }
}
