//! Health as callers get it.

use volumes::{ClassHealth, HealthIssue, Severity};

use crate::proto::node_get_storage_health_response::StorageBackendHealth;
use crate::proto::volume_health::VolumeHealthEntry;
use crate::proto::{StorageHealthErrorType, VolumeHealth, VolumeHealthErrorType};
use crate::status::one_line;

/// What is wrong with a volume.
pub(crate) fn of_volume(health: &volumes::VolumeHealth) -> VolumeHealth {
    let entry = |issue: &HealthIssue| VolumeHealthEntry {
        status: of_severity(issue.severity).into(),
        reason: issue.reason.to_owned(),
        message: one_line(&issue.message),
    };
    VolumeHealth {
        volume_id: health.id.to_string(),
        health_statuses: health.issues.iter().map(entry).collect(),
    }
}

fn of_severity(severity: Severity) -> VolumeHealthErrorType {
    match severity {
        Severity::Inaccessible => VolumeHealthErrorType::Inaccessible,
        Severity::DataLoss => VolumeHealthErrorType::DataLoss,
        // `Degraded`, and what a later version of the library adds.
        _ => VolumeHealthErrorType::Degraded,
    }
}

/// What is wrong with classes: one entry for each kind of trouble, with all the classes that have it, since no two entries
/// may be alike.
pub(crate) fn of_classes(ill: &[ClassHealth]) -> Vec<StorageBackendHealth> {
    let mut told: Vec<StorageBackendHealth> = Vec::new();
    for (class, issue) in ill.iter().flat_map(|ill| ill.issues.iter().map(|issue| (&ill.class, issue))) {
        let status: i32 = match issue.severity {
            Severity::Degraded => StorageHealthErrorType::StorageDegraded,
            _ => StorageHealthErrorType::StorageUnreachable,
        }
        .into();
        let message = one_line(&format!("class {class}: {}", issue.message));
        match told.iter_mut().find(|entry| entry.status == status && entry.reason == issue.reason) {
            Some(entry) => entry.message = one_line(&format!("{}; {message}", entry.message)),
            None => told.push(StorageBackendHealth {
                status,
                reason: issue.reason.to_owned(),
                message,
                volume_capability: None,
            }),
        }
    }
    told
}
