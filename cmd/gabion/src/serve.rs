//! `gabion node`: the CSI driver of this host.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use csi::{Driver, Place, Socket};
use volumes::class::DeviceClass;
use volumes::{Node, Owner, Settings};

use crate::cli::{ControllerMode, NodeArguments};

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
        None => line("/etc/machine-id")?.parse::<Owner>().context("taking the machine's id as the owner")?,
    };
    let socket = Socket::bind(&arguments.csi_endpoint)?;
    let (node, repairs) = Node::open(Settings::new(owner, classes))?;
    eprintln!("gabion: {repairs}");
    eprintln!("gabion: node {} serves CSI on {}", place.node(), socket.path().display());
    Driver::new(node, place).alpha(arguments.alpha()).run(&socket)?;
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
