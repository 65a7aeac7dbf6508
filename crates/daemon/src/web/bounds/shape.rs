//! Where numbers stand in a JSON body, and what each may be. A body is read along its shape, and nothing else of it is kept: it may hold secrets.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a number may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Whole, from one to the other.
    Whole(i128, i128),
    /// Any, from one to the other; above the first where that is said.
    Real { from: f64, above: bool, to: f64 },
}

impl Range {
    fn holds_whole(self, value: i128) -> bool {
        match self {
            Range::Whole(from, to) => (from..=to).contains(&value),
            // Bounds of such numbers are small, where this is exact.
            Range::Real { .. } => self.holds_real(value as f64),
        }
    }

    fn holds_real(self, value: f64) -> bool {
        match self {
            Range::Whole(..) => false,
            Range::Real { from, above, to } => value <= to && (value > from || !above && value >= from),
        }
    }

    /// Whether this text is such a number.
    pub fn holds_text(self, text: &str) -> bool {
        match self {
            Range::Whole(..) => text.parse().is_ok_and(|value| self.holds_whole(value)),
            Range::Real { .. } => text.parse().is_ok_and(|value| self.holds_real(value)),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Whole(from, to) => write!(f, "a whole number from {from} to {to}"),
            Range::Real { from, above, to } => {
                f.write_str("a number")?;
                match above {
                    true => write!(f, " above {from}")?,
                    false if from.is_finite() => write!(f, " from {from} on")?,
                    false => {}
                }
                if to.is_finite() { write!(f, " up to {to}") } else { Ok(()) }
            }
        }
    }
}

/// Where numbers stand. What has no number in it is left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Here.
    Number(Range),
    /// In these fields.
    Fields(BTreeMap<String, Shape>),
    /// In each of a list.
    Each(Box<Shape>),
}

impl Shape {
    /// What is wrong with a number of this body, if anything is.
    pub fn wrong_in(&self, body: &[u8]) -> Option<String> {
        let wrong = RefCell::new(None);
        let look = Look { shape: self, path: String::new(), wrong: &wrong };
        // Where it is no JSON at all, or of another shape, whoever takes it says so.
        let _ = look.deserialize(&mut serde_json::Deserializer::from_slice(body));
        wrong.into_inner()
    }
}

struct Look<'a> {
    shape: &'a Shape,
    path: String,
    wrong: &'a RefCell<Option<String>>,
}

impl Look<'_> {
    fn number<E: Error>(&self, holds: impl Fn(Range) -> bool, value: impl fmt::Display) -> Result<(), E> {
        match self.shape {
            Shape::Number(range) if !holds(*range) => {
                self.wrong.replace(Some(format!("{}: {value} is not {range}", self.path)));
                Err(E::custom("a number out of its bounds"))
            }
            _ => Ok(()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.number(|range| range.holds_whole(value.into()), value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.number(|range| range.holds_whole(value.into()), value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.number(|range| range.holds_real(value), value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Shape::Each(shape) = self.shape else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let mut index = 0;
        while list
            .next_element_seed(Look { shape, path: format!("{}[{index}]", self.path), wrong: self.wrong })?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let fields = match self.shape {
            Shape::Fields(fields) => Some(fields),
            Shape::Number(_) | Shape::Each(_) => None,
        };
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            match fields.and_then(|fields| fields.get(name.as_ref())) {
                Some(shape) => {
                    let dot = if self.path.is_empty() { "" } else { "." };
                    map.next_value_seed(Look { shape, path: format!("{}{dot}{name}", self.path), wrong: self.wrong })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_wherever_it_stands() {
        let fields = |name: &str, shape| Shape::Fields(BTreeMap::from([(name.to_string(), shape)]));
        let whole = Shape::Number(Range::Whole(1, 9));
        let shape = fields("a", Shape::Each(Box::new(fields("b", whole))));
        for (body, wrong) in [
            (r#"{"x":77,"a":[{"b":1},{"b":9,"c":[12]}]}"#, None),
            (r#"{"a":[{"b":1},{"b":10}]}"#, Some("a[1].b: 10 is not a whole number from 1 to 9")),
            (r#"{"a":[{"b":-1}]}"#, Some("a[0].b: -1 is not a whole number from 1 to 9")),
            (r#"{"a":[{"b":1.5}]}"#, Some("a[0].b: 1.5 is not a whole number from 1 to 9")),
            (r#"{"a":[{"b":1e99}]}"#, Some("a[0].b: 1")),
            // Not for us to say.
            (r#"{"a":[{"b":null}],"a":7}"#, None),
            (r#"{"a":{"b":"text"}}"#, None),
            (r#"{"a":[{"b""#, None),
            ("", None),
        ] {
            let found = shape.wrong_in(body.as_bytes());
            match wrong {
                None => assert_eq!(found, None, "{body}"),
                Some(wrong) => {
                    assert!(found.as_ref().is_some_and(|found| found.starts_with(wrong)), "{body}: {found:?}")
                }
            }
        }
    }

    #[test]
    fn a_number_need_not_be_whole() {
        let range = Range::Real { from: 0.0, above: true, to: 100.0 };
        let shape = Shape::Number(range);
        for (body, holds) in [("0", false), ("0.5", true), ("100", true), ("100.5", false), ("-1", false)] {
            assert_eq!(shape.wrong_in(body.as_bytes()).is_none(), holds, "{body}");
            assert_eq!(range.holds_text(body), holds, "{body}");
        }
        assert_eq!(range.to_string(), "a number above 0 up to 100");
    }
}
