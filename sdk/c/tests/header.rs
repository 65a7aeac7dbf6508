//! The header that is committed is the one that the library's source says.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate().expect("the source");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).expect("a header is text");
    let path = root.join("include/nvm/nvm_primitives.h");
    if std::env::var_os("OVERWRITE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, made, "OVERWRITE_HEADER=1 cargo test -p openvsl-c writes {}", path.display());
}
