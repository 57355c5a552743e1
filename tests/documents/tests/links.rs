//! Every relative link of every document leads to a file, and to a heading in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use documents::fences::root;

/// A link of a document.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    line: usize,
    /// Empty for a heading of the same document.
    path: &'a str,
    heading: Option<&'a str>,
}

#[test]
fn relative_links_lead_somewhere() {
    let (mut found, mut broken) = (0, Vec::new());
    for document in documents_in(&root()) {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            found += 1;
            let path =
                if link.path.is_empty() { document.clone() } else { document.with_file_name("").join(link.path) };
            let is_there = match link.heading {
                None => path.exists(),
                Some(heading) => {
                    fs::read_to_string(&path).is_ok_and(|text| anchors(&text).iter().any(|a| a == heading))
                }
            };
            if !is_there {
                broken.push(format!(
                    "{}:{}: {}#{}",
                    document.display(),
                    link.line,
                    link.path,
                    link.heading.unwrap_or("")
                ));
            }
        }
    }
    assert!(found > 100, "only {found} links were found");
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
}

/// Every `.md` of the repository, without what is built or installed.
fn documents_in(folder: &Path) -> Vec<PathBuf> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules", "dist"].contains(&name) {
            documents.extend(documents_in(&path));
        } else if name.ends_with(".md") && path.is_file() {
            documents.push(path);
        }
    }
    documents
}

/// The relative links of a document: `[text](path#heading)` and `src="path"`.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        for (opens, closes) in [("](", ')'), ("src=\"", '"')] {
            for rest in line.split(opens).skip(1) {
                let Some((target, _)) = rest.split_once(closes) else { continue };
                if target.contains("://") || target.contains(' ') {
                    continue;
                }
                let (path, heading) =
                    target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
                links.push(Link { line: number, path, heading });
            }
        }
    }
    links
}

/// The anchors of a document's headings, made as Git hosts make them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || ['-', '_', ' '].contains(c));
            let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let before = seen.entry(anchor.clone()).or_default();
            *before += 1;
            if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
        })
        .collect()
}

/// The lines outside of fenced blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence).then_some((at + 1, line))
    })
}

#[test]
fn links_and_headings_are_found() {
    let text = "# A `b`: c, d\n[x](y.md#z) ![i](i.svg)\n```\n[no](no.md)\n# no\n```\n<img src=\"p.png\"> [h](https://h) [t](#a-b-c-d)\n## A b\n## A b\n";
    let link = |line, path, heading| Link { line, path, heading };
    let expected =
        [link(2, "y.md", Some("z")), link(2, "i.svg", None), link(7, "", Some("a-b-c-d")), link(7, "p.png", None)];
    assert_eq!(links(text), expected);
    assert_eq!(anchors(text), ["a-b-c-d", "a-b", "a-b-1"]);
}
