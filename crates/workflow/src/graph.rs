//! The checked form of a workflow: steps by number, their connections in both directions, and parsed expressions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::data;
use crate::definition::{Action, Branch, Join, Param, Phase, Step, Workflow};
use crate::expression::{Expression, ExpressionError, Names, Scope, on_large_stack};
use crate::template::{Template, as_text};

/// Number of a step: its position in the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepNo(pub u32);

impl StepNo {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A problem of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is, for example `steps.check.needs[0].if`.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// A checked workflow.
#[derive(Debug)]
pub struct Graph {
    definition: Workflow,
    nodes: Vec<Node>,
    by_name: HashMap<String, StepNo>,
    output: Template,
    output_steps: Vec<StepNo>,
    defaults: BTreeMap<String, Template>,
}

/// A step with its connections.
#[derive(Debug)]
pub struct Node {
    /// Steps that it needs.
    pub needs: Vec<Edge>,
    /// Steps that need it.
    pub successors: Vec<StepNo>,
    /// Condition of the step itself.
    pub condition: Option<Expression>,
    /// Steps that its condition and its parameter name.
    pub names: Vec<StepNo>,
    /// Whether a step that needs it opens after a failure: then the failure neither stops nor fails the run.
    pub is_caught: bool,
    template: Option<Template>,
}

/// A connection to a step that has to end first.
#[derive(Debug)]
pub struct Edge {
    /// The step that has to end.
    pub from: StepNo,
    /// When the connection is taken.
    pub branch: Condition,
    /// Steps that the condition names.
    pub names: Vec<StepNo>,
}

/// When a connection is taken.
#[derive(Debug)]
pub enum Condition {
    /// Always.
    Always,
    /// If the expression is true.
    If(Expression),
    /// If no other condition at connections from the same step is true.
    Else,
}

/// What an opened step does, with its values.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// It runs a job.
    Job {
        /// Id of the job.
        job: i64,
        /// Parameter instead of the job's own.
        param: Option<String>,
    },
    /// It runs a workflow.
    Workflow {
        /// Id of the workflow's job.
        job: i64,
        /// Inputs of its run.
        inputs: BTreeMap<String, Value>,
    },
    /// It asks people.
    Approval {
        /// The question.
        ask: String,
        /// Time for the answer.
        timeout: Option<Duration>,
    },
    /// It waits.
    Wait {
        /// Time to wait.
        duration: Duration,
    },
    /// It waits for runs of a job.
    Depends {
        /// Id of the job.
        job: i64,
        /// Time for them.
        timeout: Option<Duration>,
    },
}

impl Graph {
    /// Checks a definition. Returns all problems that it finds, at most [`PROBLEMS_MAX`].
    pub fn new(definition: Workflow) -> Result<Graph, Vec<Problem>> {
        let failed =
            |error: std::io::Error| vec![problem("steps", format!("failed to check the workflow: {error}"))];
        on_large_stack(|| Builder::default().build(definition)).map_err(failed)?
    }

    /// The definition.
    pub fn definition(&self) -> &Workflow {
        &self.definition
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no steps; never, because the definition was checked.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All steps.
    pub fn steps(&self) -> impl Iterator<Item = StepNo> + use<> {
        (0..self.nodes.len() as u32).map(StepNo)
    }

    /// Definition of a step.
    pub fn step(&self, step: StepNo) -> &Step {
        &self.definition.steps[step.index()]
    }

    /// Connections of a step.
    pub fn node(&self, step: StepNo) -> &Node {
        &self.nodes[step.index()]
    }

    /// The step with this name.
    pub fn find(&self, name: &str) -> Option<StepNo> {
        self.by_name.get(name).copied()
    }

    /// Steps that open when a phase begins.
    pub fn roots(&self, phase: Phase) -> impl Iterator<Item = StepNo> + '_ {
        self.steps().filter(move |step| self.step(*step).phase == phase && self.node(*step).needs.is_empty())
    }

    /// Number of steps of a phase.
    pub fn count(&self, phase: Phase) -> u32 {
        self.definition.steps.iter().filter(|step| step.phase == phase).count() as u32
    }

    /// What a step does when it opens in this scope.
    pub fn open(&self, step: StepNo, scope: &Scope) -> Result<Opening, String> {
        let template = self.node(step).template.as_ref();
        let rendered = template.map(|template| template.render(scope)).transpose();
        let rendered = rendered.map_err(|error: ExpressionError| error.to_string())?;
        Ok(match &self.step(step).action {
            Action::Job { job, .. } => {
                Opening::Job { job: *job, param: rendered.map(param_text).transpose()? }
            }
            Action::Workflow { job, .. } => {
                let inputs = match rendered {
                    Some(Value::Object(fields)) => fields.into_iter().collect(),
                    _ => BTreeMap::new(),
                };
                Opening::Workflow { job: *job, inputs }
            }
            Action::Approval { timeout, .. } => Opening::Approval {
                ask: rendered.as_ref().map(as_text).unwrap_or_default(),
                timeout: *timeout,
            },
            Action::Wait { duration } => Opening::Wait { duration: *duration },
            Action::Depends { job, timeout, .. } => Opening::Depends { job: *job, timeout: *timeout },
        })
    }

    /// Output of a run.
    pub fn output(&self, scope: &Scope) -> Result<Value, String> {
        self.output.render(scope).map_err(|error| error.to_string())
    }

    /// Steps that the output of a run names.
    pub fn output_steps(&self) -> &[StepNo] {
        &self.output_steps
    }

    /// Values of all inputs: the given ones, and defaults for the others.
    pub fn inputs(
        &self,
        given: &BTreeMap<String, Value>,
        run: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Value>, String> {
        data::check_inputs(&self.definition.inputs, given)?;
        let scope = Scope { run: run.clone(), ..Scope::default() };
        let mut all = given.clone();
        for (name, template) in &self.defaults {
            if !all.contains_key(name) {
                let value =
                    template.render(&scope).map_err(|error| format!("the input `{name}`: {error}"))?;
                data::check_input(name, &self.definition.inputs[name], &value)?;
                all.insert(name.clone(), value);
            }
        }
        Ok(all)
    }
}

fn param_text(value: Value) -> Result<String, String> {
    let text = as_text(&value);
    if text.len() > PARAM_MAX {
        return Err(format!("the parameter has {} bytes, at most {PARAM_MAX} are allowed", text.len()));
    }
    Ok(text)
}

fn problem(path: impl Into<String>, message: impl Into<String>) -> Problem {
    Problem { path: path.into(), message: message.into() }
}

/// Collects problems while it builds.
#[derive(Default)]
struct Builder {
    problems: Vec<Problem>,
    by_name: HashMap<String, StepNo>,
}

impl Builder {
    fn build(mut self, definition: Workflow) -> Result<Graph, Vec<Problem>> {
        self.number(&definition);
        let mut nodes = Vec::new();
        if self.problems.is_empty() {
            nodes = definition.steps.iter().map(|step| self.node(&definition, step)).collect();
        }
        if self.problems.is_empty() {
            self.connect(&definition, &mut nodes);
        }
        if self.problems.is_empty()
            && let Some(order) = self.order(&definition, &nodes)
        {
            self.check_names(&definition, &nodes, &order);
        }
        let output = self.template("output", Template::parse(&definition.output));
        let defaults = self.defaults(&definition);
        let mut output_steps = Vec::new();
        output.expressions(&mut |expression| {
            self.check_inputs(&definition, "output", expression.names());
            self.check_no_secret("output", expression.names());
            for name in &expression.names().steps {
                match self.by_name.get(name) {
                    Some(step) => output_steps.push(*step),
                    None => self.say("output", format!("there is no step `{name}`")),
                }
            }
        });
        if !self.problems.is_empty() {
            self.problems.truncate(PROBLEMS_MAX);
            return Err(self.problems);
        }
        output_steps.sort_unstable();
        output_steps.dedup();
        Ok(Graph { definition, nodes, by_name: self.by_name, output, output_steps, defaults })
    }

    fn say(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(problem(path, message));
    }

    fn number(&mut self, definition: &Workflow) {
        let count = definition.steps.len();
        if count > STEPS_MAX {
            self.say("steps", format!("the workflow has {count} steps, at most {STEPS_MAX} are allowed"));
            return;
        }
        if !definition.steps.iter().any(|step| step.phase == Phase::Main) {
            self.say("steps", "the workflow needs at least one step");
        }
        let edges: usize = definition.steps.iter().map(|step| step.needs.len()).sum();
        if edges > EDGES_MAX {
            self.say("steps", format!("the steps have {edges} needs, at most {EDGES_MAX} are allowed"));
            return;
        }
        for (number, step) in definition.steps.iter().enumerate() {
            if !is_name(&step.name) {
                let shown: String = step.name.chars().take(NAME_MAX).collect();
                self.say(
                    path_of(step),
                    format!(
                        "`{shown}` is not a name; use at most {NAME_MAX} of the characters a-z, 0-9 and _"
                    ),
                );
            } else if self.by_name.insert(step.name.clone(), StepNo(number as u32)).is_some() {
                self.say(path_of(step), format!("there are two steps `{}`", step.name));
            }
        }
    }

    fn node(&mut self, definition: &Workflow, step: &Step) -> Node {
        let path = path_of(step);
        let mut needs = Vec::with_capacity(step.needs.len());
        let mut seen = BTreeSet::new();
        for (number, need) in step.needs.iter().enumerate() {
            let path = format!("{path}.needs[{number}]");
            let Some(from) = self.by_name.get(&need.step).copied() else {
                let shown: String = need.step.chars().take(NAME_MAX).collect();
                self.say(path, format!("there is no step `{shown}`"));
                continue;
            };
            if !seen.insert(from) {
                self.say(&path, format!("`{}` is needed twice", need.step));
            }
            if definition.steps[from.index()].phase != step.phase {
                self.say(&path, format!("`{}` belongs to another phase, which has ended before", need.step));
            }
            let branch = match &need.branch {
                Branch::Always => Condition::Always,
                Branch::Else => Condition::Else,
                Branch::If(source) => match Expression::parse(source) {
                    Ok(expression) => Condition::If(expression),
                    Err(error) => {
                        self.say(format!("{path}.if"), error.to_string());
                        Condition::Always
                    }
                },
            };
            needs.push(Edge { from, branch, names: Vec::new() });
        }
        if let Join::AtLeast(count) = step.join
            && (count == 0 || count as usize > step.needs.len())
        {
            self.say(
                format!("{path}.when"),
                format!("at least {count} of {} needs is impossible", step.needs.len()),
            );
        }
        let condition = step.condition.as_deref().and_then(|source| match Expression::parse(source) {
            Ok(expression) => Some(expression),
            Err(error) => {
                self.say(format!("{path}.if"), error.to_string());
                None
            }
        });
        let (field, template) = match &step.action {
            Action::Job { param: Param::Own, .. } | Action::Wait { .. } | Action::Depends { .. } => {
                ("", None)
            }
            Action::Job { param: Param::Text(text), .. } => ("param", Some(Template::parse_text(text))),
            Action::Job { param: Param::With(value), .. } => ("with", Some(Template::parse(value))),
            Action::Workflow { inputs, .. } => {
                let fields = inputs.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                ("with", Some(Template::parse(&Value::Object(fields))))
            }
            Action::Approval { ask, .. } => ("approval.ask", Some(Template::parse_text(ask))),
        };
        let template = template.map(|parsed| self.template(&format!("{path}.{field}"), parsed));
        Node { needs, successors: Vec::new(), condition, names: Vec::new(), is_caught: false, template }
    }

    fn template<E: fmt::Display>(&mut self, path: &str, parsed: Result<Template, E>) -> Template {
        parsed.unwrap_or_else(|error| {
            self.say(path, error.to_string());
            Template::Plain(Value::Null)
        })
    }

    fn defaults(&mut self, definition: &Workflow) -> BTreeMap<String, Template> {
        let mut defaults = BTreeMap::new();
        for (name, input) in &definition.inputs {
            let path = format!("inputs.{name}");
            if !is_name(name) {
                self.say(&path, format!("`{name}` is not a name; use the characters a-z, 0-9 and _"));
            }
            let Some(default) = &input.default else { continue };
            let template = self.template(&path, Template::parse(default));
            let names = template.names();
            self.check_no_secret(&path, &names);
            if !names.steps.is_empty() || !names.inputs.is_empty() {
                self.say(&path, "a default sees only `run`: no step has run yet");
            }
            if let Template::Plain(value) = &template
                && let Err(message) = data::check_input(name, input, value)
            {
                self.say(&path, message);
            }
            defaults.insert(name.clone(), template);
        }
        defaults
    }

    /// Fills in what depends on other steps.
    fn connect(&mut self, definition: &Workflow, nodes: &mut [Node]) {
        let mut has_if = vec![false; nodes.len()];
        for number in 0..nodes.len() {
            for edge in 0..nodes[number].needs.len() {
                let from = nodes[number].needs[edge].from.index();
                has_if[from] |= matches!(nodes[number].needs[edge].branch, Condition::If(_));
                nodes[from].successors.push(StepNo(number as u32));
                nodes[from].is_caught |=
                    matches!(definition.steps[number].join, Join::AnyFailed | Join::AllEnded);
            }
        }
        for (step, node) in definition.steps.iter().zip(&*nodes) {
            for (number, edge) in node.needs.iter().enumerate() {
                if matches!(edge.branch, Condition::Else) && !has_if[edge.from.index()] {
                    let from = &definition.steps[edge.from.index()].name;
                    self.say(
                        format!("{}.needs[{number}].else", path_of(step)),
                        format!("`else` needs another step that needs `{from}` with an `if`"),
                    );
                }
            }
        }
        for node in nodes {
            let mut names =
                node.condition.as_ref().map(|condition| condition.names().clone()).unwrap_or_default();
            if let Some(template) = &node.template {
                names.extend(&template.names());
            }
            node.names = self.numbers(&names);
            for edge in &mut node.needs {
                if let Condition::If(expression) = &edge.branch {
                    edge.names = self.numbers(expression.names());
                }
            }
        }
    }

    fn numbers(&self, names: &Names) -> Vec<StepNo> {
        let mut steps: Vec<StepNo> =
            names.steps.iter().filter_map(|name| self.by_name.get(name).copied()).collect();
        steps.sort_unstable();
        steps
    }

    /// An order in which every step comes after those that it needs; none if there is a circle.
    fn order(&mut self, definition: &Workflow, nodes: &[Node]) -> Option<Vec<StepNo>> {
        let mut waits: Vec<usize> = nodes.iter().map(|node| node.needs.len()).collect();
        let mut order: Vec<StepNo> =
            (0..nodes.len()).filter(|step| waits[*step] == 0).map(|step| StepNo(step as u32)).collect();
        let mut next = 0;
        while let Some(step) = order.get(next).copied() {
            next += 1;
            for successor in &nodes[step.index()].successors {
                waits[successor.index()] -= 1;
                if waits[successor.index()] == 0 {
                    order.push(*successor);
                }
            }
        }
        if order.len() == nodes.len() {
            return Some(order);
        }
        let circle = circle(nodes, &waits);
        let names: Vec<&str> =
            circle.iter().map(|step| definition.steps[step.index()].name.as_str()).collect();
        let shown = match names.len() {
            0..=12 => names.join(" → "),
            count => format!("{} → … ({} steps)", names[..6].join(" → "), count - 1),
        };
        let first = circle
            .first()
            .map_or_else(|| "steps".to_owned(), |step| path_of(&definition.steps[step.index()]));
        self.say(first, format!("the steps need each other in a circle: {shown}"));
        None
    }

    /// An expression may name only steps that have ended when it is evaluated.
    fn check_names(&mut self, definition: &Workflow, nodes: &[Node], order: &[StepNo]) {
        let ancestors = Ancestors::new(nodes, order);
        for (number, (step, node)) in definition.steps.iter().zip(nodes).enumerate() {
            let path = path_of(step);
            let me = StepNo(number as u32);
            let has_ended = |other: StepNo| {
                definition.steps[other.index()].phase < step.phase || ancestors.has(me, other)
            };
            if let Some(condition) = &node.condition {
                self.check_no_secret(&format!("{path}.if"), condition.names());
                self.check_expression(definition, &format!("{path}.if"), condition.names(), &has_ended);
            }
            if let Some(template) = &node.template {
                let names = template.names();
                if names.secret && !matches!(step.action, Action::Job { .. }) {
                    self.say(format!("{path}.with"), SECRETS_ONLY);
                }
                self.check_expression(definition, &format!("{path}.with"), &names, &has_ended);
            }
            for (number, edge) in node.needs.iter().enumerate() {
                if let Condition::If(expression) = &edge.branch {
                    let has_ended = |other: StepNo| {
                        let earlier = definition.steps[other.index()].phase < step.phase;
                        earlier || other == edge.from || ancestors.has(edge.from, other)
                    };
                    let path = format!("{path}.needs[{number}].if");
                    self.check_no_secret(&path, expression.names());
                    self.check_expression(definition, &path, expression.names(), &has_ended);
                }
            }
        }
    }

    fn check_expression(
        &mut self,
        definition: &Workflow,
        path: &str,
        names: &Names,
        has_ended: &dyn Fn(StepNo) -> bool,
    ) {
        self.check_inputs(definition, path, names);
        for name in &names.steps {
            match self.by_name.get(name) {
                None => self.say(path, format!("there is no step `{name}`")),
                Some(step) if !has_ended(*step) => {
                    self.say(path, format!("`{name}` may not have ended here; add it to `needs`"));
                }
                Some(_) => {}
            }
        }
    }

    fn check_no_secret(&mut self, path: &str, names: &Names) {
        if names.secret {
            self.say(path, SECRETS_ONLY);
        }
    }

    fn check_inputs(&mut self, definition: &Workflow, path: &str, names: &Names) {
        for name in &names.inputs {
            if !definition.inputs.contains_key(name) {
                self.say(path, format!("there is no input `{name}`"));
            }
        }
    }
}

/// A circle among the steps that wait for each other, from a step back to itself.
fn circle(nodes: &[Node], waits: &[usize]) -> Vec<StepNo> {
    let Some(start) = waits.iter().position(|waits| *waits > 0) else {
        return Vec::new();
    };
    // Every such step needs another one of them: following the needs, a step comes again.
    let mut seen = HashMap::new();
    let mut path = Vec::new();
    let mut step = start;
    loop {
        if let Some(first) = seen.insert(step, path.len()) {
            path.push(StepNo(step as u32));
            let mut circle = path.split_off(first);
            circle.reverse();
            return circle;
        }
        path.push(StepNo(step as u32));
        let open = nodes[step].needs.iter().find(|edge| waits[edge.from.index()] > 0);
        let Some(edge) = open else {
            return Vec::new();
        };
        step = edge.from.index();
    }
}

/// For each step, the steps that end before it: one bit for each pair.
struct Ancestors {
    words: usize,
    bits: Vec<u64>,
}

impl Ancestors {
    fn new(nodes: &[Node], order: &[StepNo]) -> Ancestors {
        let words = nodes.len().div_ceil(64);
        let mut all = Ancestors { words, bits: vec![0; words * nodes.len()] };
        for step in order {
            let mut own = vec![0_u64; words];
            for edge in &nodes[step.index()].needs {
                let from = edge.from.index();
                own.iter_mut().zip(&all.bits[from * words..]).for_each(|(own, theirs)| *own |= theirs);
                own[from / 64] |= 1 << (from % 64);
            }
            all.bits[step.index() * words..][..words].copy_from_slice(&own);
        }
        all
    }

    fn has(&self, step: StepNo, ancestor: StepNo) -> bool {
        self.bits[step.index() * self.words + ancestor.index() / 64] >> (ancestor.index() % 64) & 1 == 1
    }
}

fn path_of(step: &Step) -> String {
    let section = match step.phase {
        Phase::Main => "steps",
        Phase::OnFailure => "on_failure",
        Phase::Finally => "finally",
    };
    let name: String = step.name.chars().take(NAME_MAX).collect();
    format!("{section}.{name}")
}

fn is_name(name: &str) -> bool {
    let allowed = |next: char| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_';
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(allowed)
}

const SECRETS_ONLY: &str = "`secret` can be used only in the parameter of a step that runs a job, a handler, a script, a request or a program";

/// Maximum number of steps of a workflow.
pub const STEPS_MAX: usize = 10_000;

/// Maximum number of needs of all steps together.
pub const EDGES_MAX: usize = 50_000;

/// Maximum number of problems that a check returns.
pub const PROBLEMS_MAX: usize = 100;

/// Maximum length of the name of a step or an input.
pub const NAME_MAX: usize = 64;

/// Maximum size of a rendered parameter, in bytes.
pub const PARAM_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::{Input, InputType, Need};

    fn job(number: i64) -> Action {
        Action::Job { job: number, param: Param::Own }
    }

    fn with(value: Value) -> Action {
        Action::Job { job: 1, param: Param::With(value) }
    }

    fn problems(change: impl FnOnce(&mut Workflow)) -> Vec<String> {
        let mut workflow = Workflow {
            steps: vec![
                Step::new("a", &[], job(1)),
                Step::new("b", &["a"], job(2)),
                Step::new("c", &["a"], job(3)),
                Step::new("d", &["b", "c"], job(4)),
                Step { phase: Phase::Finally, ..Step::new("tidy", &[], job(5)) },
            ],
            ..Workflow::default()
        };
        change(&mut workflow);
        let problems = Graph::new(workflow).err().unwrap_or_default();
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let check = |change: &dyn Fn(&mut Workflow), expected: &[&str]| {
            let found = problems(change);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{found}");
            }
        };
        check(&|_| {}, &[]);
        check(&|flow| flow.steps.clear(), &["steps: the workflow needs at least one step"]);
        check(&|flow| flow.steps[1].needs = vec![Need::on("x")], &["steps.b.needs[0]: there is no step `x`"]);
        check(&|flow| flow.steps[1].needs.push(Need::on("a")), &["steps.b.needs[1]: `a` is needed twice"]);
        check(
            &|flow| flow.steps[0].needs = vec![Need::on("d")],
            &["steps.a: the steps need each other in a circle: a → b → d → a"],
        );
        check(
            &|flow| flow.steps[0].needs = vec![Need::on("a")],
            &["steps.a: the steps need each other in a circle: a → a"],
        );
        check(&|flow| flow.steps[1].name = "a".into(), &["steps.a: there are two steps `a`"]);
        check(&|flow| flow.steps[1].name = "B!".into(), &["steps.B!: `B!` is not a name"]);
        check(&|flow| flow.steps[3].join = Join::AtLeast(3), &["steps.d.when: at least 3 of 2 needs"]);
        check(
            &|flow| flow.steps[4].needs = vec![Need::on("d")],
            &["finally.tidy.needs[0]: `d` belongs to another phase"],
        );
        check(
            &|flow| flow.steps[1].needs[0].branch = Branch::Else,
            &["steps.b.needs[0].else: `else` needs another step"],
        );
        check(
            &|flow| flow.steps[1].action = with(json!({"x": "${{ steps.c.output.y }}"})),
            &["steps.b.with: `c` may not have ended here; add it to `needs`"],
        );
        check(
            &|flow| flow.steps[1].condition = Some("steps.b.output.y == 1".into()),
            &["steps.b.if: `b` may not have ended here"],
        );
        check(
            &|flow| flow.steps[3].needs[0].branch = Branch::If("steps.c.output.y".into()),
            &["steps.d.needs[0].if: `c` may not have ended here"],
        );
        check(
            &|flow| flow.steps[1].condition = Some("inputs.x".into()),
            &["steps.b.if: there is no input `x`"],
        );
        check(&|flow| flow.output = json!("${{ steps.x.output }}"), &["output: there is no step `x`"]);
        check(&|flow| flow.steps[1].condition = Some("1 +".into()), &["steps.b.if: "]);
        check(
            &|flow| {
                flow.steps.extend((0..STEPS_MAX).map(|n| Step::new(format!("s{n}"), &[], job(1))));
            },
            &["steps: the workflow has 10005 steps, at most 10000 are allowed"],
        );
        let input = |default| Input { kind: InputType::Int, default: Some(default), one_of: Vec::new() };
        check(
            &|flow| {
                flow.inputs.insert("n".into(), input(json!("x")));
                flow.inputs.insert("m".into(), input(json!("${{ steps.a.output.n }}")));
            },
            &["inputs.m: a default sees only `run`", "inputs.n: the input `n` must be a whole number"],
        );
    }

    #[test]
    fn expressions_see_what_has_ended() {
        let found = problems(|flow| {
            flow.steps[3].action =
                with(json!({"x": "${{ steps.a.output.y }}", "z": "${{ steps.b.output.y }}"}));
            flow.steps[3].needs[0].branch =
                Branch::If("steps.a.output.y > 1 && steps.b.state == 'succeeded'".into());
            flow.steps[4].action = with(json!("${{ steps.d.state }}"));
        });
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_large_graph_is_checked_quickly() {
        let name = |row: usize, column: usize| format!("s{row}_{column}");
        let mut steps = Vec::new();
        for row in 0..100 {
            for column in 0..100 {
                let needs = [name(row.max(1) - 1, column), name(row.max(1) - 1, (column + 1) % 100)];
                let needs: Vec<&str> = needs.iter().map(String::as_str).filter(|_| row > 0).collect();
                steps.push(Step::new(name(row, column), &needs, job(1)));
            }
        }
        steps[9_999].condition = Some("steps.s0_0.state == 'succeeded'".into());
        let graph = Graph::new(Workflow { steps, ..Workflow::default() }).unwrap();
        assert_eq!((graph.len(), graph.roots(Phase::Main).count()), (10_000, 100));
    }

    #[test]
    fn a_stored_definition_is_read_back() {
        let mut workflow = Workflow { steps: vec![Step::new("a", &[], job(1))], ..Workflow::default() };
        workflow.steps.push(Step {
            needs: vec![Need { step: "a".into(), branch: Branch::If("inputs.n > 1".into()) }],
            join: Join::AtLeast(1),
            timeout: Some(Duration::from_millis(1_500)),
            ..Step::new("b", &[], with(json!({"x": [1, "${{ inputs.n }}"]})))
        });
        workflow
            .inputs
            .insert("n".into(), Input { kind: InputType::Int, default: Some(json!(2)), one_of: vec![] });
        let text = serde_json::to_string(&workflow).unwrap();
        assert_eq!(serde_json::from_str::<Workflow>(&text).unwrap(), workflow, "{text}");
        let graph = Graph::new(workflow).unwrap();
        let inputs = graph.inputs(&BTreeMap::new(), &BTreeMap::new()).unwrap();
        let scope = Scope { inputs, ..Scope::default() };
        let param = Some("{\"x\":[1,2]}".to_owned());
        assert_eq!(graph.open(StepNo(1), &scope), Ok(Opening::Job { job: 1, param }));
    }
}
