//! No circle of files: what a file imports never imports it back, over however many others.
//!
//! Looks inside of one crate; between crates Cargo forbids circles. A `pub use` is no import: it only says where a name is.

mod imports;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::source::Source;
use imports::{Module, Use};

/// A module of a crate by its names from the root, as `["plan", "read"]`.
type Name = Vec<String>;
/// Which files a file imports, and by what names.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<String>>>;

/// Paths lead through so many re-exports at most.
const REEXPORTS_MAX: usize = 16;

/// Files still in circles, by crate. Each change may only lower a number; the list goes when it is empty.
const LEFT: [(&str, usize); 2] = [("tests/small-world", 12), ("tests/swarm", 20)];

/// Every circle that is not left from before, and every file that could not be read.
pub(super) fn findings(sources: &[Source]) -> Vec<String> {
    every_circle(sources, &LEFT)
}

fn every_circle(sources: &[Source], left: &[(&str, usize)]) -> Vec<String> {
    let texts: BTreeMap<&str, &str> = sources
        .iter()
        .filter(|source| source.has_extension("rs"))
        .map(|source| (source.path.as_str(), source.text.as_str()))
        .collect();
    let mut by_crate: BTreeMap<&str, Vec<Circle>> = BTreeMap::new();
    let mut found = Vec::new();
    for root in texts.keys().copied() {
        let Some((folder, "lib.rs" | "main.rs")) = root.rsplit_once("/src/") else { continue };
        match Crate::read(root, &texts) {
            Ok(read) => by_crate.entry(folder).or_default().extend(circles(&read.arrows())),
            Err(unread) => found.push(unread),
        }
    }
    for (folder, circles) in by_crate {
        let expected = left.iter().find(|(name, _)| *name == folder).map_or(0, |(_, files)| *files);
        let files = circles.iter().map(|circle| circle.files).sum::<usize>();
        if files < expected {
            found.push(format!("{folder}: {files} files in circles; LEFT says {expected}"));
        } else if files > expected {
            found.extend(circles.into_iter().map(|circle| circle.finding));
        }
    }
    found
}

/// The modules of one crate.
struct Crate<'a> {
    modules: BTreeMap<Name, (&'a str, Module)>,
}

impl<'a> Crate<'a> {
    fn read(root: &'a str, texts: &BTreeMap<&'a str, &'a str>) -> Result<Self, String> {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut read = Self { modules: BTreeMap::new() };
        read.add_file(Vec::new(), root, folder, texts)?;
        Ok(read)
    }

    /// `below` is the folder with the files of its modules.
    fn add_file(
        &mut self,
        name: Name,
        path: &'a str,
        below: &str,
        texts: &BTreeMap<&'a str, &'a str>,
    ) -> Result<(), String> {
        let text = texts.get(path).copied().unwrap_or_default();
        let module = imports::read(text).map_err(|error| format!("{path}: {error}"))?;
        self.add(name, path, below, module, texts)
    }

    fn add(
        &mut self,
        name: Name,
        path: &'a str,
        below: &str,
        mut module: Module,
        texts: &BTreeMap<&'a str, &'a str>,
    ) -> Result<(), String> {
        let child = |child: &String| [name.as_slice(), std::slice::from_ref(child)].concat();
        for (inline, inner) in std::mem::take(&mut module.inline) {
            let below = format!("{below}/{inline}");
            self.add(child(&inline), path, &below, inner, texts)?;
        }
        for file in &module.files {
            let candidates = [format!("{below}/{file}.rs"), format!("{below}/{file}/mod.rs")];
            let known = candidates.iter().find_map(|path| texts.get_key_value(path.as_str()));
            let Some((&path, _)) = known else {
                return Err(format!("{path}: there is no file of its module {file}"));
            };
            self.add_file(child(file), path, &format!("{below}/{file}"), texts)?;
        }
        self.modules.insert(name, (path, module));
        Ok(())
    }

    fn arrows(&self) -> Arrows<'a> {
        let mut arrows = Arrows::new();
        for (name, (from, module)) in &self.modules {
            // What is handed on and named in the code, too, is imported.
            let is_named = |line: &Use| {
                let head = |path: &Vec<String>| path.first().cloned();
                line.name.as_ref().is_some_and(|name| {
                    module.names.contains(name)
                        || module.paths.iter().filter_map(head).any(|first| first == *name)
                })
            };
            let own = module.uses.iter().filter(|line| !line.is_handed_on || is_named(line));
            let used = own.filter_map(|line| self.imported(name, line));
            let named = module.paths.iter().filter_map(|path| self.defined(name, path, 0));
            for (to, what) in used.chain(named).filter(|(to, _)| to != from) {
                arrows.entry(from).or_default().entry(to).or_default().insert(what);
            }
        }
        arrows
    }

    /// The file that a `use` line imports from, and the name.
    fn imported(&self, at: &Name, line: &Use) -> Option<(&'a str, String)> {
        if line.name.is_some() {
            return self.defined(at, &line.path, 0);
        }
        let module = self.module(at, &line.path, 0)?;
        Some((self.modules.get(&module)?.0, "*".to_owned()))
    }

    /// The file that defines what a path names, and its name. None for a module, and for what another
    /// crate or the language defines.
    fn defined(&self, at: &Name, path: &[String], depth: usize) -> Option<(&'a str, String)> {
        match self.resolve(at, path, depth)? {
            Place::Module(_) => None,
            Place::Item(module, item) => Some((self.modules.get(&module)?.0, item)),
        }
    }

    fn module(&self, at: &Name, path: &[String], depth: usize) -> Option<Name> {
        match self.resolve(at, path, depth)? {
            Place::Module(module) => Some(module),
            Place::Item(..) => None,
        }
    }

    /// Follows a path from the module `at`, through re-exports.
    fn resolve(&self, at: &Name, path: &[String], depth: usize) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Place::Module(Vec::new()),
            "self" => Place::Module(at.clone()),
            "super" => Place::Module(at.split_last()?.1.to_vec()),
            name => self.step(at, name, depth, rest.is_empty())?,
        };
        let mut place = start;
        for name in rest {
            place = match place {
                Place::Module(module) if name == "super" => {
                    Place::Module(module.split_last()?.1.to_vec())
                }
                Place::Module(module) => self.step(&module, name, depth, true)?,
                // A variant, an associated function: its type is what was imported.
                item @ Place::Item(..) => return Some(item),
            };
        }
        Some(place)
    }

    /// What `name` is in a module: another module, a re-export, or its own.
    fn step(&self, at: &Name, name: &str, depth: usize, may_be_own: bool) -> Option<Place> {
        let child = [at.as_slice(), &[name.to_owned()]].concat();
        if self.modules.contains_key(&child) {
            return Some(Place::Module(child));
        }
        let (_, module) = self.modules.get(at)?;
        let own = Place::Item(at.clone(), name.to_owned());
        if module.defined.iter().any(|defined| defined == name) {
            return Some(own);
        }
        if depth == REEXPORTS_MAX {
            return None;
        }
        let by_name = module.uses.iter().find(|line| line.name.as_deref() == Some(name));
        if let Some(line) = by_name {
            // Of another crate if it leads nowhere here.
            return (line.path != [name]).then(|| self.resolve(at, &line.path, depth + 1))?;
        }
        let in_all = module.uses.iter().filter(|line| line.name.is_none()).find_map(|line| {
            let module = self.module(at, &line.path, depth + 1)?;
            self.step(&module, name, depth + 1, false)
        });
        in_all.or(may_be_own.then_some(own))
    }
}

/// What a path leads to.
enum Place {
    Module(Name),
    /// A name that this module defines.
    Item(Name, String),
}

/// Files that all import each other.
struct Circle {
    files: usize,
    finding: String,
}

fn circles(arrows: &Arrows<'_>) -> Vec<Circle> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|from| (*from, reached(arrows, from))).collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for from in arrows.keys().copied().filter(|from| leads(from, from)) {
        let circle: Vec<&str> =
            arrows.keys().copied().filter(|to| leads(from, to) && leads(to, from)).collect();
        if told.insert(circle.clone()) {
            let files = circle.len();
            let way = shortest(arrows, &circle);
            let finding = format!("{from}: one of {files} files that import each other: {way}");
            found.push(Circle { files, finding });
        }
    }
    found
}

/// All that a file imports, by itself or through others.
fn reached<'a>(arrows: &Arrows<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(next) = open.pop() {
        for to in arrows.get(next).into_iter().flatten().map(|(to, _)| *to) {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}

/// The shortest way from one of these files back to itself: `a.rs takes Plan of b.rs, which takes …`.
fn shortest(arrows: &Arrows<'_>, circle: &[&str]) -> String {
    let ways = circle.iter().filter_map(|start| way_back(arrows, start));
    let Some(way) = ways.min_by_key(Vec::len) else { return String::new() };
    let arrow = |(from, to): (&&str, &&str)| {
        let names = arrows.get(*from).and_then(|all| all.get(*to));
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        format!("{from} takes {} from {to}", names.join(", "))
    };
    way.iter().zip(way.iter().skip(1)).map(arrow).collect::<Vec<_>>().join("; ")
}

fn way_back<'a>(arrows: &Arrows<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(next) = open.pop_front() {
        for to in arrows.get(next).into_iter().flatten().map(|(to, _)| *to) {
            if to == start {
                let earlier = std::iter::successors(Some(next), |at| before.get(at).copied());
                let mut way: Vec<&str> = std::iter::once(start).chain(earlier).collect();
                way.reverse();
                return Some(way);
            }
            if to != start && !before.contains_key(to) {
                before.insert(to, next);
                open.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings for a crate of these files.
    fn check(files: &[(&str, &str)]) -> Vec<String> {
        check_with(files, 0)
    }

    fn check_with(files: &[(&str, &str)], left: usize) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("host/x/src/{path}"),
            text: (*text).to_owned(),
        };
        every_circle(&files.iter().map(source).collect::<Vec<_>>(), &[("host/x", left)])
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let found = check(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::Plan; pub fn run() {}"),
            ("b.rs", "pub struct Plan; fn go() { crate::c::go() }"),
            ("c.rs", "pub fn go() { super::a::run() }"),
        ]);
        assert_eq!(
            found,
            [
                "host/x/src/a.rs: one of 3 files that import each other: host/x/src/a.rs takes Plan from \
              host/x/src/b.rs; host/x/src/b.rs takes go from host/x/src/c.rs; host/x/src/c.rs takes run from \
              host/x/src/a.rs"
            ]
        );
    }

    #[test]
    fn a_folder_may_hand_on_what_its_files_define_and_may_not_take_it() {
        let inside = ("a/inner.rs", "use super::Kind; pub fn read(_: Kind) {}");
        let handed_on = "mod inner; pub use inner::read; pub enum Kind {}";
        assert!(check(&[("lib.rs", "mod a;"), ("a.rs", handed_on), inside]).is_empty());
        let taken = "mod inner; pub enum Kind {} fn go(kind: Kind) { inner::read(kind) }";
        assert_eq!(check(&[("lib.rs", "mod a;"), ("a.rs", taken), inside]).len(), 1);
    }

    #[test]
    fn names_are_followed_to_where_they_are_defined() {
        let found = check(&[
            ("lib.rs", "mod a; mod b; mod model; pub use model::Plan;"),
            // By a name of the root, an alias, a list, and all at once.
            ("model.rs", "pub struct Plan; use crate::b::MAX;"),
            ("a.rs", "use crate::{Plan as It, b::*};"),
            ("b/mod.rs", "use crate::Plan; pub const MAX: Option<Plan> = None;"),
        ]);
        assert_eq!(
            found,
            [
                "host/x/src/b/mod.rs: one of 2 files that import each other: host/x/src/b/mod.rs takes Plan from \
              host/x/src/model.rs; host/x/src/model.rs takes MAX from host/x/src/b/mod.rs"
            ]
        );
    }

    #[test]
    fn a_path_from_the_root_of_all_crates_is_no_module_of_the_same_name() {
        let found = check(&[
            ("lib.rs", "mod a; pub fn go(_: ::a::B) {}"),
            ("a.rs", "use crate::go; pub struct B;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn what_only_tests_import_ties_nothing() {
        let found = check(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A; pub struct B(A); // crate::a"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn what_is_left_may_shrink_only() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::a::A; pub struct B;"),
        ];
        assert_eq!(check_with(&files, 1).len(), 1);
        assert_eq!(check_with(&files, 2), Vec::<String>::new());
        assert_eq!(check_with(&files, 3), ["host/x: 2 files in circles; LEFT says 3"]);
    }

    #[test]
    fn a_file_that_is_missing_or_no_rust_is_told_of() {
        assert_eq!(
            check(&[("lib.rs", "mod a;")]),
            ["host/x/src/lib.rs: there is no file of its module a"]
        );
        assert_eq!(check(&[("lib.rs", "fn a( {")]).len(), 1);
    }
}
