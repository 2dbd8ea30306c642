from .cca import KernelCCA as KernelCCA
from .denoise import PatchDenoiser as PatchDenoiser
from .embedding import DiffusionMap as DiffusionMap
from .embedding import SpectralEmbedding as SpectralEmbedding
from .embedding import embedding_init as embedding_init
from .hebbian import HebbianKernelPCA as HebbianKernelPCA
from .isomap import Isomap as Isomap
from .kernel_pca import KernelPCA as KernelPCA
from .mds import ClassicalMDS as ClassicalMDS
from .monitor import ProcessMonitor as ProcessMonitor
from .novelty import NoveltyDetector as NoveltyDetector
from .nystroem import Nystroem as Nystroem
from .search import KernelPCASearch as KernelPCASearch
from .search import select as select
from .spectral import SpectralClustering as SpectralClustering
from .streaming import StreamingKernelPCA as StreamingKernelPCA
from .supervised import SupervisedKernelPCA as SupervisedKernelPCA

__all__ = [
    "ClassicalMDS",
    "DiffusionMap",
    "HebbianKernelPCA",
    "Isomap",
    "KernelCCA",
    "KernelPCA",
    "KernelPCASearch",
    "NoveltyDetector",
    "Nystroem",
    "PatchDenoiser",
    "ProcessMonitor",
    "SpectralClustering",
    "SpectralEmbedding",
    "StreamingKernelPCA",
    "SupervisedKernelPCA",
    "embedding_init",
    "select",
]
