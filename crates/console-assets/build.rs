//! Builds the console where it is not built or older than its sources, and compresses every file of it.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    if let Err(problem) = build() {
        // A build script says what is wrong by failing with words.
        eprintln!("{problem}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    // Asked for now: a build script that is kept in a target directory may have been compiled in another checkout.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo names no CARGO_MANIFEST_DIR")?);
    let root = here.join("../..");
    println!("cargo::rerun-if-env-changed=OPENVSL_CONSOLE_DIST");
    let dist = match env::var_os("OPENVSL_CONSOLE_DIST") {
        Some(given) => PathBuf::from(given),
        // A published crate has the console's files beside it, built.
        None if !root.join("scripts/build-console.sh").exists() => here.join("dist"),
        None => {
            for source in ["src", "index.html", "vite.config.ts", "package.json", "package-lock.json", "dist"] {
                println!("cargo::rerun-if-changed={}", root.join("console").join(source).display());
            }
            run(&root.join("scripts/build-console.sh"))?;
            root.join("console/dist")
        }
    };
    let dist = dist.canonicalize().map_err(|error| format!("{}: {error}", dist.display()))?;
    if !dist.join("index.html").is_file() {
        return Err(format!("{}: holds no index.html; scripts/build-console.sh builds the console", dist.display()));
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);
    let mut files = Vec::new();
    collect(&dist, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let name = file.strip_prefix(&dist).map_err(|error| error.to_string())?;
        let name = name.to_str().ok_or_else(|| format!("{}: a name that is not UTF-8", file.display()))?;
        let compressed = out.join(format!("{number}.gz"));
        let bytes = compress(file)?;
        fs::write(&compressed, &bytes).map_err(|error| format!("{}: {error}", compressed.display()))?;
        let entry = format!(
            "    Asset {{ path: {name:?}, content_type: {:?}, etag: {:?}, gzip: include_bytes!({compressed:?}) }},\n",
            sort(name)?,
            etag(&bytes)
        );
        table.push_str(&entry);
    }
    table.write_char(']').map_err(|error| error.to_string())?;
    let path = out.join("assets.rs");
    fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))
}

fn run(script: &Path) -> Result<(), String> {
    let output = Command::new(script).output().map_err(|error| format!("{}: {error}", script.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("the console cannot be built by {}:\n{}", script.display(), String::from_utf8_lossy(&said)))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn compress(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&fs::read(file).map_err(failed)?).map_err(failed)?;
    encoder.finish().map_err(failed)
}

/// Differs where the bytes do; nobody has to be kept from making two files alike.
fn etag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn sort(name: &str) -> Result<&'static str, String> {
    Ok(match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("otf") => "font/otf",
        _ => {
            return Err(format!(
                "{name}: what sort of file is this? crates/console-assets/build.rs does not know its ending"
            ));
        }
    })
}
