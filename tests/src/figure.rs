//! Machine-readable results of benchmarks.

/// One measured figure, printed as a line of JSON.
#[derive(Clone, Debug)]
pub struct Figure {
    bench: &'static str,
    case: String,
    value: f64,
    unit: &'static str,
}

impl Figure {
    /// A figure that a benchmark measured for a database, or for another subject.
    pub fn new(bench: &'static str, of: &str, case: &str, value: f64, unit: &'static str) -> Figure {
        Figure { bench, case: format!("{} {case}", of.to_lowercase()), value, unit }
    }

    /// The figure as a line of JSON.
    pub fn json(&self) -> String {
        let Figure { bench, case, value, unit } = self;
        format!(r#"{{"bench":"{bench}","case":"{case}","value":{value:.2},"unit":"{unit}"}}"#)
    }
}
