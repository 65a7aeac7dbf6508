//! Help texts and complaints about the command line, word by word: `cmd/*.trycmd`. A change of them is made on
//! purpose, with `TRYCMD=overwrite cargo test -p openvsl-cli --test suite help`.

#[test]
fn help_and_complaints() {
    trycmd::TestCases::new()
        .env("OPENVSL_RUNTIME_DIR", "/nonexistent/openvsl")
        .env("COLUMNS", "100")
        .case("tests/cmd/*.trycmd");
}
