//! The lines of a job file.

/// A section with its options.
#[derive(Clone, Debug)]
pub struct Section {
    /// What stands in the brackets.
    pub name: String,
    /// Where.
    pub line: usize,
    /// Its options, in order.
    pub assignments: Vec<Assignment>,
}

/// One option.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Where it stands.
    pub line: usize,
    /// Its name.
    pub key: String,
    /// Its value; switches may go without.
    pub value: Option<String>,
}

/// Every section of a job file.
///
/// # Errors
/// The line and what is wrong in it.
pub fn sections(text: &str) -> Result<Vec<Section>, (usize, String)> {
    let mut sections: Vec<Section> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let line = match line.split_once([';', '#']) {
            Some((before, _)) if before.trim().is_empty() => "",
            // A comment may also stand behind an option, set off by a blank.
            Some((before, _)) if before.ends_with(char::is_whitespace) => before.trim(),
            _ => line.trim(),
        };
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| (number, format!("'{line}' is no section; expected [name]")))?;
            sections.push(Section { name: name.into(), line: number, assignments: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err((
                number,
                format!("'{line}' stands before the first section; expected [global] or [name of a job]"),
            ));
        };
        if line.contains("${") {
            return Err((number, format!("'{line}': variables are not filled in; write the value itself")));
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
            None => (line, None),
        };
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err((number, format!("'{line}' is no option; expected name=value")));
        }
        section.assignments.push(Assignment { line: number, key: key.to_ascii_lowercase(), value });
    }
    Ok(sections)
}
