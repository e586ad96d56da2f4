//! How a round is to be.

use dormouse_check::generate::rng::Rng;

/// Tubes that commands name; a wrong line may name others. The first one is always there.
pub(crate) const TUBES: [&str; 5] = ["default", "a", "b", "c", "d-+/;.$_()9"];

/// The choices for a whole round.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Ours keeps jobs on disk. The original never does: it shows that in `stats`.
    pub(crate) is_on_disk: bool,
    /// The largest body; small in most rounds, so that some are too large.
    pub(crate) body_bytes_max: usize,
    /// Somebody watches all tubes all the time, so that no tube is forgotten: then all counts must
    /// be the same, else some may be of an earlier tube of that name.
    pub(crate) keeps_tubes: bool,
    /// Some jobs have the same priority. They come by id if they are reserved only once; so nobody
    /// leaves, who might give one back.
    pub(crate) has_ties: bool,
}

impl Setup {
    pub(crate) fn choose(rng: &mut Rng) -> Setup {
        Setup {
            is_on_disk: rng.chance(40),
            body_bytes_max: if rng.chance(80) { 60 } else { 65_535 },
            keeps_tubes: rng.chance(50),
            has_ties: rng.chance(30),
        }
    }

    /// In memory, with the usual bodies.
    pub(crate) fn plain() -> Setup {
        Setup { is_on_disk: false, body_bytes_max: 65_535, keeps_tubes: false, has_ties: false }
    }

    /// Whether the counts of this tube must be the same.
    pub(crate) fn keeps(&self, tube: &str) -> bool {
        self.keeps_tubes && TUBES.contains(&tube)
    }
}
