//! Parameters of storage classes and attributes of inline volumes.

use std::collections::BTreeMap;

use tonic::Status;
use volumes::{ClassName, FsType};

use super::capability::fs_type;
use super::map;
use crate::names::{DEVICE_CLASS, FS_TYPE, OF_KUBERNETES};
use crate::status::{invalid, shown};

/// What the parameters of a volume say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// The class; the default one where it is not named.
    pub(crate) class: Option<ClassName>,
    pub(crate) fs_type: Option<FsType>,
}

/// Reads the parameters of a volume. One that is not known is an error: a misspelt one would be left out silently.
pub(crate) fn volume_parameters(field: &str, given: &BTreeMap<String, String>) -> Result<Parameters, Status> {
    map(field, given)?;
    let mut read = Parameters::default();
    for (key, value) in given {
        match key.as_str() {
            DEVICE_CLASS => {
                let class = value.parse().map_err(|_| {
                    invalid(&of(field, key), format!("{} cannot be the name of a class", shown(value)))
                })?;
                read.class = Some(class);
            }
            FS_TYPE => read.fs_type = fs_type(&of(field, key), value)?,
            _ => not_ours(field, key)?,
        }
    }
    Ok(read)
}

/// Parameters where there are none of ours.
pub(crate) fn without_parameters(field: &str, given: &BTreeMap<String, String>) -> Result<(), Status> {
    map(field, given)?;
    given.keys().try_for_each(|key| not_ours(field, key))
}

/// Takes a key that is for others.
fn not_ours(field: &str, key: &str) -> Result<(), Status> {
    if OF_KUBERNETES.iter().any(|prefix| key.starts_with(prefix)) {
        return Ok(());
    }
    Err(invalid(field, format!("there is no parameter {}", shown(key))))
}

fn of(field: &str, key: &str) -> String {
    format!("{field}[{key}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Parameters, Status> {
        let given = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        volume_parameters("parameters", &given)
    }

    #[test]
    fn known_parameters_are_read_and_those_of_kubernetes_passed_over() {
        let given = [(DEVICE_CLASS, "fast"), (FS_TYPE, "xfs"), ("csi.storage.k8s.io/pvc/name", "../x")];
        let read = read(&given).unwrap();
        assert_eq!((read.class.unwrap().as_str(), read.fs_type), ("fast", Some(FsType::Xfs)));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for bad in [
            (DEVICE_CLASS, "../../x"),
            (DEVICE_CLASS, ""),
            (DEVICE_CLASS, "a\nb"),
            (FS_TYPE, "ntfs"),
            ("gabion.dev/device-clas", "fast"),
            ("XXX_FakeKey", "1"),
            ("", ""),
        ] {
            let refusal = read(&[bad]).unwrap_err();
            assert_eq!(refusal.code(), tonic::Code::InvalidArgument);
            assert!(refusal.message().starts_with("parameters"), "{}", refusal.message());
        }
        assert!(read(&[(DEVICE_CLASS, &"x".repeat(1 << 20))]).is_err());
        let fake = BTreeMap::from([("XXX_FakeKey".to_owned(), String::new())]);
        assert!(without_parameters("mutable_parameters", &fake).is_err());
    }
}
