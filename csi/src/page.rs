//! Pages of a list that may change between them.
//!
//! A token names the last entry of the page before. So an entry that was there all the time is listed exactly once,
//! whatever was made or removed meanwhile, and the driver keeps nothing.

use tonic::{Code, Status};

use crate::status::{shown, status};

/// What each token begins with.
const MARK: &str = "after:";

/// The entries after a token, which are sorted by id, and the token for those that are left.
///
/// # Errors
///
/// `ABORTED` for a token that no page had: the caller begins anew.
pub(crate) fn page<T>(
    mut entries: Vec<T>,
    id: impl Fn(&T) -> &str,
    token: &str,
    most: Option<usize>,
) -> Result<(Vec<T>, String), Status> {
    if !token.is_empty() {
        let after = read(token)?;
        entries.retain(|entry| id(entry) > after);
    }
    let next = match most {
        Some(most) if most < entries.len() => {
            entries.truncate(most);
            entries.last().map(|last| format!("{MARK}{}", id(last))).unwrap_or_default()
        }
        _ => String::new(),
    };
    Ok((entries, next))
}

fn read(token: &str) -> Result<&str, Status> {
    let is_id = |id: &&str| id.parse::<volumes::VolumeId>().is_ok();
    token.strip_prefix(MARK).filter(is_id).ok_or_else(|| {
        status(
            Code::Aborted,
            &format!("starting_token: {} is no token of this list; begin anew", shown(token)),
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    fn ids(entries: &[String], token: &str, most: Option<usize>) -> Result<(Vec<String>, String), Status> {
        page(entries.to_vec(), |entry| entry, token, most)
    }

    #[test]
    fn a_token_of_somebody_else_is_aborted() {
        for bad in ["invalid-token", "after:", "after:../../x", "after:A", "\n", "1", &"x".repeat(1 << 20)] {
            assert_eq!(ids(&[], bad, None).unwrap_err().code(), Code::Aborted, "{bad:.20}");
        }
    }

    proptest! {
        #[test]
        fn pages_together_are_the_list(names in btree_set("[a-z]{1,3}", 0..30), most in 1_usize..10) {
            let all: Vec<String> = names.into_iter().collect();
            let (mut seen, mut token) = (Vec::new(), String::new());
            loop {
                let (part, next) = ids(&all, &token, Some(most)).unwrap();
                prop_assert!(part.len() <= most);
                prop_assert!(next.is_empty() || part.len() == most);
                seen.extend(part);
                if next.is_empty() {
                    break;
                }
                token = next;
            }
            prop_assert_eq!(seen, all);
        }

        #[test]
        fn what_stays_is_listed_once_whatever_goes(names in btree_set("[a-z]{1,3}", 2..30), gone: prop::sample::Index) {
            let all: Vec<String> = names.into_iter().collect();
            let (first, token) = ids(&all, "", Some(1 + all.len() / 2)).unwrap();
            let gone = gone.index(all.len());
            let left: Vec<String> = all.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, id)| id.clone()).collect();
            let rest = if token.is_empty() { Vec::new() } else { ids(&left, &token, None).unwrap().0 };
            for id in &left {
                prop_assert_eq!(first.iter().chain(&rest).filter(|seen| *seen == id).count(), 1);
            }
        }
    }
}
