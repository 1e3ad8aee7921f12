//! How much memory this process may still allocate, according to the operating system.

/// Bytes that can be allocated without swapping or being killed; none if that is unknown.
#[cfg(target_os = "linux")]
pub(super) fn available() -> Option<u64> {
    linux::available(std::path::Path::new("/"))
}

/// Bytes that can be allocated without swapping or being killed; none if that is unknown.
#[cfg(not(target_os = "linux"))]
pub(super) fn available() -> Option<u64> {
    if !sysinfo::IS_SUPPORTED_SYSTEM {
        return None;
    }
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    Some(system.available_memory()).filter(|&bytes| bytes > 0)
}

/// From the kernel's text files. The crate `sysinfo` reads the limit of the topmost control group only, which is not
/// that of a batch job (Slurm) or a systemd unit, and not `ulimit`.
#[cfg(any(target_os = "linux", test))]
mod linux {
    use std::fs;
    use std::path::Path;

    /// The minimum of what the machine, the control groups and the limits of the process leave.
    pub(super) fn available(root: &Path) -> Option<u64> {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let machine = kilobytes(&text("proc/meminfo"), "MemAvailable:");
        let groups = left_by_groups(root, &text("proc/self/cgroup"));
        let (limits, status) = (text("proc/self/limits"), text("proc/self/status"));
        let process = [
            ("Max address space", "VmSize:"),
            ("Max data size", "VmData:"),
        ]
        .into_iter()
        .filter_map(|(limit, used)| {
            // Name, soft limit, hard limit, unit; `unlimited` is no number.
            let limit = limits.lines().find_map(|line| line.strip_prefix(limit))?;
            let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
            Some(limit.saturating_sub(kilobytes(&status, used)?))
        });
        machine.into_iter().chain(groups).chain(process).min()
    }

    /// A line `name  123 kB`, in bytes.
    fn kilobytes(text: &str, name: &str) -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        number.checked_mul(1024)
    }

    /// What the control groups of this process, and their parents, leave. `list` has lines `number:controllers:group`,
    /// without controllers for version 2.
    fn left_by_groups(root: &Path, list: &str) -> Option<u64> {
        let left = list.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, group) = (fields.next()?, fields.next()?);
            let (mount, files) = match controllers {
                "" => ("sys/fs/cgroup", VERSION_2),
                _ if controllers.split(',').any(|name| name == "memory") => {
                    ("sys/fs/cgroup/memory", VERSION_1)
                }
                _ => return None,
            };
            let mount = root.join(mount);
            // In a container the folder of our group may be mounted as the topmost: then the others are not there.
            Path::new(group.trim_start_matches('/'))
                .ancestors()
                .filter_map(|group| left_by_group(&mount.join(group), files))
                .min()
        });
        left.min()
    }

    /// Names of a limit, of what counts against it, and of the share of that which is cache and given up on demand.
    type Files = [&'static str; 3];
    const VERSION_2: Files = ["memory.max", "memory.current", "inactive_file"];
    const VERSION_1: Files = [
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ];

    fn left_by_group(folder: &Path, [limit, used, cache]: Files) -> Option<u64> {
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        // `max` for no limit is no number.
        let (limit, used) = (number(limit)?, number(used)?);
        let cache = read("memory.stat").and_then(|stat| {
            let line = stat.lines().find_map(|line| line.strip_prefix(cache))?;
            line.trim().parse::<u64>().ok()
        });
        Some(limit.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// A root folder with these files.
        fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            root
        }

        fn of(files: &[(&str, &str)]) -> Option<u64> {
            available(root(files).path())
        }

        const MEMINFO: (&str, &str) = (
            "proc/meminfo",
            "MemTotal:       2000 kB\nMemFree:  10 kB\nMemAvailable:   1000 kB\n",
        );

        #[test]
        fn the_machine_says_what_is_available() {
            assert_eq!(of(&[]), None);
            assert_eq!(of(&[("proc/meminfo", "MemFree: 10 kB\n")]), None);
            assert_eq!(of(&[MEMINFO]), Some(1_024_000));
        }

        #[test]
        fn every_group_above_ours_counts_and_its_cache_does_not() {
            let group = ("proc/self/cgroup", "0::/user/work\n");
            let files = [
                MEMINFO,
                group,
                ("sys/fs/cgroup/user/work/memory.max", "max\n"),
                ("sys/fs/cgroup/user/work/memory.current", "7\n"),
                ("sys/fs/cgroup/user/memory.max", "5000\n"),
                ("sys/fs/cgroup/user/memory.current", "4000\n"),
                (
                    "sys/fs/cgroup/user/memory.stat",
                    "anon 1\ninactive_file 1500\nslab 3\n",
                ),
            ];
            assert_eq!(of(&files), Some(2500));
            assert_eq!(of(&files[..6]), Some(1000));
            assert_eq!(of(&files[..4]), Some(1_024_000));
            // A container that sees its own group as the topmost.
            let contained = [
                MEMINFO,
                group,
                ("sys/fs/cgroup/memory.max", "300\n"),
                ("sys/fs/cgroup/memory.current", "400\n"),
            ];
            assert_eq!(of(&contained), Some(0));
        }

        #[test]
        fn groups_of_the_first_version_count() {
            let files = [
                MEMINFO,
                ("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/a\n0::/\n"),
                ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "900\n"),
                ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "200\n"),
                (
                    "sys/fs/cgroup/memory/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n"),
            ];
            assert_eq!(of(&files), Some(700));
        }

        #[test]
        fn limits_of_the_process_count() {
            let limits = "Limit      Soft Limit  Hard Limit  Units\n\
                          Max data size             unlimited            unlimited            bytes\n\
                          Max address space         102400               unlimited            bytes\n";
            let files = [
                MEMINFO,
                ("proc/self/limits", limits),
                (
                    "proc/self/status",
                    "Name:\tx\nVmSize:\t      40 kB\nVmData: 1 kB\n",
                ),
            ];
            assert_eq!(of(&files), Some(60 * 1024));
        }

        #[test]
        #[cfg(target_os = "linux")]
        fn this_machine_says_something() {
            let bytes = super::super::available().expect("Linux has /proc");
            assert!((1 << 20..1 << 50).contains(&bytes), "{bytes}");
        }
    }
}
