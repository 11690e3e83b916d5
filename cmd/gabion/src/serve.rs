//! `gabion node`: the CSI driver of this host.

use std::time::Duration;

use anyhow::Result;
use csi::{Driver, Place, Socket};
use volumes::class::{NodeLabels, Sizes};
use volumes::keeper::Keeper;
use volumes::{Node, Settings};

use crate::classes::{in_file, name_of_this_host, owner_of_this_host};
use crate::cli::{ControllerMode, NodeArguments};
use crate::follow;

/// How long what goes on beside the calls may take when the process is told to end.
const KEEPER_PATIENCE: Duration = Duration::from_secs(3);

/// Serves until the process is told to end.
pub(crate) fn run(arguments: &NodeArguments) -> Result<()> {
    let ControllerMode::Local = arguments.controller;
    let classes = in_file(&arguments.config)?;
    let place = match &arguments.node_name {
        Some(place) => place.clone(),
        None => Place::new(&name_of_this_host()?).map_err(anyhow::Error::msg)?,
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
    let mut settings = Settings::new(owner, classes).labels(labels);
    settings.pods_cgroup.clone_from(&arguments.pods_cgroup);
    let (node, repairs) = Node::open(settings)?;
    eprintln!("gabion: {repairs}");
    for class in node.classes().iter().filter(|class| class.sizes() == Sizes::Promised) {
        eprintln!("gabion: class {}: the sizes of its volumes are not enforced (quota: None)", class.name);
    }
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
