"""GPUs: their memory, their errors, their drivers."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

FAULTS = (
    Fault(
        id="cuda-oom",
        cause="cuda-oom",
        role=Role.ROOT,
        needles=(
            "out of memory",
            "OutOfMemoryError",
            "OUT_OF_MEMORY",
            "ALLOC_FAILED",
            "RESOURCE_EXHAUSTED",
            "MemoryAllocation",
            "'out of memory'",
            "Out of memory",
        ),
        pattern=re.compile(
            r"(?:CUDA|HIP|XPU|NPU|MPS)(?: error:|_ERROR:?| backend)? ?out of memory|"
            r"^torch(?:\.cuda)?\.OutOfMemoryError\b|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|"
            r"RESOURCE_EXHAUSTED: Out of memory|Failed to CUDA calloc|Cuda failure(?: \d+)? 'out of memory'"
        ),
        advice="Smaller batch or sequence, more sharding or offloading; look at what else holds the GPU.",
        source="PyTorch caching allocator, CUDA, XLA",
        yes=(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 3 has a total capacity of 94.50 GiB",
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
            "RuntimeError: CUDA out of memory. Tried to allocate 28.98 GiB (GPU 0; 79.15 GiB total capacity",
            "RuntimeError: CUDA error: out of memory",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.",
        ),
        no=("on OutOfMemoryError the batch size is halved", "Memory cgroup out of memory"),
    ),
    Fault(
        id="engine-cache-memory",
        cause="cuda-oom",
        role=Role.ROOT,
        needles=(
            "No available memory for the cache blocks",
            "less than desired GPU memory utilization",
            "larger than the available KV cache memory",
            "Not enough memory. Please try to increase --mem-fraction-static",
            "KV cache memory",
            "stored in KV cache",
        ),
        pattern=re.compile(
            r"No available memory for the cache blocks|less than desired GPU memory utilization|"
            r"larger than the (?:available KV cache memory|maximum number of tokens that can be stored in KV cache)|"
            r"Not enough memory\. Please try to increase --mem-fraction-static"
        ),
        scope=Scope.EXCEPTION,
        advice="Raise the engine's share of GPU memory, shorten max-model-len, or use more GPUs per engine.",
        source="vLLM, SGLang",
        yes=(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
            "ValueError: Free memory on device (3.1/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).",
        ),
        no=("INFO Available KV cache memory: 41.20 GiB",),
    ),
    Fault(
        id="container-newer-than-driver",
        cause="container",
        role=Role.ROOT,
        needles=(
            "was built for NVIDIA Driver Release",
            "driver on your system is too old",
            "CUDA driver version is insufficient",
            "DRIVER_MISMATCH",
            "unsatisfied condition: cuda",
            "provided PTX was compiled with an unsupported",
        ),
        pattern=re.compile(
            r"^(?:ERROR: )?This container was built for NVIDIA Driver Release|NVIDIA driver on your system is too old|"
            r"CUDA driver version is insufficient|SYSTEM_DRIVER_MISMATCH|unsatisfied condition: cuda|"
            r"provided PTX was compiled with an unsupported"
        ),
        advice="Use an older image, or a partition with a newer driver.",
        source="NVIDIA container entry point, CUDA runtime",
        yes=(
            "ERROR: This container was built for NVIDIA Driver Release 595.20 or later, but",
            "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
        ),
        no=("NVIDIA driver version 595.20",),
    ),
    Fault(
        id="cuda-assert",
        cause="cuda-error",
        role=Role.ROOT,
        needles=("device-side assert", "], thread: ["),
        pattern=re.compile(
            r"device-side assert triggered|block: \[[\d,]+\], thread: \[[\d,]+\] Assertion `(?!probability tensor)"
        ),
        any_level=True,
        advice="An index is out of range on the GPU: run with CUDA_LAUNCH_BLOCKING=1 and check ids and labels.",
        source="PyTorch, device-side assertions",
        yes=(
            "RuntimeError: CUDA error: device-side assert triggered",
            "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1369: indexSelectLargeIndex: block: [272,0,0], thread: [21,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
        ),
        no=("Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",),
    ),
    Fault(
        id="cuda-hardware",
        cause="cuda-error",
        role=Role.ROOT,
        needles=(
            "ECC error",
            "NVRM: Xid",
            "fallen off the bus",
            "GPU is lost",
            "NVLink error",
            "double bit error",
            "CUDA_ERROR_ECC",
        ),
        pattern=re.compile(
            r"uncorrectable (?:ECC|NVLink) error|NVRM: Xid \(PCI:[\da-fA-F:.]+\): (?:48|6[234]|74|79|9[245]|119|120|140)\b|"
            r"GPU has fallen off the bus|GPU is lost|CUDA_ERROR_ECC_UNCORRECTABLE"
        ),
        any_level=True,
        advice="A GPU is broken: exclude the node and tell the site.",
        source="NVIDIA Xid catalogue, CUDA",
        yes=(
            "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        ),
        no=("ECC errors: 0 corrected, 0 uncorrectable",),
    ),
    Fault(
        id="cuda-error",
        cause="cuda-error",
        role=Role.ROOT,
        needles=(
            "CUDA error",
            "illegal memory access",
            "CUBLAS_STATUS_",
            "CUDNN_STATUS_",
            "cuDNN error",
            "CUDA_ERROR_",
            "HIP error",
            "Triton Error [CUDA]",
            "cudaErr",
            "No CUDA GPUs are available",
            "no NVIDIA driver",
            "Cuda failure",
            "cudaGetDeviceCount",
            "cuda runtime error",
            "CUDAError",
            "NVML",
            "NVIDIA-SMI has failed",
            "OutOfResources",
        ),
        pattern=re.compile(
            r"(?:CUDA|HIP) error(?: \d+)?: |an illegal memory access was encountered|CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|cuDNN error: |CUDA_ERROR_\w+|"
            r"Triton Error \[CUDA\]|No CUDA GPUs are available|Found no NVIDIA driver|Cuda failure(?: \d+)? '|"
            r"Unexpected error from cudaGetDeviceCount|cuda runtime error \(\d+\)|cudaError\w+: |"
            r"^(?:RuntimeError|torch\.\w+): (?:NVML_SUCCESS|.*nvmlInit)|Can't initialize NVML$|^NVIDIA-SMI has failed|^(?:[\w.]+\.)?OutOfResources: out of resource"
        ),
        advice="Run the failing step with CUDA_LAUNCH_BLOCKING=1; if it moves with the node, exclude the node.",
        source="CUDA runtime, cuBLAS, cuDNN, PyTorch",
        yes=(
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "RuntimeError: No CUDA GPUs are available",
            "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        ),
        no=(
            "CUDA kernel errors might be asynchronously reported at some other API call",
            "CUDA_VISIBLE_DEVICES=0,1",
        ),
    ),
)
