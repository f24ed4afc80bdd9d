//! The places where NVIDIA's libraries are installed: the library path, a toolkit, Python wheels.

use std::{
    collections::HashSet,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use libloading::Library;

/// A library that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Names a library file, or a folder that contains one. If set, only that is used, because a different
    /// version than the requested one would be a surprise.
    pub(super) variable: &'static str,
    /// Names under which the library is installed, newest first.
    pub(super) names: &'static [&'static str],
    /// Folders of its wheels, below `site-packages`.
    pub(super) wheels: &'static [&'static str],
    /// The remedy if there is none.
    pub(super) remedy: &'static str,
}

/// A library that was loaded.
#[derive(Debug)]
pub(super) struct Loaded<'a> {
    pub(super) library: Library,
    /// The library that had to be loaded before it.
    pub(super) first: Option<Library>,
    pub(super) path: &'a Path,
}

/// Returns the reason why a library of CUDA `major` cannot be used, if there is one: the driver runs code of
/// its own major version and older.
pub(super) fn too_new(major: u32, driver: Option<u32>) -> Option<String> {
    let driver = driver.filter(|driver| major > *driver)?;
    Some(format!("it is of CUDA {major}, and the driver of CUDA {driver}"))
}

/// The variables of this process.
pub(super) fn environment(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the places to search, in order: bare names for the loader to find, and files by path.
pub(super) fn places(wanted: &Wanted, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let inside = |folder: &Path| wanted.names.iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    if let Some(named) = variable(wanted.variable).map(PathBuf::from) {
        return if named.is_dir() { inside(&named) } else { vec![named] };
    }
    let mut out: Vec<PathBuf> = wanted.names.iter().map(PathBuf::from).collect();
    for home in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = variable(home) {
            out.extend(inside(&Path::new(&home).join("lib64")));
        }
    }
    out.extend(inside(Path::new("/usr/local/cuda/lib64")));
    for packages in site_packages(variable) {
        for wheel in wanted.wheels {
            out.extend(inside(&packages.join(wheel)));
        }
    }
    let mut known = HashSet::new();
    out.retain(|place| known.insert(place.clone()));
    out
}

/// Folders of Python's packages: of the active environment, of the interpreters on `PATH`, of the user.
fn site_packages(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).map(PathBuf::from).collect();
    let path = variable("PATH").unwrap_or_default();
    // A relative path would depend on where the process was started.
    for folder in env::split_paths(&path).filter(|folder| folder.is_absolute()) {
        for name in ["python3", "python", "python.exe"] {
            let python = folder.join(name);
            if !python.is_file() {
                continue;
            }
            // By the path as it was called: in an environment that is a link, whose target does not know the
            // environment. Then by the target.
            roots.extend(folder.parent().map(Path::to_owned));
            let target = fs::canonicalize(&python).ok();
            roots.extend(target.and_then(|file| Some(file.parent()?.parent()?.to_owned())));
        }
    }
    // Debian's pip installs for all users there.
    if roots.iter().any(|root| root == Path::new("/usr")) {
        roots.push("/usr/local".into());
    }
    roots.extend(variable("HOME").map(|home| Path::new(&home).join(".local")));
    let mut known = HashSet::new();
    roots.retain(|root| known.insert(root.clone()));
    roots.iter().flat_map(|root| packages_of(root)).collect()
}

/// The package folders of one installation, the newest Python first.
fn packages_of(root: &Path) -> Vec<PathBuf> {
    // On Windows there is no folder for the version.
    let mut out = vec![root.join("Lib").join("site-packages")];
    let Ok(entries) = fs::read_dir(root.join("lib")) else { return out };
    let minor = |path: &PathBuf| -> Option<u32> {
        let name = path.file_name()?.to_str()?.strip_prefix("python3")?;
        if name.is_empty() { Some(0) } else { name.strip_prefix('.')?.parse().ok() }
    };
    let mut pythons: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter_map(|p| Some((minor(&p)?, p))).collect();
    pythons.sort_by(|a, b| b.cmp(a));
    for (_, python) in pythons {
        out.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
    }
    out
}

/// Loads the first library of `places` that `open` accepts; `first` names a library that must be loaded
/// before one that is opened by path.
///
/// # Errors
/// Returns the places that were tried, the reasons why libraries that were found cannot be used, and the
/// remedy.
pub(super) fn load<T>(
    wanted: &Wanted,
    places: &[PathBuf],
    first: impl Fn(&Path) -> Option<PathBuf>,
    open: impl Fn(Loaded<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let mut failed = Vec::new();
    for place in places {
        let is_path = place.components().count() > 1;
        if is_path && !place.exists() {
            continue;
        }
        let first = place.parent().filter(|_| is_path).and_then(&first).and_then(|path| {
            // SAFETY: a library of NVIDIA's that holds data for the other one.
            unsafe { Library::new(path) }.ok()
        });
        // SAFETY: loading a library of NVIDIA's runs its initialisers, which are made for being loaded so.
        match unsafe { Library::new(place) } {
            Ok(library) => match open(Loaded { library, first, path: place }) {
                Ok(opened) => return Ok(opened),
                Err(reason) => failed.push(format!("{} ({reason})", place.display())),
            },
            Err(reason) if is_path => failed.push(format!("{} ({reason})", place.display())),
            Err(_) => {}
        }
    }
    Err(format!("none of {} could be loaded{}; {}", tried(places), list(&failed), wanted.remedy))
}

fn list(failed: &[String]) -> String {
    if failed.is_empty() {
        String::new()
    } else {
        format!("; these were found and are of no use: {}", failed.join(", "))
    }
}

/// Bare names and single files, then the folders with several names to try in each.
fn tried(places: &[PathBuf]) -> String {
    let folders: Vec<&Path> = places.iter().filter_map(|place| place.parent()).collect();
    let several = |folder: &Path| folders.iter().filter(|other| **other == folder).count() > 1;
    let (mut names, mut inside): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for place in places {
        let folder = place.parent().unwrap_or(Path::new(""));
        if folder.as_os_str().is_empty() || !several(folder) {
            names.push(place.display().to_string());
        } else if !inside.contains(&folder.display().to_string()) {
            inside.push(folder.display().to_string());
        }
    }
    match (names.is_empty(), inside.is_empty()) {
        (_, true) => names.join(", "),
        (true, false) => format!("the libraries in {}", inside.join(", ")),
        (false, false) => format!("{}, by name or in {}", names.join(", "), inside.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted {
        variable: "GRAPHABLE_A_TEST",
        names: &["liba.so.13", "liba.so.12"],
        wheels: &["nvidia/cu13/lib", "nvidia/a/lib"],
        remedy: "install it",
    };

    /// A separate folder, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("graphable-search-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn with(&self, path: &str) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, b"not a library").unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn only(name: &'static str, value: &Path) -> impl Fn(&str) -> Option<OsString> + use<> {
        let value = value.to_owned();
        move |asked| (asked == name).then(|| value.clone().into_os_string())
    }

    #[test]
    fn wheels_are_found_in_each_kind_of_environment() {
        let folder = Folder::new("wheels");
        let lib = folder.0.join("lib/python3.12/site-packages/nvidia/cu13/lib/liba.so.13");
        folder.with("lib/python3.12/site-packages/nvidia/cu13/lib/liba.so.13");
        folder.with("bin/python3");
        let debian = folder.with("lib/python3/dist-packages/nvidia/a/lib/liba.so.12");
        for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            assert!(places(&WANTED, &only(variable, &folder.0)).contains(&lib), "{variable}");
        }
        let found = places(&WANTED, &only("PATH", &folder.0.join("bin")));
        assert!(found.contains(&lib) && found.contains(&debian), "{found:?}");
        let none = places(&WANTED, &only("PATH", &folder.0.join("lib")));
        assert!(!none.contains(&lib), "there is no Python");
        // `pip install --user`
        let user = folder.with(".local/lib/python3.9/site-packages/nvidia/a/lib/liba.so.12");
        assert!(places(&WANTED, &only("HOME", &folder.0)).contains(&user));
    }

    #[test]
    #[cfg(unix)]
    fn an_environment_of_links_counts_before_what_they_lead_to() {
        let folder = Folder::new("links");
        folder.with("system/bin/python3.11");
        folder.with("env/bin/other");
        std::os::unix::fs::symlink(folder.0.join("system/bin/python3.11"), folder.0.join("env/bin/python3"))
            .unwrap();
        let environment = folder.with("env/lib/python3.11/site-packages/nvidia/a/lib/liba.so.13");
        let system = folder.with("system/lib/python3.11/site-packages/nvidia/a/lib/liba.so.13");
        let found = places(&WANTED, &only("PATH", &folder.0.join("env/bin")));
        let at = |path: &PathBuf| found.iter().position(|place| place == path).unwrap();
        assert!(at(&environment) < at(&fs::canonicalize(system).unwrap()));
    }

    #[test]
    fn newer_pythons_come_first_and_what_is_named_comes_alone() {
        let folder = Folder::new("versions");
        let old = folder.with("lib/python3.9/site-packages/nvidia/a/lib/liba.so.13");
        let new = folder.with("lib/python3.13/site-packages/nvidia/a/lib/liba.so.13");
        let found = places(&WANTED, &only("VIRTUAL_ENV", &folder.0));
        let at = |path: &PathBuf| found.iter().position(|place| place == path).unwrap();
        assert!(at(&new) < at(&old));
        assert_eq!(found[0], Path::new("liba.so.13"), "the loader is asked first");
        let named = places(&WANTED, &only("GRAPHABLE_A_TEST", &folder.0));
        assert_eq!(named, [folder.0.join("liba.so.13"), folder.0.join("liba.so.12")]);
        let file = places(&WANTED, &only("GRAPHABLE_A_TEST", Path::new("/no/such/file")));
        assert_eq!(file, [Path::new("/no/such/file")]);
    }

    #[test]
    fn libraries_newer_than_the_driver_are_of_no_use() {
        assert_eq!((too_new(12, Some(12)), too_new(13, None), too_new(12, Some(13))), (None, None, None));
        assert_eq!(too_new(13, Some(12)).unwrap(), "it is of CUDA 13, and the driver of CUDA 12");
    }

    #[test]
    fn relative_folders_of_the_path_are_not_looked_at() {
        let found = places(&WANTED, &only("PATH", Path::new("bin:.:")));
        assert!(
            found.iter().all(|place| place.components().count() == 1 || place.is_absolute()),
            "{found:?}"
        );
    }

    #[test]
    fn what_was_tried_is_said_with_the_remedy() {
        let folder = Folder::new("said");
        folder.with("lib/python3.9/site-packages/nvidia/a/lib/liba.so.13");
        let places = places(&WANTED, &only("VIRTUAL_ENV", &folder.0));
        let reason = load(&WANTED, &places, |_| None, |_| Ok(())).unwrap_err();
        assert!(reason.starts_with("none of liba.so.13, liba.so.12, by name or in "), "{reason}");
        assert!(reason.contains("/usr/local/cuda/lib64") && reason.ends_with("; install it"), "{reason}");
        assert!(
            reason.contains("are of no use: ")
                && reason.contains("python3.9/site-packages/nvidia/a/lib/liba.so.13 (")
        );
    }
}
