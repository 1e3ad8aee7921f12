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

    /// The two versions of control groups: the controller that limits memory (version 2 names none), where the groups are
    /// mounted, and the names of a limit, of what counts against it, and of the share of that which is cache and given up
    /// on demand.
    const VERSIONS: [(&str, &str, [&str; 3]); 2] = [
        (
            "",
            "sys/fs/cgroup",
            ["memory.max", "memory.current", "inactive_file"],
        ),
        (
            "memory",
            "sys/fs/cgroup/memory",
            [
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            ],
        ),
    ];

    /// The minimum of what the machine, the control groups and the limits of the process leave.
    pub(super) fn available(root: &Path) -> Option<u64> {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let kilobytes = |text: &str, name: &str| number(text, name)?.checked_mul(1024);
        let machine = kilobytes(&text("proc/meminfo"), "MemAvailable:");
        let groups = left_by_groups(root, &text("proc/self/cgroup"));
        let (limits, status) = (text("proc/self/limits"), text("proc/self/status"));
        let left = |limit: &str, used: &str| {
            Some(number(&limits, limit)?.saturating_sub(kilobytes(&status, used)?))
        };
        let space = left("Max address space", "VmSize:");
        let data = left("Max data size", "VmData:");
        [machine, groups, space, data].into_iter().flatten().min()
    }

    /// The number that comes after a name at the beginning of a line. `unlimited` is no number.
    fn number(text: &str, name: &str) -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// What the control groups of this process, and their parents, leave. `list` has lines `number:controllers:group`.
    fn left_by_groups(root: &Path, list: &str) -> Option<u64> {
        let left = list.lines().filter_map(|line| {
            let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
            let limits_memory = |name: &str| controllers.split(',').any(|one| one == name);
            let version = VERSIONS.iter().find(|version| limits_memory(version.0))?;
            // In a container the folder of our group may be mounted as the topmost: then the others are not there.
            Path::new(group.trim_start_matches('/'))
                .ancestors()
                .filter_map(|group| left_by_group(&root.join(version.1).join(group), version.2))
                .min()
        });
        left.min()
    }

    fn left_by_group(folder: &Path, [limit, used, cache]: [&str; 3]) -> Option<u64> {
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        // `max` for no limit is no number.
        let (limit, used) = (number(&read(limit)?, "")?, number(&read(used)?, "")?);
        let cache = read("memory.stat").and_then(|stat| number(&stat, cache));
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
