//! A report: one HTML file that needs nothing else.

mod figure;
mod html;
mod payload;
mod policy;

use crate::model::Chart;

/// A report.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What it is called.
    pub title: String,
    /// What it says, in a sentence or two.
    pub summary: String,
    /// What holds for everything in it, said once at its head, such as that figures are scaled; may be empty.
    pub caveat: String,
    /// What was measured, with what, when: names and values.
    pub facts: Vec<(String, String)>,
    /// Its parts.
    pub sections: Vec<Section>,
    /// Who made it, printed at its end.
    pub made_by: String,
}

/// A part of a report, begun on a sheet of its own when printed.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Names it within the page.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// Platform, device, set-up, parameters, steady-state rounds: names and values.
    pub facts: Vec<(String, String)>,
    /// What it holds.
    pub blocks: Vec<Block>,
}

/// Something in a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading within the section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// What was found out: whether it is as it should be, and the sentence.
    Verdict(bool, String),
    /// A chart with the numbers behind it.
    Chart(Box<Chart>),
    /// A table that is worth being seen at once.
    Table(Table),
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Block {
        Block::Chart(Box::new(chart))
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, as long as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// Whether each row becomes a card on a narrow screen, so that all of it is seen; text wraps to fit a wide one.
    pub stacks: bool,
}

/// A column of a table.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// A heading over this and its neighbours of the same group; empty without.
    pub group: String,
    /// Whether it holds numbers, which are set flush right.
    pub number: bool,
}

impl Column {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), ..Column::default() }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Column {
        Column { name: name.into(), number: true, ..Column::default() }
    }

    /// The same column under a common heading.
    #[must_use]
    pub fn under(self, group: impl Into<String>) -> Column {
        Column { group: group.into(), ..self }
    }
}

/// A field of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// How strongly it is shaded, 0 to 1; without, it is not.
    pub shade: Option<f64>,
    /// Whether it is the head of its row.
    pub head: bool,
}

impl Cell {
    /// A field that is not shaded.
    pub fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// The head of a row.
    pub fn head(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), head: true, ..Cell::default() }
    }

    /// The same field, shaded from 0 (little) to 1 (much).
    #[must_use]
    pub fn shaded(self, share: f64) -> Cell {
        Cell { shade: Some(share), ..self }
    }
}

impl Page {
    /// The charts of all sections.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Chart(chart) => Some(chart.as_ref()),
            _ => None,
        })
    }

    /// The report as one file.
    pub fn html(&self) -> String {
        html::page(&self.with_keys()).into_string()
    }

    /// The same page with identifiers that differ from each other and are fit for attributes and file names.
    #[must_use]
    pub fn with_keys(&self) -> Page {
        let mut taken = std::collections::HashSet::from(["charts".to_string(), "top".to_string()]);
        let mut fresh = |wanted: String| {
            let free = (1..).map(|count| if count == 1 { wanted.clone() } else { format!("{wanted}-{count}") });
            let key = free.into_iter().find(|key| !taken.contains(key)).unwrap_or(wanted);
            taken.insert(key.clone());
            key
        };
        let mut page = self.clone();
        for section in &mut page.sections {
            let named = Chart { id: section.id.clone(), ..Chart::default() };
            let key = named.key();
            section.id = fresh(if key.starts_with("s-") { key } else { format!("s-{key}") });
            for block in &mut section.blocks {
                if let Block::Chart(chart) = block {
                    chart.id = fresh(chart.key());
                }
            }
        }
        page
    }
}
