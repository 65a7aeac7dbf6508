//! The report of a run's directory: `cargo run -p openvsl-report --example report_page -- RUN OUT.html`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(run), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("expected a run's directory and where to write the page".into());
    };
    let page = report::page(&lab::run::Run::open(Path::new(&run))?)?;
    let html = page.html();
    std::fs::write(&out, &html)?;
    println!("{out}: {} bytes, {} charts", html.len(), page.charts().count());
    Ok(())
}
