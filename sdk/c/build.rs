//! Names the shared library as programs are to find it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libvsl.so.0");
}
