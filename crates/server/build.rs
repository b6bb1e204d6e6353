//! Builds the web console, if npm is installed, and generates lists of its files, to embed in the server, and of its
//! pages.
//!
//! `TICKWRIGHT_SKIP_CONSOLE=1` skips it. Without the console, or without npm, the server shows a page with build
//! instructions, so that Node.js is not needed to work on other parts.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Sources of the bundle, in `console/`.
const SOURCES: [&str; 9] = [
    "docs.html",
    "index.html",
    "package-lock.json",
    "package.json",
    "public",
    "src",
    "svelte.config.js",
    "tsconfig.json",
    "vite.config.ts",
];

const SKIP: &str = "TICKWRIGHT_SKIP_CONSOLE";

fn main() -> Result<(), Box<dyn Error>> {
    let console = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../console");
    let bundle = console.join("dist");
    println!("cargo::rerun-if-env-changed={SKIP}");
    println!("cargo::rerun-if-changed=build.rs");
    if console.is_dir() {
        // Cargo checks these every time, and a missing folder would count as changed every time.
        fs::create_dir_all(&bundle)?;
        for source in SOURCES.iter().map(|source| console.join(source)).chain([bundle.clone()]) {
            println!("cargo::rerun-if-changed={}", source.display());
        }
    }
    let wanted = env::var_os(SKIP).is_none() && console.is_dir();
    if wanted {
        build(&console, &bundle)?;
    }
    let list = if wanted && bundle.join("index.html").is_file() {
        list(&bundle.canonicalize()?)?
    } else {
        "&[]".into()
    };
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("console_files.rs"), list)?;
    let pages =
        if console.is_dir() { pages(&fs::read_to_string(console.join(PAGES))?)? } else { vec!["/".into()] };
    fs::write(out.join("console_pages.rs"), format!("&{pages:?}"))?;
    Ok(())
}

/// File with the console's table of pages, in `console/`.
const PAGES: &str = "src/pages.ts";

/// Returns the URLs of the console's pages, with parameters in braces. Each row of the table has its own as
/// `path: '/jobs/:id'`.
fn pages(table: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let paths = table.split("path: '").skip(1).filter_map(|rest| rest.split('\'').next());
    let part = |part: &str| part.strip_prefix(':').map_or(part.to_owned(), |name| format!("{{{name}}}"));
    let pages: Vec<String> =
        paths.map(|path| path.split('/').map(part).collect::<Vec<_>>().join("/")).collect();
    if pages.is_empty() {
        return Err(format!(
            "console/{PAGES} has no table of pages; build.rs reads the console's URLs from it"
        )
        .into());
    }
    Ok(pages)
}

/// Builds the bundle if it is missing or older than its sources. An error is only a warning: the server works
/// without its console.
fn build(console: &Path, bundle: &Path) -> io::Result<()> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for source in SOURCES {
        newest = newest.max(newest_in(&console.join(source))?);
    }
    if changed_at(&bundle.join("index.html")).is_some_and(|built| built >= newest) {
        return Ok(());
    }
    let lock = changed_at(&console.join("package-lock.json"));
    if changed_at(&console.join("node_modules/.package-lock.json")) < lock && !npm(console, &["ci"]) {
        return Ok(());
    }
    npm(console, &["run", "build"]);
    Ok(())
}

fn npm(console: &Path, arguments: &[&str]) -> bool {
    let said = match Command::new("npm").args(arguments).current_dir(console).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let lines = said.lines().map(|line| line.trim_start_matches("npm error").trim());
    let mut reasons =
        lines.filter(|line| !line.is_empty() && !line.starts_with("npm warn") && !line.starts_with("code "));
    let reason = reasons.next().unwrap_or("no reason given");
    println!("cargo::warning=the console is left out: npm {}: {reason}", arguments.join(" "));
    false
}

fn changed_at(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn newest_in(path: &Path) -> io::Result<SystemTime> {
    let mut newest = changed_at(path).unwrap_or(SystemTime::UNIX_EPOCH);
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            newest = newest.max(newest_in(&entry?.path())?);
        }
    }
    Ok(newest)
}

/// Returns the bundle's files as Rust code: a table with the files to include.
fn list(bundle: &Path) -> Result<String, Box<dyn Error>> {
    let mut paths = Vec::new();
    files_in(bundle, &mut paths)?;
    paths.sort();
    let mut code = String::from("&[\n");
    for path in &paths {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if matches!(ending, "br" | "gz") {
            continue;
        }
        let name = path.strip_prefix(bundle)?.to_str().ok_or("a file of the console has no readable name")?;
        let mut hasher = DefaultHasher::new();
        fs::read(path)?.hash(&mut hasher);
        let packed = |ending: &str| {
            let packed = PathBuf::from(format!("{}.{ending}", path.display()));
            if paths.contains(&packed) { format!("Some(include_bytes!({packed:?}))") } else { "None".into() }
        };
        writeln!(
            code,
            "File {{ path: {:?}, plain: include_bytes!({path:?}), brotli: {}, gzip: {}, etag: {:?} }},",
            format!("/{}", name.replace('\\', "/")),
            packed("br"),
            packed("gz"),
            format!("\"{:016x}\"", hasher.finish()),
        )?;
    }
    code.push(']');
    Ok(code)
}

fn files_in(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files_in(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
