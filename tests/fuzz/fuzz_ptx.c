/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text as programs bring it: parsed, linked, decoded, thrown away. */
#include "softgpu/engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gs_engine_options options = { .workers = 1, .isa = GS_ISA_BASELINE };
	struct gs_module *module;
	struct gs_error error;

	if (gs_engine_init(&options) == GS_OK &&
	    gs_module_load((const char *)data, size, &module, &error) == GS_OK)
		gs_module_unload(module);
	return 0;
}
