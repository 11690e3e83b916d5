//! Moves of extents that a crash interrupts.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

/// What continuous integration runs of this suite.
mod smoke {
    use std::fs;
    use std::ops::ControlFlow;

    use anyhow::{Context, Result, ensure};
    use devices::Bytes;
    use lvm::metadata::LvFlag;
    use lvm::ops::{Group, MoveEnd, NewVolume, SizeRange};
    use lvm::{DevicePath, Effect, LvName};
    use rig::crawl::Crawl;
    use rig::filesystem::format;
    use rig::killer::Killer;
    use rig::sweep::in_order;
    use rig::{Mounted, skip_unless_dm, tool};

    /// Kills every worker that this process started.
    fn kill_workers() -> Result<usize> {
        let mut killed = 0;
        for entry in fs::read_dir("/proc")? {
            let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let Some((name, rest)) = stat.rsplit_once(')') else { continue };
            let parent = rest.split_whitespace().nth(1).unwrap_or_default();
            if name.ends_with("(gabion-lvm-work") && parent == std::process::id().to_string() {
                tool::run("kill", ["-KILL", &pid.to_string()])?;
                killed += 1;
            }
        }
        Ok(killed)
    }

    fn is_moving(group: &Group) -> Result<bool> {
        Ok(group.look()?.lvs.iter().any(|lv| lv.has(&LvFlag::PvMove)))
    }

    fn device(killer: &Killer, index: usize) -> Result<DevicePath> {
        Ok(DevicePath::new(killer.disks()[index].path())?)
    }

    /// Where the volume lies.
    fn devices_of(group: &Group) -> Result<Vec<std::path::PathBuf>> {
        let seen = group.look()?;
        let pvs = seen.pvs_below(seen.lv("db").context("db")?);
        Ok(pvs.iter().filter_map(|pv| seen.pv(*pv)?.device.as_ref().map(|at| at.path.clone())).collect())
    }

    /// The worker of a move dies in the midst of it, and another program goes on with it.
    #[test]
    fn a_move_whose_worker_died_is_resumed_by_another_program_while_the_volume_is_in_use() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        let killer = Killer::new(2, Bytes::mib(300))?;
        let (from, to) = (device(&killer, 0)?, device(&killer, 1)?);
        let db = LvName::new("db")?;
        let new = NewVolume::new(db, SizeRange::at_least(Bytes::mib(200))).on(from.clone());
        let made = killer.group().create_volume(&new)?.into_inner();
        format("ext4", &made.device)?;
        let mounted = Mounted::new("ext4", &made.device)?;
        mounted.write("data", 50)?;

        let crawl = Crawl::begin()?;
        let mut killed = 0;
        let died = killer.group().move_extents(&from, std::slice::from_ref(&to), None, &mut |at| {
            if killed == 0 && at.copied < at.total {
                killed = kill_workers().unwrap();
            }
            ControlFlow::Continue(())
        });
        let died = died.unwrap_err();
        ensure!(killed > 0 && died.effect() == Effect::Unknown, "{killed} killed: {died:?}");
        ensure!(is_moving(killer.group())?, "the move is not in the metadata any more");

        // A program that starts anew: it recovers first, and the move is still there.
        let lvm = killer.second_handle()?;
        for group in lvm.recover_all()? {
            let report = group.result?;
            ensure!(report.is_open(), "{report}");
        }
        let group = lvm.group_by_uuid(killer.group().uuid())?;
        ensure!(is_moving(&group)?, "the recovery has ended the move");
        mounted.check("data", 50)?;
        drop(crawl);
        let mut looks = 0;
        let end = group.resume_moves(&mut |_| {
            looks += 1;
            ControlFlow::Continue(())
        })?;
        assert_eq!(end, MoveEnd::Moved);
        assert!(!is_moving(&group)?);
        assert_eq!(devices_of(&group)?, [to.as_path()]);
        assert_eq!(group.resume_moves(&mut |_| ControlFlow::Continue(()))?, MoveEnd::Nothing);
        mounted.check("data", 50)?;
        mounted.unmount()?;
        println!("FIGURES: the resumed move was seen {looks} times on its way");
        in_order(&group)?;
        in_order(killer.group())
    }
}
