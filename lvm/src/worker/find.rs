//! Where the worker's binary is.

use std::path::{Path, PathBuf};

use crate::{Error, Kind};

/// Name of the binary.
pub const NAME: &str = "gabion-lvm-worker";
/// The environment variable that names the binary's path.
pub const VARIABLE: &str = "GABION_LVM_WORKER";
/// Where packages put a program's own helpers.
const LIBEXEC: [&str; 2] = ["/usr/libexec/gabion", "/usr/local/libexec/gabion"];

/// Finds the worker's binary: the path given, else `GABION_LVM_WORKER`, else beside this program, else in the
/// libexec directories.
///
/// A path that is given or set is taken as it is; that nothing is there is told when it is started.
///
/// # Errors
///
/// [`Kind::NotFound`] where no path is given and none of the usual places has it.
pub fn find(given: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let places = beside.into_iter().chain(LIBEXEC.iter().map(PathBuf::from));
    let candidates: Vec<PathBuf> = places.map(|place| place.join(NAME)).collect();
    candidates.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let list: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
        Error::new(Kind::NotFound, format!("find the program {NAME}"))
            .with_answer(format!("it is not at {}", list.join(", ")))
            .with_advice(format!("install it there, or name it in the environment variable {VARIABLE}"))
    })
}
