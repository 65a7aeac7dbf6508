//! How much room text takes, and text that is safe in markup.

/// Width of a text in an ordinary sans-serif face, a little generous because the reader's face is not known.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|char| match char {
            'i' | 'j' | 'l' | 'I' | '|' | '.' | ',' | ':' | ';' | '\'' | '!' => 0.30,
            'f' | 't' | 'r' | '(' | ')' | '/' | ' ' | '\u{a0}' | '-' | '·' => 0.38,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' => 0.95,
            'A'..='Z' => 0.71,
            '0'..='9' => 0.64,
            _ => 0.60,
        })
        .sum();
    ems * size * 1.03
}

/// Breaks a text into lines of at most `room`, at spaces and after slashes. A word that is longer stays whole.
pub(crate) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for piece in text.split_inclusive([' ', '/']) {
        if !line.is_empty() && width(&line, size) + width(piece.trim_end(), size) > room {
            lines.push(line.trim_end().to_string());
            line.clear();
        }
        line.push_str(piece);
    }
    if !line.trim_end().is_empty() {
        lines.push(line.trim_end().to_string());
    }
    lines
}

/// A text that ends in an ellipsis where it would take more than `room`.
pub(crate) fn shortened(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_string();
    }
    let mut out = String::new();
    for char in text.chars() {
        if width(&out, size) + width("…", size) + size > room {
            break;
        }
        out.push(char);
    }
    format!("{}…", out.trim_end())
}

/// Text as markup shows it: what has a meaning there is escaped, what XML does not allow is left out.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_where_it_may_be() {
        let lines = wrap("16T/16Q random writes", 12.0, 70.0);
        assert_eq!(lines, ["16T/16Q", "random", "writes"]);
        assert_eq!(wrap("", 12.0, 50.0), Vec::<String>::new());
        // The space between two words takes room as well: no line is wider than there is.
        for room in 60..200 {
            let room = f64::from(room);
            let lines = wrap("some words of a few letters", 12.0, room);
            assert!(lines.iter().all(|line| width(line, 12.0) <= room), "{room}: {lines:?}");
        }
        assert!(width(&shortened("a rather long name of a device", 12.0, 90.0), 12.0) <= 92.0);
    }

    #[test]
    fn markup_cannot_be_smuggled_in() {
        assert_eq!(escaped("<b>\"a\"&\u{0}\u{1b}[1m"), "&lt;b&gt;&quot;a&quot;&amp;[1m");
    }
}
