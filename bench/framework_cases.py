# SPDX-License-Identifier: Apache-2.0
"""Small programs of PyTorch, transformers, Triton, CuPy, JAX and Numba: framework_cases.py NAME runs one.

The output of a case is the same in every run: sums are rounded. Values that differ from run to run,
such as times, go to stderr.
"""
import os
import sys
import time

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def show(*values):
    print(*(f'{value:.3g}' if isinstance(value, float) else value for value in values), flush=True)


def measure_seconds(step, count):
    import torch
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def layers(torch, count=8):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, count, enable_nested_tensor=False).cuda().bfloat16()


def conv_net(torch):
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(64, 10)).cuda()


@case
def torch_conv_train():
    import torch
    torch.manual_seed(1)
    model = conv_net(torch)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    images, labels = torch.randn(64, 3, 32, 32).cuda(), torch.randint(0, 10, (64,)).cuda()
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    show(loss.item())


@case
def torch_bf16_train():
    import torch
    torch.manual_seed(1)
    model = layers(torch, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    tokens = torch.randn(8, 128, 512).cuda().bfloat16()
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(tokens).float().pow(2).mean()
        loss.backward()
        optimizer.step()
    show(loss.item())


@case
def torch_graph_replay():
    import torch
    torch.manual_seed(1)
    model = layers(torch).eval()
    tokens = torch.randn(4, 128, 512).cuda().bfloat16()
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(tokens)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(tokens)
        for i in range(3):
            tokens.fill_(i + 1)
            graph.replay()
            show(out.float().abs().mean().item())
        print(f'replay {measure_seconds(graph.replay, 200) * 1e3:.3f} ms', file=sys.stderr)


@case
def torch_graphed_training():
    import torch
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16)).cuda()
    model = torch.cuda.make_graphed_callables(model, (torch.randn(64, 256, device='cuda'),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(2)
    data, wanted = torch.randn(64, 256).cuda(), torch.randn(64, 16).cuda()
    for _ in range(10):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(data), wanted)
        loss.backward()
        optimizer.step()
    show(loss.item())


def compiled(mode):
    import torch
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).cuda()
    step = torch.compile(model, mode=mode)
    data = torch.randn(128, 256).cuda()
    with torch.no_grad():
        for _ in range(4):
            out = step(data)
            show(out.abs().mean().item())
    loss = step(data).pow(2).mean()
    loss.backward()
    show(loss.item())


@case
def torch_compile_default():
    compiled('default')


@case
def torch_compile_reduce_overhead():
    compiled('reduce-overhead')


@case
def torch_compile_max_autotune():
    compiled('max-autotune')


@case
def torch_streams_events():
    import torch
    torch.manual_seed(1)
    host = torch.randn(1 << 20).pin_memory()
    streams = [torch.cuda.Stream() for _ in range(4)]
    results = []
    for i, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            part = host.to('cuda', non_blocking=True) * (i + 1)
            results.append(part.sin().sum())
            end.record()
    torch.cuda.synchronize()
    show(*(round(value.item(), 1) for value in results), begin.elapsed_time(end) > 0)


@case
def torch_memory():
    import torch
    torch.cuda.memory._record_memory_history()
    kept = [torch.empty(1 << 22, device='cuda') for _ in range(10)]
    snapshot = torch.cuda.memory._snapshot()
    show(len(kept), len(snapshot['segments']), torch.cuda.memory_allocated(), torch.cuda.max_memory_reserved())
    free, total = torch.cuda.mem_get_info()
    show(0 < free < total)
    del kept
    torch.cuda.empty_cache()
    show(torch.cuda.memory_reserved())


@case
def torch_out_of_memory():
    import torch
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device='cuda')
    except torch.cuda.OutOfMemoryError:
        show('out of memory')
    show(torch.ones(10, device='cuda').sum().item())


@case
def torch_expandable_segments():
    os.environ['PYTORCH_CUDA_ALLOC_CONF'] = os.environ['PYTORCH_ALLOC_CONF'] = 'expandable_segments:True'
    import torch
    kept = [torch.full((1 << 20,), i, device='cuda', dtype=torch.float32) for i in range(50)]
    show(sum(part.sum().item() for part in kept), torch.cuda.memory_reserved() > 0)
    del kept
    torch.cuda.empty_cache()
    show(torch.cuda.memory_reserved())


def child_of_shared(queue, back):
    part = queue.get()
    part += 1
    import torch
    torch.cuda.synchronize()
    back.put(part.sum().item())
    back.get()


@case
def torch_tensors_between_processes():
    import torch
    import torch.multiprocessing as processes
    context = processes.get_context('spawn')
    queue, back = context.Queue(), context.Queue()
    child = context.Process(target=child_of_shared, args=(queue, back), daemon=True)
    child.start()
    part = torch.zeros(1000, device='cuda')
    queue.put(part)
    show(back.get(timeout=60), part.sum().item())
    back.put(0)
    child.join()


@case
def torch_nvml():
    import torch
    show(torch.cuda.device_count(), torch.cuda.get_device_name(), torch.cuda.utilization() <= 100,
         torch.cuda.temperature() > 0, len(torch.cuda.list_gpu_processes()) > 0)


@case
def nvml_python():
    import pynvml
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    show(pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetName(device), 0 < memory.used < memory.total,
         pynvml.nvmlDeviceGetUtilizationRates(device).gpu <= 100, pynvml.nvmlDeviceGetCudaComputeCapability(device))


@case
def torch_linalg():
    import torch
    torch.manual_seed(1)
    a = torch.randn(256, 256, dtype=torch.float64)
    a = (a @ a.T + 256 * torch.eye(256, dtype=torch.float64)).cuda()
    show(torch.linalg.cholesky(a).sum().item(), torch.linalg.eigvalsh(a)[-1].item(), torch.linalg.svdvals(a)[0].item(),
         torch.linalg.solve(a, torch.ones(256, dtype=torch.float64, device='cuda')).sum().item(),
         torch.fft.fft(a).abs().sum().item(), torch.linalg.qr(a)[1].abs().sum().item())


@case
def torch_sparse_random():
    import torch
    torch.cuda.manual_seed(3)
    dense = torch.randn(512, 512, device='cuda')
    sparse = (dense * (dense > 1)).to_sparse_csr()
    show((sparse @ dense).abs().sum().item(), torch.rand(1000, device='cuda').sum().item(),
         torch.multinomial(torch.ones(10, device='cuda'), 5).numel())


@case
def torch_attention():
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 8, 256, 64).cuda().half() for _ in range(3))
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            show(backend.name, out.float().abs().mean().item())


@case
def torch_profiler():
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        total = torch.randn(100, 100, device='cuda').sin().sum()
        total.item()
    show('aten::sin' in {event.key for event in profiler.key_averages()})


@case
def torch_nccl_alone():
    import torch
    import torch.distributed as distributed
    store = distributed.HashStore()
    distributed.init_process_group('nccl', store=store, rank=0, world_size=1)
    part = torch.arange(10, device='cuda', dtype=torch.float32)
    distributed.all_reduce(part)
    show(part.sum().item())
    distributed.destroy_process_group()


def two_devices():
    import torch
    if torch.cuda.device_count() < 2:
        sys.exit('needs two GPUs')
    return [torch.device('cuda', number) for number in range(2)]


@case
def torch_peer_copies():
    import torch
    one, other = two_devices()
    for count in (1, 5000, 1 << 22):
        part = torch.arange(count, device=one)
        copy = part.to(other)
        back = (copy + 1).to(one)
        show(copy.device.index, torch.equal(copy.cpu(), part.cpu()), torch.equal(back, part + 1))
    rows = torch.arange(1 << 20, device=one).view(1024, 1024)
    turned = torch.empty(1024, 1024, dtype=rows.dtype, device=other)
    turned.copy_(rows.t())
    show(torch.equal(turned.cpu(), rows.t().cpu()))


@case
def torch_data_parallel():
    import torch
    two_devices()
    torch.manual_seed(1)
    model = torch.nn.DataParallel(conv_net(torch), device_ids=[0, 1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(64, 3, 32, 32).cuda(), torch.randint(0, 10, (64,)).cuda()
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    show(loss.item())


@case
def torch_pinned_register():
    import torch
    host = torch.ones(1 << 20)
    assert torch.cuda.cudart().cudaHostRegister(host.data_ptr(), host.numel() * 4, 0) == 0
    show(host.is_pinned(), (host.cuda(non_blocking=True) * 2).sum().item())
    torch.cuda.cudart().cudaHostUnregister(host.data_ptr())


def generated(**options):
    import torch
    import transformers
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_layer=4, n_embd=256, n_head=8, vocab_size=1000, n_positions=512) \
        if not options else transformers.LlamaConfig(num_hidden_layers=4, hidden_size=256, intermediate_size=512,
                                                     num_attention_heads=8, num_key_value_heads=8, vocab_size=1000)
    model = (transformers.GPT2LMHeadModel if not options else transformers.LlamaForCausalLM)(config).cuda().eval()
    prompt = torch.randint(0, 1000, (1, 16)).cuda()
    with torch.no_grad():
        for _ in range(2):
            out = model.generate(prompt, max_new_tokens=48, min_new_tokens=48, do_sample=False, pad_token_id=0, **options)
    show(out.sum().item())


@case
def generate_dynamic():
    generated()


@case
def generate_static_compiled():
    generated(cache_implementation='static')


# Triton reads a kernel's source, and wants it at the top of a file.
if sys.argv[1:] and sys.argv[1].startswith('triton'):
    import triton
    import triton.language as tl

    @triton.jit
    def triton_add_kernel(a, b, out, count, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < count
        tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)

    @triton.jit
    def triton_tile_kernel(source, target, M: tl.constexpr, N: tl.constexpr):
        tile = source.load([tl.program_id(0) * M, tl.program_id(1) * N])
        target.store([tl.program_id(0) * M, tl.program_id(1) * N], tile * 2)


@case
def triton_add():
    import torch
    a, b = torch.arange(10000.).cuda(), torch.ones(10000).cuda()
    out = torch.empty_like(a)
    triton_add_kernel[(10,)](a, b, out, 10000, BLOCK=1024)
    show(out.sum().item())


@case
def triton_tensor_maps():
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor
    a = torch.arange(256. * 256).reshape(256, 256).cuda()
    out = torch.empty_like(a)
    source, target = (TensorDescriptor.from_tensor(part, [64, 64]) for part in (a, out))
    triton_tile_kernel[(4, 4)](source, target, M=64, N=64)
    show(out.sum().item(), bool((out == 2 * a).all()))


@case
def cupy_basic():
    import cupy
    a = cupy.arange(1 << 20, dtype=cupy.float32)
    square = cupy.ElementwiseKernel('float32 x', 'float32 y', 'y = x * x', 'square_of')
    show(float(square(a).sum()), float(cupy.sort(-a)[0]), float(cupy.fft.fft(a[:1024]).real.sum()),
         float((cupy.eye(64) @ cupy.ones((64, 64))).sum()), int(cupy.unique(a.astype(cupy.int32) % 7).size))


@case
def cupy_raw_kernel():
    import cupy
    code = r'''extern "C" __global__ void scale(float *x, float f, int n)
    { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }'''
    module = cupy.RawModule(code=code)
    a = cupy.ones(1000, dtype=cupy.float32)
    module.get_function('scale')((4,), (256,), (a, cupy.float32(3), cupy.int32(1000)))
    show(float(a.sum()))


@case
def cupy_graph():
    import cupy
    a = cupy.zeros(1000, dtype=cupy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        a += 1
        stream.begin_capture()
        a += 1
        a *= 2
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch()
    stream.synchronize()
    show(float(a.sum()))


@case
def cupy_texture():
    import cupy
    from cupy.cuda import texture
    channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, cupy.cuda.runtime.cudaChannelFormatKindFloat)
    array = texture.CUDAarray(channel, 16, 16)
    source = cupy.arange(256, dtype=cupy.float32).reshape(16, 16)
    array.copy_from(source)
    resource = texture.ResourceDescriptor(cupy.cuda.runtime.cudaResourceTypeArray, cuArr=array)
    clamp = cupy.cuda.runtime.cudaAddressModeClamp
    descriptor = texture.TextureDescriptor((clamp, clamp), cupy.cuda.runtime.cudaFilterModePoint,
                                           cupy.cuda.runtime.cudaReadModeElementType)
    code = r'''extern "C" __global__ void read(cudaTextureObject_t t, float *out)
    { out[threadIdx.y * 16 + threadIdx.x] = tex2D<float>(t, threadIdx.x, threadIdx.y) * 2; }'''
    out = cupy.zeros((16, 16), dtype=cupy.float32)
    cupy.RawKernel(code, 'read')((1,), (16, 16), (texture.TextureObject(resource, descriptor), out))
    show(float(out.sum()))


@case
def cupy_pools():
    import cupy
    pool = cupy.cuda.MemoryAsyncPool()
    cupy.cuda.set_allocator(pool.malloc)
    show(float((cupy.ones(1 << 20) * 2).sum()))
    pinned = cupy.cuda.alloc_pinned_memory(1 << 16)
    show(pinned.size() >= 1 << 16)


@case
def cupy_managed():
    import cupy
    cupy.cuda.set_allocator(cupy.cuda.malloc_managed)
    show(float((cupy.ones(1 << 20) * 2).sum()))


@case
def jax_matmul():
    import jax
    import jax.numpy as jnp
    a = jnp.ones((512, 512))
    show(float(jax.jit(lambda x: (x @ x).sum())(a)), jax.devices()[0].platform)


@case
def jax_gradient():
    import jax
    import jax.numpy as jnp
    key = jax.random.PRNGKey(0)
    images, kernel = jax.random.normal(key, (8, 32, 32, 3)), jax.random.normal(key, (3, 3, 3, 16))

    @jax.jit
    def loss(weights):
        return jnp.tanh(jax.lax.conv_general_dilated(images, weights, (1, 1), 'SAME',
                                                     dimension_numbers=('NHWC', 'HWIO', 'NHWC'))).mean()
    show(round(float(loss(kernel)), 3), round(float(jnp.abs(jax.grad(loss)(kernel)).sum()), 3))


@case
def jax_autotuned():
    """Its autotuner has a kernel that polls pinned memory until the host writes it; no variable is needed."""
    import os
    os.environ.pop('CUDA_LAUNCH_BLOCKING', None)
    import jax
    import jax.numpy as jnp
    a = jnp.full((1024, 768), 0.5, jnp.bfloat16)
    b = jnp.full((768, 512), 0.25, jnp.bfloat16)
    show(float(jax.jit(lambda x, y: jax.nn.relu(x @ y + 1).astype(jnp.float32).sum())(a, b)))


def numba_and_numpy():
    """numba.cuda and numpy. An older Numba looks for names that a newer numpy has given up, and uses none of them here."""
    import numpy
    for gone, instead in (('row_stack', 'vstack'), ('in1d', 'isin'), ('trapz', 'trapezoid')):
        if not hasattr(numpy, gone):
            setattr(numpy, gone, getattr(numpy, instead))
    from numba import cuda
    return cuda, numpy


@case
def numba_mapped():
    """Kernels and the program have one array."""
    cuda, numpy = numba_and_numpy()

    @cuda.jit
    def twice(values):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= 2
    values = cuda.mapped_array(1000, dtype=numpy.float32)
    for turn in range(3):
        values[:] = numpy.arange(1000) + turn
        twice[4, 256](values)
        cuda.synchronize()
        show(float(values.sum()))


@case
def cupy_zero_copy():
    import cupy
    import numpy
    from cupy.cuda import runtime
    size = 4096
    pointer = runtime.hostAlloc(size * 4, runtime.hostAllocMapped)
    memory = cupy.cuda.UnownedMemory(pointer, size * 4, None, device_id=0)
    there = cupy.ndarray((size,), cupy.float32, cupy.cuda.MemoryPointer(memory, 0))
    import ctypes
    here = numpy.ctypeslib.as_array((ctypes.c_float * size).from_address(pointer))
    here[:] = numpy.arange(size)
    there *= 3
    runtime.deviceSynchronize()
    show(float(here.sum()))


@case
def numba_managed():
    cuda, numpy = numba_and_numpy()

    @cuda.jit
    def add(values, more):
        i = cuda.grid(1)
        if i < values.size:
            values[i] += more
    values = cuda.managed_array(100000, dtype=numpy.int64)
    values[:] = numpy.arange(100000)
    for turn in range(3):
        add[400, 256](values, turn)
        cuda.synchronize()
        values[turn] = -turn
        show(int(values.sum()))


@case
def numba_kernel():
    cuda, numpy = numba_and_numpy()

    @cuda.jit
    def twice(values):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= 2
    values = numpy.arange(1000, dtype=numpy.float32)
    device = cuda.to_device(values)
    twice[4, 256](device)
    show(float(device.copy_to_host().sum()))


@case
def cuda_python_link():
    from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, Program, ProgramOptions, launch
    import numpy
    device = Device(0)
    device.set_current()
    arch = 'sm_' + ''.join(str(part) for part in device.compute_capability)
    options = ProgramOptions(arch=arch, relocatable_device_code=True)
    parts = [Program(code, 'c++', options).compile('ptx') for code in (
        'extern __device__ int twice(int); extern "C" __global__ void run(int *x) { *x = twice(*x); }',
        '__device__ int twice(int x) { return 2 * x; }')]
    kernel = Linker(*parts, options=LinkerOptions(arch=arch)).link('cubin').get_kernel('run')
    stream = device.create_stream()
    buffer = device.allocate(4, stream=stream)
    from cuda.bindings import driver
    value = numpy.array([21], dtype=numpy.int32)
    driver.cuMemcpyHtoD(int(buffer.handle), value, 4)
    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
    stream.sync()
    driver.cuMemcpyDtoH(value, int(buffer.handle), 4)
    show(int(value[0]))


if __name__ == '__main__':
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        sys.exit(__doc__.strip() + '\nNAME: ' + ', '.join(CASES))
    CASES[sys.argv[1]]()
