//! Parameters of storage classes and attributes of inline volumes.

use std::collections::BTreeMap;

use tonic::Status;
use volumes::{ClassName, FsType, Limited, Limits};

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
    pub(crate) limits: Limits,
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
            _ => match Limited::of_word(key) {
                Some(limited) => read.limits = limit(field, read.limits, limited, value)?,
                None => not_ours(field, key)?,
            },
        }
    }
    Ok(read)
}

/// Reads the parameters that may change while a volume lives: limits of reading and writing.
pub(crate) fn mutable_parameters(field: &str, given: &BTreeMap<String, String>) -> Result<Limits, Status> {
    map(field, given)?;
    given.iter().try_fold(Limits::NONE, |limits, (key, value)| match Limited::of_word(key) {
        Some(limited) => limit(field, limits, limited, value),
        None => not_ours(field, key).map(|()| limits),
    })
}

fn limit(field: &str, limits: Limits, limited: Limited, value: &str) -> Result<Limits, Status> {
    let refuse = |_| {
        let example = "write a whole number from 1 up, a quantity such as 10Mi, or max";
        invalid(&of(field, limited.as_word()), format!("{} is no limit; {example}", shown(value)))
    };
    limits.with(limited, value).map_err(refuse)
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
    fn limits_are_read_as_numbers_and_quantities() {
        let given = BTreeMap::from(
            [("readIops", "100"), ("writeBps", "1Mi"), ("writeIops", "max")]
                .map(|(k, v)| (k.into(), v.into())),
        );
        let said = "readIops=100 writeIops=max writeBps=1048576";
        assert_eq!(mutable_parameters("m", &given).unwrap().to_string(), said);
        assert_eq!(volume_parameters("p", &given).unwrap().limits.to_string(), said);
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
            ("readIops", ""),
            ("readIops", "0"),
            ("writeIops", "4294967296"),
            ("readBps", "-1"),
            ("writeBps", "10 Mi"),
            ("writebps", "1"),
        ] {
            let refusal = read(&[bad]).unwrap_err();
            assert_eq!(refusal.code(), tonic::Code::InvalidArgument);
            assert!(refusal.message().starts_with("parameters"), "{}", refusal.message());
        }
        assert!(read(&[(DEVICE_CLASS, &"x".repeat(1 << 20))]).is_err());
        assert!(
            mutable_parameters("m", &BTreeMap::from([(DEVICE_CLASS.to_owned(), "fast".to_owned())])).is_err()
        );
        let fake = BTreeMap::from([("XXX_FakeKey".to_owned(), String::new())]);
        assert!(without_parameters("mutable_parameters", &fake).is_err());
    }
}
