/* SPDX-License-Identifier: Apache-2.0 */
/* The toolkit's cuda.h and the description say the same of every call, or this does not compile. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

/* clang-format off */
#include "codegen/api/vocabulary.h"
#include "codegen/api/context.h"
#include "codegen/api/copy.h"
#include "codegen/api/device.h"
#include "codegen/api/entry.h"
#include "codegen/api/error.h"
#include "codegen/api/event.h"
#include "codegen/api/function.h"
#include "codegen/api/init.h"
#include "codegen/api/library.h"
#include "codegen/api/memory.h"
#include "codegen/api/message.h"
#include "codegen/api/module.h"
#include "codegen/api/occupancy.h"
#include <cudaProfiler.h>
#include "codegen/api/profiler.h"
#include "codegen/api/stream.h"
#include "codegen/api/symbols.h"
/* clang-format on */
