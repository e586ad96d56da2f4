//! A sample of the ids in a run: enough to tell which older runs its tombstones depart from.
//!
//! Ids grow with time, so the jobs of one run mostly have ids of one range. Where the ids of a
//! newer run's tombstones fall into that range, a merge of both lets job and tombstone vanish
//! together.

use crate::codec::Reader;

/// Ids of a sample at most.
const IDS_MAX: usize = 128;
/// Bytes of a sample in a file: the number of ids, the ids, zeros.
const SAMPLE_BYTES: usize = 8 + 8 * IDS_MAX;

/// Ids of every n-th entry, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdSample(Vec<u64>);

/// The ids of a run's jobs, and of its tombstones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdSamples {
    /// Of entries with a job.
    pub jobs: IdSample,
    /// Of entries without one.
    pub tombstones: IdSample,
}

impl IdSample {
    /// Bounds between which nearly all ids lie; a few stray ones at either end do not count.
    pub fn range(&self) -> Option<(u64, u64)> {
        let strays = self.0.len() / 32;
        let low = self.0.get(strays)?;
        let high = self.0.get(self.0.len() - 1 - strays)?;
        Some((*low, *high))
    }

    /// The sampled ids.
    pub fn ids(&self) -> &[u64] {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn of(ids: impl IntoIterator<Item = u64>) -> IdSample {
        let mut sampler = Sampler::default();
        ids.into_iter().for_each(|id| sampler.push(id));
        sampler.finish()
    }

    fn put(&self, out: &mut Vec<u8>) {
        let end = out.len() + SAMPLE_BYTES;
        out.extend_from_slice(&(self.0.len() as u64).to_le_bytes());
        for id in &self.0 {
            out.extend_from_slice(&id.to_le_bytes());
        }
        out.resize(end, 0);
    }

    fn get(reader: &mut Reader<'_>) -> Option<IdSample> {
        let count = usize::try_from(reader.fixed_u64()?).ok().filter(|count| *count <= IDS_MAX)?;
        let mut ids = Vec::with_capacity(count);
        for index in 0..IDS_MAX {
            let id = reader.fixed_u64()?;
            if index < count {
                ids.push(id);
            }
        }
        ids.is_sorted().then_some(IdSample(ids))
    }
}

impl IdSamples {
    /// Bytes of both samples.
    pub(super) const BYTES: usize = 2 * SAMPLE_BYTES;

    pub(super) fn put(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(IdSamples::BYTES);
        self.jobs.put(&mut out);
        self.tombstones.put(&mut out);
        out
    }

    pub(super) fn get(bytes: &[u8]) -> Option<IdSamples> {
        let mut reader = Reader::new(bytes);
        Some(IdSamples {
            jobs: IdSample::get(&mut reader)?,
            tombstones: IdSample::get(&mut reader)?,
        })
    }
}

/// Takes every n-th id; n doubles each time that there are too many.
#[derive(Default)]
struct Sampler {
    ids: Vec<u64>,
    seen: u64,
    /// `n` is two to the power of this.
    halvings: u32,
}

impl Sampler {
    fn push(&mut self, id: u64) {
        let is_nth = self.seen & ((1 << self.halvings) - 1) == 0;
        self.seen += 1;
        if !is_nth {
            return;
        }
        if self.ids.len() == IDS_MAX {
            let mut index = 0;
            self.ids.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.halvings += 1;
        }
        self.ids.push(id);
    }

    fn finish(mut self) -> IdSample {
        self.ids.sort_unstable();
        IdSample(self.ids)
    }
}

/// Samples the entries of a run while they pass by, in their order.
#[derive(Default)]
pub(super) struct EntrySampler {
    jobs: Sampler,
    tombstones: Sampler,
}

impl EntrySampler {
    pub(super) fn push(&mut self, id: u64, is_tombstone: bool) {
        let sampler = if is_tombstone { &mut self.tombstones } else { &mut self.jobs };
        sampler.push(id);
    }

    pub(super) fn finish(self) -> IdSamples {
        IdSamples { jobs: self.jobs.finish(), tombstones: self.tombstones.finish() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all_ids() {
        for count in [0, 1, 127, 128, 129, 1_000, 100_003_u64] {
            let sample = IdSample::of((0..count).map(|id| 5 + id * 3));
            let ids = sample.ids();
            assert!(ids.len() <= IDS_MAX && ids.len() as u64 >= count.min(IDS_MAX as u64 / 2));
            if let (Some((low, high)), true) = (sample.range(), count >= 1_000) {
                let span = 3 * count;
                assert!(low - 5 <= span / 16, "{count}: {low}");
                assert!(high >= span - span / 16, "{count}: {high}");
            }
        }
    }

    #[test]
    fn stray_ids_do_not_widen_the_range() {
        let sample = IdSample::of([3].into_iter().chain(10_000..20_000));
        assert!(sample.range().is_some_and(|(low, _)| low >= 10_000));
    }

    #[test]
    fn samples_come_back_from_bytes() {
        let samples = IdSamples { jobs: IdSample::of(7..700), tombstones: IdSample::of(1..3) };
        let bytes = samples.put();
        assert_eq!(bytes.len(), IdSamples::BYTES);
        assert_eq!(IdSamples::get(&bytes), Some(samples));
        assert_eq!(IdSamples::get(&bytes[1..]), None);
        assert_eq!(IdSamples::get(&vec![0xff; IdSamples::BYTES]), None);
    }
}
