//! Lists the planted defects of NVMe, for `tests/planted.py`.

fn main() {
    nvme::mutants::Mutant::ALL.iter().for_each(|(_, name, what)| println!("{name}\t{what}"));
}
