//! The body of LIST_META_CONTEXT and SET_META_CONTEXT.

use super::proto::MAX_STRING;

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Queries<'a> {
    /// The export.
    pub export: &'a str,
    /// The contexts; none at all means every one, for LIST.
    pub queries: Vec<&'a [u8]>,
}

/// Takes bytes from the front, if there are so many.
pub fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Takes a number.
pub fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (taken, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*taken))
}

/// Takes a string of the protocol: a length, then UTF-8 of at most [`MAX_STRING`] bytes.
pub fn take_string<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let len = take_u32(bytes)? as usize;
    if len > MAX_STRING {
        return None;
    }
    std::str::from_utf8(take(bytes, len)?).ok()
}

/// Takes a body apart. `None` when it is malformed.
pub fn parse(mut body: &[u8]) -> Option<Queries<'_>> {
    let export = take_string(&mut body)?;
    let count = take_u32(&mut body)?;
    let mut queries = Vec::new();
    for _ in 0..count {
        let len = take_u32(&mut body)? as usize;
        queries.push(take(&mut body, len)?);
    }
    body.is_empty().then_some(Queries { export, queries })
}

/// Whether a query matches a context: by its name; for LIST also by its namespace, or by what it begins with up to a colon.
pub fn matches(query: &[u8], context: &str, list: bool) -> bool {
    let context = context.as_bytes();
    query == context || list && query.ends_with(b":") && context.starts_with(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_an_export_and_its_queries() {
        let body = b"\0\0\0\x01a\0\0\0\x02\0\0\0\x05base:\0\0\0\x01x";
        let parsed = parse(body).expect("well-formed");
        assert_eq!(parsed, Queries { export: "a", queries: vec![b"base:", b"x"] });
        for len in 0..body.len() {
            assert_eq!(parse(&body[..len]), None, "cut at {len}");
        }
        assert_eq!(parse(b"\0\0\0\x01a\0\0\0\0more"), None);
        assert_eq!(parse(b"\xff\xff\xff\xffa\0\0\0\0"), None);
        assert_eq!(parse(b"\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"), None);
        assert_eq!(parse(b"\0\0\0\x01\xff\0\0\0\0"), None, "not UTF-8");
    }

    #[test]
    fn the_namespace_lists_but_does_not_select() {
        let (base, changed) = ("base:allocation", "openvsl:changed:monday:8");
        assert!(matches(b"base:", base, true) && matches(b"base:allocation", base, true));
        assert!(!matches(b"base:alloc", base, true) && !matches(b"qemu:", base, true) && !matches(b"", base, true));
        assert!(matches(b"base:allocation", base, false) && !matches(b"base:", base, false));
        for query in ["openvsl:", "openvsl:changed:", "openvsl:changed:monday:"] {
            assert!(matches(query.as_bytes(), changed, true) && !matches(query.as_bytes(), changed, false), "{query}");
        }
    }
}
