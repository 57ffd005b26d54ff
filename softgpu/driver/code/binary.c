/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/code/binary.h"

#include "image/fatbin.h"
#include "softgpu/driver/code/reference.h"
#include "softgpu/driver/memory/space.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTX_MAX ((size_t)256 << 20)

struct text {
	char *data;
	size_t size;
};

static void
code_destroy(struct gs_object *object)
{
	struct gs_binary *code = (struct gs_binary *)object;

	for (int i = 0; i < GS_DEVICES_MAX; i++) {
		if (code->twins[i])
			gs_binary_unload(code->twins[i]);
	}
	gs_references_free(code);
	if (code->engine) {
		for (size_t i = 0; i < gs_module_global_count(code->engine); i++) {
			struct gs_global global;

			gs_module_global_at(code->engine, i, &global);
			gs_space_remove_variable(global.address);
		}
		gs_module_unload(code->engine);
	}
	gs_space_discharge(code->device, code->charged);
	free(code->text);
	free(code->kernels);
	free(code);
}

/* The engine links texts that follow each other; each begins with its .version. */
static int
text_append(struct text *text, const char *more, size_t size)
{
	char *larger = realloc(text->data, text->size + size + 2);

	if (!larger)
		return -ENOMEM;
	text->data = larger;
	size = strnlen(more, size);
	memcpy(text->data + text->size, more, size);
	text->size += size;
	text->data[text->size++] = '\n';
	text->data[text->size] = '\0';
	return 0;
}

static int
collect(const struct gp_image *image, struct text *text)
{
	for (unsigned int i = 0; i < gp_image_count(image); i++) {
		char *ptx;
		size_t size;
		int r = gp_image_software_ptx(image, i, PTX_MAX - text->size, &ptx, &size);

		if (r == GP_IMAGE_E_NONE)
			continue;
		if (r)
			return r;
		r = text_append(text, ptx, size);
		free(ptx);
		if (r)
			return r;
	}
	return text->size ? 0 : GP_IMAGE_E_NONE;
}

static CUresult
read_image(const void *pointer, struct text *text)
{
	struct gp_image *image;
	int r = gp_image_create(pointer, &image);

	if (!r) {
		r = collect(image, text);
		gp_image_destroy(image);
	}
	if (r == GP_IMAGE_E_NONE) {
		fputs("gpupool software device: the program has machine code only, no PTX: "
		      "build it with PTX, e.g. nvcc -arch=compute_75\n",
		      stderr);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (r == -ENOMEM)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return r ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

static void
report(const struct gs_error *error, const struct gs_jit_log *log)
{
	int n;

	fprintf(stderr, "gpupool software device: PTX: %s\n", error->text);
	if (!log->buffer || !log->size)
		return;
	n = snprintf(log->buffer, log->size, "%s", error->text);
	if (log->size_p)
		*log->size_p = (void *)(uintptr_t)((size_t)n < log->size ? (size_t)n : log->size);
}

static void
kernel_init(struct gs_kernel *kernel, struct gs_binary *code, size_t i)
{
	kernel->code = code;
	kernel->engine = gs_module_function_at(code->engine, i);
	gs_function_info(kernel->engine, &kernel->info);
	gs_object_init(&kernel->object, GS_KIND_KERNEL, &code->object, NULL);
	gs_object_init(&kernel->function, GS_KIND_FUNCTION, &code->object, NULL);
	kernel->dynamic_shared_max = kernel->info.shared_bytes < GS_BLOCK_SHARED
					     ? GS_BLOCK_SHARED - (int)kernel->info.shared_bytes
					     : 0;
	kernel->carveout = CU_SHAREDMEM_CARVEOUT_DEFAULT;
}

static CUresult
add_variables(struct gs_binary *code)
{
	size_t count = gs_module_global_count(code->engine), sum = 0;

	for (size_t i = 0; i < count; i++) {
		struct gs_global global;
		CUresult r;

		gs_module_global_at(code->engine, i, &global);
		sum += global.size;
		r = gs_space_add_variable(global.address, global.size);
		if (r)
			return r;
	}
	if (!gs_space_charge(code->device, sum))
		return CUDA_ERROR_OUT_OF_MEMORY;
	code->charged = sum;
	return CUDA_SUCCESS;
}

static CUresult
fill(struct gs_binary *code)
{
	code->kernel_count = gs_module_function_count(code->engine);
	code->kernels = calloc(code->kernel_count + 1, sizeof(*code->kernels));
	if (!code->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < code->kernel_count; i++)
		kernel_init(&code->kernels[i], code, i);
	return add_variables(code);
}

static void
publish(struct gs_binary *code)
{
	for (size_t i = 0; i < code->kernel_count; i++) {
		gs_object_publish(&code->kernels[i].function);
		if (code->is_library)
			gs_object_publish(&code->kernels[i].object);
	}
	gs_object_publish(&code->module);
	if (code->is_library)
		gs_object_publish(&code->object);
}

static CUresult
load_text(struct gs_binary *code, const struct text *text, const struct gs_jit_log *log)
{
	struct gs_error error = { 0 };
	CUresult r = (CUresult)gs_module_load(text->data, text->size, &code->engine, &error);

	if (r == CUDA_ERROR_INVALID_PTX)
		report(&error, log);
	return r ? r : fill(code);
}

/* Creates an object that is not yet published. */
static CUresult
create(const struct text *text, enum gs_kind module, int device, const struct gs_jit_log *log,
       struct gs_binary **code_p)
{
	struct gs_binary *code = calloc(1, sizeof(*code));
	CUresult r;

	if (!code)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gs_object_init(&code->object, GS_KIND_LIBRARY, NULL, code_destroy);
	gs_object_init(&code->module, module, &code->object, NULL);
	code->device = device;
	r = load_text(code, text, log);
	if (r)
		gs_object_put(&code->object);
	*code_p = code;
	return r;
}

CUresult
gs_binary_load(const void *image, bool is_library, const struct gs_jit_log *log,
	       struct gs_binary **code_p)
{
	struct text text = { 0 };
	CUresult r = read_image(image, &text);

	if (!r)
		r = create(&text, is_library ? GS_KIND_LIBRARY_MODULE : GS_KIND_MODULE,
			   gs_device_current(), log, code_p);
	if (!r) {
		(*code_p)->is_library = is_library;
		publish(*code_p);
	}
	if (!r && is_library && gs_device_count() > 1) {
		(*code_p)->text = text.data;
		(*code_p)->text_size = text.size;
	} else {
		free(text.data);
	}
	return r;
}

CUresult
gs_binary_on(struct gs_binary *code, int device, struct gs_binary **on_p)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct text text = { code->text, code->text_size };
	CUresult r = CUDA_SUCCESS;

	*on_p = code;
	if (!code->is_library || device == code->device)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (!code->twins[device]) {
		r = create(&text, GS_KIND_LIBRARY_MODULE, device, &(struct gs_jit_log){ 0 }, on_p);
		if (!r) {
			publish(*on_p);
			code->twins[device] = *on_p;
		}
	}
	*on_p = code->twins[device];
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult
gs_kernel_on(struct gs_kernel **kernel_p, int device)
{
	struct gs_kernel *kernel = *kernel_p;
	struct gs_binary *on;
	CUresult r = gs_binary_on(kernel->code, device, &on);

	if (r || on == kernel->code)
		return r;
	*kernel_p = &on->kernels[kernel - kernel->code->kernels];
	gs_object_ref(&(*kernel_p)->object);
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}

void
gs_binary_unload(struct gs_binary *code)
{
	for (size_t i = 0; i < code->kernel_count; i++) {
		(void)gs_object_retire(&code->kernels[i].function, GS_KIND_FUNCTION);
		(void)gs_object_retire(&code->kernels[i].object, GS_KIND_KERNEL);
	}
	(void)gs_object_retire(&code->module, code->module.kind);
	gs_references_retire(code);
	gs_object_put(&code->object);
}

void
gs_binary_destroy_all(void)
{
	struct gs_object *module;

	while ((module = gs_object_retire_any(GS_KIND_MODULE)))
		gs_binary_unload((struct gs_binary *)module->owner);
}

struct gs_kernel *
gs_kernel_get(const void *handle)
{
	struct gs_object *object = gs_object_get(handle, GS_KIND_FUNCTION);

	if (object)
		return (struct gs_kernel *)((char *)object - offsetof(struct gs_kernel, function));
	return gs_object_get(handle, GS_KIND_KERNEL);
}

void
gs_kernel_put(struct gs_kernel *kernel)
{
	gs_object_put(&kernel->object);
}

struct gs_kernel *
gs_binary_kernel(const struct gs_binary *code, const char *name)
{
	for (size_t i = 0; i < code->kernel_count; i++) {
		if (!strcmp(code->kernels[i].info.name, name))
			return &code->kernels[i];
	}
	return NULL;
}
