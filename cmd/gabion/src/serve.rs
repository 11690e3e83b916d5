//! `gabion node`: the CSI driver of this host.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use csi::{Driver, Place, Socket};
use volumes::class::{DeviceClass, NodeLabels};
use volumes::keeper::Keeper;
use volumes::{Node, Settings};

use crate::classes::owner_of_this_host;
use crate::cli::{ControllerMode, NodeArguments};
use crate::follow;

/// How long what goes on beside the calls may take when the process is told to end.
const KEEPER_PATIENCE: Duration = Duration::from_secs(3);

/// Serves until the process is told to end.
pub(crate) fn run(arguments: &NodeArguments) -> Result<()> {
    let ControllerMode::Local = arguments.controller;
    let classes = classes(&arguments.config)?;
    let place = match &arguments.node_name {
        Some(place) => place.clone(),
        None => Place::new(&line("/proc/sys/kernel/hostname")?).map_err(anyhow::Error::msg)?,
    };
    let owner = match &arguments.owner {
        Some(owner) => owner.clone(),
        None => owner_of_this_host()?,
    };
    let socket = Socket::bind(&arguments.csi_endpoint)?;
    let mut labels = NodeLabels::new(place.node());
    for (key, value) in &arguments.node_labels {
        labels = labels.with(key, value);
    }
    let (node, repairs) = Node::open(Settings::new(owner, classes).labels(labels))?;
    eprintln!("gabion: {repairs}");
    let keeper = Keeper::start(&node, |event| eprintln!("gabion: {event}"))?;
    follow::start(node.clone(), &arguments.config)?;
    eprintln!("gabion: node {} serves CSI on {}", place.node(), socket.path().display());
    let served = Driver::new(node, place).alpha(arguments.alpha()).run(&socket);
    let kept = keeper.stop(KEEPER_PATIENCE);
    served?;
    anyhow::ensure!(kept, "what goes on beside the calls had not ended when patience did");
    eprintln!("gabion: ended in order");
    Ok(())
}

fn classes(config: &Path) -> Result<Vec<DeviceClass>> {
    let text = fs::read_to_string(config).with_context(|| format!("reading {}", config.display()))?;
    Ok(DeviceClass::parse_all(&text)?)
}

/// The one line of a file.
fn line(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    Ok(text.trim_end().to_owned())
}
