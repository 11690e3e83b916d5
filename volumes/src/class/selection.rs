//! Whether a class is for a node.

use std::collections::BTreeMap;

use super::{NodeOperator, NodeRequirement, NodeSelector, NodeSelectorTerm};
use crate::Error;

/// The one field of a node that can be asked for.
const NAME_FIELD: &str = "metadata.name";
/// The label that every node of a cluster has.
const HOST_LABEL: &str = "kubernetes.io/hostname";

/// What a node is called, and what is said of it.
///
/// ```
/// use volumes::class::NodeLabels;
///
/// let node = NodeLabels::new("one").with("zone", "a");
/// assert_eq!(node.labels()["kubernetes.io/hostname"], "one");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLabels {
    name: String,
    labels: BTreeMap<String, String>,
}

impl NodeLabels {
    /// A node of that name, with the label `kubernetes.io/hostname`, which can be given otherwise.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { labels: BTreeMap::from([(HOST_LABEL.to_owned(), name.clone())]), name }
    }

    /// With this label.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Its labels.
    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

impl NodeSelector {
    /// Whether a node is selected: by any of the terms, and always where there is none. As in Kubernetes a term that
    /// requires nothing selects nothing.
    #[must_use]
    pub fn selects(&self, node: &NodeLabels) -> bool {
        self.node_selector_terms.is_empty() || self.node_selector_terms.iter().any(|term| term.selects(node))
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        for (at, term) in self.node_selector_terms.iter().enumerate() {
            let field =
                |list: &str, nth: usize| format!("spec.nodeSelector.nodeSelectorTerms[{at}].{list}[{nth}]");
            for (nth, requirement) in term.match_expressions.iter().enumerate() {
                requirement.check().map_err(|why| Error::invalid(field("matchExpressions", nth), why))?;
            }
            for (nth, requirement) in term.match_fields.iter().enumerate() {
                requirement.check_field().map_err(|why| Error::invalid(field("matchFields", nth), why))?;
            }
        }
        Ok(())
    }
}

impl NodeSelectorTerm {
    fn selects(&self, node: &NodeLabels) -> bool {
        let Self { match_expressions, match_fields } = self;
        let is_empty = match_expressions.is_empty() && match_fields.is_empty();
        let label = |requirement: &NodeRequirement| {
            requirement.holds(node.labels.get(&requirement.key).map(String::as_str))
        };
        !is_empty
            && match_expressions.iter().all(label)
            && match_fields.iter().all(|requirement| requirement.holds(Some(&node.name)))
    }
}

impl NodeRequirement {
    /// Whether it holds for a value, or for none.
    fn holds(&self, has: Option<&str>) -> bool {
        let is_one = || has.is_some_and(|has| self.values.iter().any(|value| value == has));
        let numbers = || {
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
            number(has).zip(number(self.values.first().map(String::as_str)))
        };
        match self.operator {
            NodeOperator::In => is_one(),
            NodeOperator::NotIn => !is_one(),
            NodeOperator::Exists => has.is_some(),
            NodeOperator::DoesNotExist => has.is_none(),
            NodeOperator::Gt => numbers().is_some_and(|(has, than)| has > than),
            NodeOperator::Lt => numbers().is_some_and(|(has, than)| has < than),
        }
    }

    fn check(&self) -> Result<(), String> {
        let Self { key, operator, values } = self;
        let is_right = match operator {
            _ if key.is_empty() => return Err("it has no key".to_owned()),
            NodeOperator::In | NodeOperator::NotIn => !values.is_empty(),
            NodeOperator::Exists | NodeOperator::DoesNotExist => values.is_empty(),
            NodeOperator::Gt | NodeOperator::Lt => values.len() == 1 && values[0].parse::<i64>().is_ok(),
        };
        let wanted = match operator {
            NodeOperator::In | NodeOperator::NotIn => "at least one value",
            NodeOperator::Exists | NodeOperator::DoesNotExist => "no values",
            NodeOperator::Gt | NodeOperator::Lt => "one whole number",
        };
        if is_right { Ok(()) } else { Err(format!("{operator:?} takes {wanted}")) }
    }

    fn check_field(&self) -> Result<(), String> {
        self.check()?;
        match (self.key.as_str(), self.operator) {
            (NAME_FIELD, NodeOperator::In | NodeOperator::NotIn) => Ok(()),
            (NAME_FIELD, _) => Err("of a name only In and NotIn can be asked".to_owned()),
            (key, _) => Err(format!("there is no field {key:?}; there is {NAME_FIELD}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(terms: &str) -> NodeSelector {
        serde_saphyr::from_str(&format!("nodeSelectorTerms: {terms}")).unwrap()
    }

    #[test]
    fn nodes_are_selected_as_in_kubernetes() {
        let node = NodeLabels::new("one").with("zone", "a").with("disks", "4");
        for (terms, selected) in [
            ("[]", true),
            ("[{}]", false),
            ("[{matchExpressions: [{key: zone, operator: In, values: [b, a]}]}]", true),
            ("[{matchExpressions: [{key: zone, operator: In, values: [b]}]}]", false),
            ("[{matchExpressions: [{key: zone, operator: NotIn, values: [b]}]}]", true),
            ("[{matchExpressions: [{key: none, operator: NotIn, values: [b]}]}]", true),
            ("[{matchExpressions: [{key: zone, operator: Exists}, {key: x, operator: DoesNotExist}]}]", true),
            ("[{matchExpressions: [{key: zone, operator: DoesNotExist}]}]", false),
            ("[{matchExpressions: [{key: disks, operator: Gt, values: ['3']}]}]", true),
            ("[{matchExpressions: [{key: disks, operator: Lt, values: ['4']}]}]", false),
            ("[{matchExpressions: [{key: zone, operator: Gt, values: ['3']}]}]", false),
            ("[{matchFields: [{key: metadata.name, operator: In, values: [one]}]}]", true),
            ("[{matchFields: [{key: metadata.name, operator: NotIn, values: [one]}]}]", false),
            (
                "[{matchExpressions: [{key: zone, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [two]}]}]",
                false,
            ),
            (
                "[{matchExpressions: [{key: x, operator: Exists}]}, {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [one]}]}]",
                true,
            ),
        ] {
            let selector = selector(terms);
            selector.check().unwrap();
            assert_eq!(selector.selects(&node), selected, "{terms}");
        }
    }

    #[test]
    fn requirements_that_cannot_be_meant_are_refused_by_their_place() {
        for (terms, place) in [
            ("[{matchExpressions: [{key: zone, operator: In}]}]", "Terms[0].matchExpressions[0]"),
            (
                "[{}, {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: Exists, values: [b]}]}]",
                "Terms[1].matchExpressions[1]",
            ),
            ("[{matchExpressions: [{key: a, operator: Gt, values: [b]}]}]", "one whole number"),
            ("[{matchExpressions: [{key: '', operator: Exists}]}]", "no key"),
            ("[{matchFields: [{key: spec.x, operator: In, values: [b]}]}]", "matchFields[0]"),
            ("[{matchFields: [{key: metadata.name, operator: Exists}]}]", "only In and NotIn"),
        ] {
            let text = selector(terms).check().unwrap_err().to_string();
            assert!(text.contains(place), "{text}");
        }
    }
}
