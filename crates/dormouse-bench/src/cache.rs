//! Makes the next reads come from the disk.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::Result;

/// Drops the files of a directory from the page cache; says how.
pub(crate) fn drop_page_cache(dir: &Path) -> Result<&'static str> {
    for entry in std::fs::read_dir(dir)? {
        let file = File::open(entry?.path())?;
        // Pages that are not written yet would stay.
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    // Only root may; the advice above does the most of it.
    let all = std::fs::write("/proc/sys/vm/drop_caches", "3\n").is_ok();
    Ok(if all { "fadvise, drop_caches" } else { "fadvise" })
}
