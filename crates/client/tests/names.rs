//! Every name of the column Rust in docs/packages.md exists in this package, and is public. Reads the sources; knows
//! nothing of what the names do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syn::{ImplItem, Item, TraitItem, Type, UseTree, Visibility};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/packages.md");
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// What the sources define.
#[derive(Default)]
struct Names {
    /// What `lib.rs` exports.
    exported: BTreeSet<String>,
    /// The public fields of each type, and its methods: its own public ones, and those of traits that it implements.
    methods: BTreeMap<String, BTreeSet<String>>,
}

impl Names {
    fn of_sources() -> Names {
        let mut names = Names::default();
        for entry in fs::read_dir(SOURCES).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
            let is_root = path.ends_with("lib.rs");
            file.items.iter().for_each(|item| names.note(item, is_root));
        }
        names
    }

    fn note(&mut self, item: &Item, is_root: bool) {
        match item {
            Item::Use(item) if is_root && matches!(item.vis, Visibility::Public(_)) => self.note_use(&item.tree),
            Item::Trait(item) => {
                let methods = self.methods.entry(item.ident.to_string()).or_default();
                for item in &item.items {
                    if let TraitItem::Fn(method) = item {
                        methods.insert(method.sig.ident.to_string());
                    }
                }
            }
            Item::Struct(item) => {
                let public = item.fields.iter().filter(|field| matches!(field.vis, Visibility::Public(_)));
                let fields = public.filter_map(|field| Some(field.ident.as_ref()?.to_string()));
                self.methods.entry(item.ident.to_string()).or_default().extend(fields);
            }
            Item::Impl(item) => {
                let Type::Path(of) = &*item.self_ty else { return };
                let Some(of) = of.path.segments.last() else { return };
                let methods = self.methods.entry(of.ident.to_string()).or_default();
                for method in &item.items {
                    if let ImplItem::Fn(method) = method
                        && (item.trait_.is_some() || matches!(method.vis, Visibility::Public(_)))
                    {
                        methods.insert(method.sig.ident.to_string());
                    }
                }
            }
            _ => {}
        }
    }

    fn note_use(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.note_use(&path.tree),
            UseTree::Name(name) => _ = self.exported.insert(name.ident.to_string()),
            UseTree::Rename(name) => _ = self.exported.insert(name.rename.to_string()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_use(tree)),
            UseTree::Glob(_) => panic!("lib.rs names what it exports"),
        }
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once("::") {
            None => self.exported.contains(name),
            Some((of, method)) => {
                self.exported.contains(of) && self.methods.get(of).is_some_and(|methods| methods.contains(method))
            }
        }
    }
}

/// The names in the column `Rust`, in order.
fn column_rust(table: &str) -> Vec<String> {
    let rows = table.lines().filter(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim));
    let mut rows = rows.map(Iterator::collect::<Vec<_>>);
    let header = rows.find(|row| row.contains(&"Rust")).expect("the table has a column Rust");
    let column = header.iter().position(|cell| *cell == "Rust").expect("it was found");
    let cells = rows.filter_map(|row| row.get(column).copied());
    cells.filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`')).map(str::to_owned).collect()
}

#[test]
fn every_name_of_the_table_exists() {
    let (table, names) = (fs::read_to_string(TABLE).unwrap(), Names::of_sources());
    let column = column_rust(&table);
    assert!(column.len() > 100, "the table was not read whole: {column:?}");
    let missing: Vec<_> = column.iter().filter(|name| !names.has(name)).collect();
    assert!(missing.is_empty(), "docs/packages.md names what this package does not have: {missing:?}");
}

#[test]
fn a_missing_name_is_found() {
    let names = Names::of_sources();
    for name in ["Store::get", "Exchange::ttl", "Store::cell", "StateBackend", "StateBackend::seal", "Session::call"] {
        assert!(names.has(name), "{name}");
    }
    for name in [
        "Store::call_again",
        "Queue::store",
        "Session::call_again",
        "Named",
        "Store::needs",
        "Cell::nothing",
        "Nothing",
    ] {
        assert!(!names.has(name), "{name}");
    }
    assert_eq!(column_rust("| Operation | Rust | Python |\n| --- | --- | --- |\n| a | `A::b` | `c` |\n"), ["A::b"]);
}
