//! What benchmarks tell programs.

/// One measured figure, a line of JSON.
#[derive(Clone, Debug)]
pub struct Figure {
    bench: &'static str,
    case: String,
    value: f64,
    unit: &'static str,
}

impl Figure {
    /// What a benchmark measured of a database, or of something else.
    pub fn new(bench: &'static str, of: &str, case: &str, value: f64, unit: &'static str) -> Figure {
        Figure { bench, case: format!("{} {case}", of.to_lowercase()), value, unit }
    }

    /// The line.
    pub fn json(&self) -> String {
        let Figure { bench, case, value, unit } = self;
        format!(r#"{{"bench":"{bench}","case":"{case}","value":{value:.2},"unit":"{unit}"}}"#)
    }
}
