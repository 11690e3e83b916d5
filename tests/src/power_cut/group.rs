//! A volume group in images, without activating it: what its metadata say, and what its volumes hold.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use devices::Bytes;
use lvm::Extents;
use lvm::metadata::{Area, Lv, Options, Problem, SegmentKind, Vg, read};
use lvm::thin_meta::{self, Block, Chunks, Root, ThinId, ThinMetadata};

use super::Images;

/// The one group whose PVs are the images' slices.
#[derive(Debug)]
pub struct OfflineGroup<'a> {
    images: &'a Images,
    vg: Arc<Vg>,
    /// Where the PVs of the group are among the slices.
    pvs: Vec<usize>,
}

impl<'a> OfflineGroup<'a> {
    /// Reads it; `None` if no slice has a group yet.
    ///
    /// # Errors
    ///
    /// If anything is wrong with the metadata besides copies that a commit had not reached, or there are two groups.
    pub fn read(images: &'a Images) -> Result<Option<Self>> {
        let all: Vec<usize> = (0..images.paths().len()).collect();
        Self::read_on(images, &all)
    }

    /// The same on these slices alone.
    ///
    /// # Errors
    ///
    /// As [`OfflineGroup::read`].
    pub fn read_on(images: &'a Images, slices: &[usize]) -> Result<Option<Self>> {
        let mut options = Options::default();
        options.locking_dir = None;
        options.retries = 0;
        let paths: Vec<PathBuf> = images.paths().into_iter().map(PathBuf::from).collect();
        let of_group = slices.iter().map(|slice| paths[*slice].clone()).collect::<Vec<_>>();
        let view = read(of_group, options);
        if view.vgs.is_empty() {
            return Ok(None);
        }
        let allowed = |problem: &&Problem| {
            matches!(problem, Problem::OutdatedCopy { .. } | Problem::DifferingCopies { .. })
        };
        if let Some(problem) = view.problems.iter().find(|problem| !allowed(problem)) {
            bail!("{problem}");
        }
        let [vg] = &view.vgs[..] else { bail!("{} groups", view.vgs.len()) };
        let mut pvs = Vec::new();
        for pv in &vg.pvs {
            let device = pv.device.as_ref().with_context(|| format!("PV {} has no device", pv.uuid))?;
            let slice = paths.iter().position(|path| *path == device.path);
            pvs.push(slice.context("a PV on no slice")?);
        }
        Ok(Some(Self { images, vg: Arc::clone(vg), pvs }))
    }

    /// What the metadata say.
    #[must_use]
    pub fn vg(&self) -> &Vg {
        &self.vg
    }

    /// The size of a volume.
    ///
    /// # Errors
    ///
    /// If there is no such volume.
    pub fn size(&self, name: &str) -> Result<Bytes> {
        self.span(self.lv(name)?.extents())
    }

    /// What a linear volume holds from `start` on.
    ///
    /// # Errors
    ///
    /// If there is none, it is not linear, or shorter than that.
    pub fn read_linear(&self, name: &str, start: Bytes, length: Bytes) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let (mut at, end) = (start.get(), start.get() + length.get());
        for segment in &self.lv(name)?.segments {
            let SegmentKind::Striped(striped) = &segment.kind else { bail!("{name} is not linear") };
            let [Area::Pv { pv, start }] = &striped.areas[..] else { bail!("{name} is not linear") };
            let (from, to) = (self.span(segment.start)?.get(), self.span(segment.end())?.get());
            if at >= to || at >= end {
                continue;
            }
            let index = self.vg.pvs.iter().position(|other| other.uuid == *pv).context("no such PV")?;
            let first = self.vg.pvs[index].pe_start.to_bytes().context("pe_start")?.get();
            let on_pv = Bytes::new(first + self.span(*start)?.get() + at - from);
            let part = Bytes::new(to.min(end) - at);
            bytes.extend(self.images.read(self.pvs[index], on_pv, part)?);
            at += part.get();
        }
        ensure!(at == end, "{name} is shorter than {}", Bytes::new(end));
        Ok(bytes)
    }

    /// The metadata of a thin pool; every mapping of every volume is looked at.
    ///
    /// # Errors
    ///
    /// If they are damaged, or of another transaction than the group's metadata know.
    pub fn pool_metadata(&self, name: &str) -> Result<ThinMetadata<PoolMetadata<'_>>> {
        let pool = self.lv(name)?.as_thin_pool().context("it is no pool")?;
        let size = self.size(pool.metadata.as_str())?;
        let source = PoolMetadata { group: self, name: pool.metadata.as_str(), size };
        let metadata = ThinMetadata::read(source, Root::Current)?;
        let (kernel, known) = (metadata.transaction_id(), pool.transaction_id);
        // A commit names the new transaction and the message to come; then the pool gets the message.
        let pending = !pool.messages.is_empty() && kernel + 1 == known;
        ensure!(kernel == known || pending, "pool {name}: transaction {kernel}, and {known} in the group");
        for thin in metadata.devices() {
            let thin = thin?;
            let mut mapped = 0;
            for range in metadata.mapped(thin.id)? {
                mapped += range?.len.get();
            }
            ensure!(Chunks::new(mapped) == thin.mapped, "thin volume {}: {mapped} chunks", thin.id);
        }
        Ok(metadata)
    }

    /// The bytes of a pool's metadata volume.
    ///
    /// # Errors
    ///
    /// If there is no such pool.
    pub fn pool_metadata_image(&self, name: &str) -> Result<Vec<u8>> {
        let metadata = &self.lv(name)?.as_thin_pool().context("it is no pool")?.metadata;
        self.read_linear(metadata.as_str(), Bytes::ZERO, self.size(metadata.as_str())?)
    }

    /// What a thin volume holds in its first bytes.
    ///
    /// # Errors
    ///
    /// If there is none, or its pool is damaged.
    pub fn read_thin(&self, name: &str, length: Bytes) -> Result<Vec<u8>> {
        let thin = self.lv(name)?.as_thin().context("it is not thin")?;
        let metadata = self.pool_metadata(thin.pool.as_str())?;
        let data = &self.lv(thin.pool.as_str())?.as_thin_pool().context("it is no pool")?.data;
        let chunk = metadata.chunk_size().get();
        let mut bytes = vec![0; usize::try_from(length.get())?];
        for range in metadata.mapped(ThinId::new(thin.device_id).context("no thin id")?)? {
            let range = range?;
            for index in 0..range.len.get() {
                let to = usize::try_from((range.begin.get() + index) * chunk)?;
                let Some(room) = bytes.get_mut(to..).filter(|room| !room.is_empty()) else { continue };
                let part = room.len().min(usize::try_from(chunk)?);
                let from = Bytes::new((range.data.get() + index) * chunk);
                room[..part].copy_from_slice(&self.read_linear(
                    data.as_str(),
                    from,
                    Bytes::new(part as u64),
                )?);
            }
        }
        Ok(bytes)
    }

    fn lv(&self, name: &str) -> Result<&Lv> {
        self.vg.lv(name).with_context(|| format!("there is no volume {name}"))
    }

    fn span(&self, extents: Extents) -> Result<Bytes> {
        self.vg.extent_size.span(extents).context("beyond all devices")
    }
}

/// A pool's metadata volume, read block by block.
#[derive(Debug)]
pub struct PoolMetadata<'a> {
    group: &'a OfflineGroup<'a>,
    name: &'a str,
    size: Bytes,
}

impl thin_meta::Source for PoolMetadata<'_> {
    fn blocks(&self) -> u64 {
        self.size.get() / thin_meta::BLOCK as u64
    }

    fn read(&self, number: u64, block: &mut Block) -> io::Result<()> {
        let length = thin_meta::BLOCK as u64;
        let read = self.group.read_linear(self.name, Bytes::new(number * length), Bytes::new(length));
        block.0.copy_from_slice(&read.map_err(io::Error::other)?);
        Ok(())
    }
}
