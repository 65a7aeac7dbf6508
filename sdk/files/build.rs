//! Names the extension of SQLite as programs are to find it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libopenvsl_files.so");
}
