use super::*;

fn write(disk: &dyn Disk, name: &str, data: &[u8]) -> Arc<dyn File> {
    let file = disk.create(name).unwrap();
    file.write_at(0, data).unwrap();
    file
}

fn synced(disk: &SimDisk, name: &str, data: &[u8]) -> Arc<dyn File> {
    let file = write(disk, name, data);
    file.sync().unwrap();
    disk.sync_dir().unwrap();
    file
}

#[test]
fn what_is_synced_survives_every_crash() {
    for mode in CrashMode::ALL {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let disk = SimDisk::new();
            let file = synced(&disk, "a", &[1; 700]);
            file.write_at(700, &[2; 3_000]).unwrap();
            disk.crash(mode, &mut rng);
            let content = disk.read_all("a").unwrap();
            assert_eq!(&content[..700], [1; 700], "{mode:?} seed {seed}");
            assert!(content.len() <= 3_700);
        }
    }
}

#[test]
fn what_is_not_synced_may_go_and_closing_saves_nothing() {
    let disk = SimDisk::new();
    let file = synced(&disk, "a", b"old");
    file.write_at(0, b"new!").unwrap();
    drop(file);
    write(&disk, "b", b"x").sync().unwrap();
    assert_eq!(disk.read_all("a").unwrap(), b"new!", "readers see it");
    disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
    assert_eq!(disk.read_all("a").unwrap(), b"old");
    assert_eq!(disk.names(), ["a"], "the name was never synced");
}

#[test]
fn a_kill_loses_nothing_but_makes_nothing_durable() {
    let disk = SimDisk::new();
    let file = synced(&disk, "a", b"old");
    file.write_at(3, b" new").unwrap();
    write(&disk, "b", b"x");
    disk.crash(CrashMode::Kill, &mut Rng::new(1));
    assert_eq!(disk.read_all("a").unwrap(), b"old new");
    assert_eq!(disk.names(), ["a", "b"]);
    disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
    assert_eq!(disk.read_all("a").unwrap(), b"old");
    assert_eq!(disk.names(), ["a"]);
}

#[test]
fn a_name_can_survive_without_its_data() {
    let mut seen = [false; 4];
    for seed in 0..300 {
        let disk = SimDisk::new();
        synced(&disk, "manifest", b"old");
        write(&disk, "tmp", b"new");
        disk.rename("tmp", "manifest").unwrap();
        disk.crash(CrashMode::Prefix, &mut Rng::new(seed));
        match disk.read_all("manifest").unwrap().as_slice() {
            b"old" => seen[0] = true,
            b"" => seen[1] = true,
            b"new" => seen[2] = true,
            other => seen[3] |= b"new".starts_with(other),
        }
    }
    assert_eq!(seen, [true; 4]);
}

#[test]
fn directory_operations_survive_in_order() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let disk = SimDisk::new();
        synced(&disk, "a", b"a");
        disk.create("b").unwrap();
        disk.rename("a", "c").unwrap();
        disk.remove("c").unwrap();
        disk.crash(CrashMode::Sectors, &mut Rng::new(seed));
        seen.insert(disk.names().join(" "));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["a", "a b", "b", "b c"]);
}

#[test]
fn sectors_are_lost_torn_and_left_as_holes() {
    let (mut hole, mut torn, mut longer) = (false, false, false);
    for seed in 0..300 {
        let disk = SimDisk::new();
        let file = synced(&disk, "a", b"");
        file.write_at(0, &[7; 4 * 512]).unwrap();
        disk.crash(CrashMode::Sectors, &mut Rng::new(seed));
        let content = disk.read_all("a").unwrap();
        let sectors: Vec<_> = content.chunks(512).collect();
        let whole = |sector: &&[u8]| **sector == [7; 512];
        hole |= sectors.windows(2).any(|two| two[0] == [0; 512] && whole(&two[1]));
        torn |= sectors.iter().any(|sector| sector.starts_with(&[7]) && sector.ends_with(&[0]));
        longer |= content.ends_with(&[0; 512]);
    }
    assert!(hole && torn && longer);
}

#[test]
fn a_prefix_runs_over_all_files() {
    for seed in 0..200 {
        let disk = SimDisk::new();
        let (first, second) = (synced(&disk, "a", b""), synced(&disk, "b", b""));
        first.write_at(0, b"1").unwrap();
        second.write_at(0, b"2").unwrap();
        first.write_at(1, b"3").unwrap();
        disk.crash(CrashMode::Prefix, &mut Rng::new(seed));
        let both = (disk.read_all("a").unwrap(), disk.read_all("b").unwrap());
        let [none, one, two] = [b"".to_vec(), b"1".to_vec(), b"2".to_vec()];
        let allowed = [
            (none.clone(), none.clone()),
            (one.clone(), none),
            (one, two.clone()),
            (b"13".to_vec(), two),
        ];
        assert!(allowed.contains(&both), "{both:?} seed {seed}");
    }
}

#[test]
fn old_handles_are_dead_after_a_crash() {
    let disk = SimDisk::new();
    let mounted = disk.mount();
    let file = synced(&disk, "a", b"x");
    disk.crash(CrashMode::Kill, &mut Rng::new(1));
    assert!(file.write_at(0, b"y").is_err() && file.sync().is_err() && file.len().is_err());
    assert!(file.read_at(0, &mut [0]).is_err());
    assert!(mounted.create("b").is_err() && mounted.list().is_err());
    assert!(disk.mount().open("a").is_ok());
}

#[test]
fn a_failed_sync_loses_what_it_should_have_saved() {
    let disk = SimDisk::new();
    let file = synced(&disk, "a", b"old");
    file.write_at(3, b" new").unwrap();
    disk.fail_call(disk.calls() + 1, FailKind::Io, false);
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
    file.sync().unwrap();
    assert_eq!(disk.read_all("a").unwrap(), b"old new");
    disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
    assert_eq!(disk.read_all("a").unwrap(), b"old");
}

#[test]
fn calls_fail_once_or_for_ever() {
    let disk = SimDisk::new();
    disk.fail_call(2, FailKind::NoSpace, false);
    let file = disk.create("a").unwrap();
    assert_eq!(file.write_at(0, b"1234").unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.read_all("a").unwrap(), b"12", "a part was written");
    file.write_at(0, b"1234").unwrap();
    disk.fail_call(5, FailKind::Io, true);
    disk.sync_dir().unwrap();
    assert!(disk.create("b").is_err() && disk.rename("a", "b").is_err());
    assert!(disk.remove("a").is_err() && disk.sync_dir().is_err() && file.sync().is_err());
    assert_eq!((disk.calls(), disk.names()), (9, vec!["a".to_owned()]));
    disk.clear_faults();
    disk.remove("a").unwrap();
}

#[test]
fn the_power_goes_off_at_a_call() {
    let disk = SimDisk::new();
    let file = synced(&disk, "a", b"1");
    disk.crash_at_call(disk.calls() + 2);
    file.write_at(1, b"2").unwrap();
    let error = file.sync().unwrap_err();
    assert!(power_is_off(&error) && disk.is_off(), "{error}");
    assert!(power_is_off(&file.len().unwrap_err()) && disk.list().is_err());
    assert_eq!(disk.last_call(), "sync a");
    disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
    assert!(!disk.is_off());
    assert_eq!(disk.read_all("a").unwrap(), b"1");
}

#[test]
fn room_is_used_up_and_given_back() {
    let disk = SimDisk::new();
    disk.set_free_bytes(10);
    let file = write(&disk, "a", &[1; 8]);
    assert_eq!(disk.free_bytes().unwrap(), 2);
    assert_eq!(file.write_at(8, &[1; 4]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.write_at(0, &[2; 8]).unwrap();
    drop(file);
    disk.remove("a").unwrap();
    disk.sync_dir().unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 10);
}

#[test]
fn a_removed_file_can_be_read_on() {
    let disk = SimDisk::new();
    let file = synced(&disk, "a", b"x");
    disk.remove("a").unwrap();
    disk.sync_dir().unwrap();
    let mut byte = [0];
    file.read_at(0, &mut byte).unwrap();
    assert_eq!(&byte, b"x");
    assert_eq!(file.read_at(1, &mut byte).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert!(disk.open("a").is_err());
}

#[test]
fn damage_and_time_travel_for_tests() {
    let disk = SimDisk::new();
    synced(&disk, "a", b"abc");
    let before = disk.snapshot();
    assert!(disk.flip_bits("a", 1, 1) && disk.truncate("a", 2));
    assert_eq!(disk.read_all("a").unwrap(), b"ac");
    assert!(!disk.flip_byte("a", 2) && !disk.flip_byte("b", 0));
    disk.put_file("b", b"b");
    disk.crash(CrashMode::LoseUnsynced, &mut Rng::new(1));
    assert_eq!(disk.names(), ["a", "b"]);
    disk.restore(&before);
    assert_eq!(disk.read_all("a").unwrap(), b"abc");
    assert_eq!(disk.names(), ["a"]);
}
