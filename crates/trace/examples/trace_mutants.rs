//! Lists the planted defects of traces, the lab and reports, for `tests/planted.py`.

fn main() {
    trace::mutants::Mutant::ALL.iter().for_each(|(_, name, what)| println!("{name}\t{what}"));
}
