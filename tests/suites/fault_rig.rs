//! The rig's own worst case: a machine that runs and does not answer.

mod must_fail {
    mod machine_was_lost {
        mod seconds_10 {
            use std::process::Command;

            /// Stops the guest's runner, so that neither an end nor a time-out is ever reported.
            #[test]
            fn a_guest_that_does_not_answer_costs_only_a_new_start() -> std::io::Result<()> {
                if rig::disk::virtual_disks().is_empty() {
                    println!("SKIPPED: there are no virtual disks outside of the machine");
                    return Ok(());
                }
                let status = Command::new("pkill").args(["-STOP", "-x", "gabion-guest"]).status()?;
                assert!(status.success(), "pkill: {status}");
                std::thread::sleep(std::time::Duration::from_secs(600));
                Ok(())
            }
        }
    }
}
