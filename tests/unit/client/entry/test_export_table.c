/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/export_table.h"
#include "client/entry/init.h"
#include "tests/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UNUSED ((uintptr_t)0)

typedef CUresult (*any_slot)(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e);

/* Replacements of functions in the rest of the client. */

static char context_0, context_1, module_0, function_0, function_1;
static bool initialized;
static CUcontext current;
static const void *loaded_image;

bool
gpc_is_initialized(void)
{
	return initialized;
}

int
gpc_driver_version(void)
{
	return 13000;
}

CUcontext
gpc_context_get_current_token(void)
{
	return current;
}

CUresult
gpc_context_primary_handle(CUcontext *ctx_p, CUdevice dev)
{
	if (dev != 1)
		return CUDA_ERROR_INVALID_DEVICE;
	*ctx_p = (CUcontext)(void *)&context_1;
	return CUDA_SUCCESS;
}

CUresult
gpc_context_id(CUcontext ctx, uint64_t *id_p)
{
	*id_p = ctx == (CUcontext)(void *)&context_1 ? 17 : 16;
	return CUDA_SUCCESS;
}

CUresult
gpc_module_load(CUmodule *module_p, const void *image)
{
	loaded_image = image;
	*module_p = (CUmodule)(void *)&module_0;
	return CUDA_SUCCESS;
}

int
gpc_module_each_function(CUmodule module,
			 void (*callback)(void *opaque, CUfunction function, uint64_t number),
			 void *opaque)
{
	if (module != (CUmodule)(void *)&module_0)
		return 0;
	callback(opaque, (CUfunction)(void *)&function_0, 0);
	callback(opaque, (CUfunction)(void *)&function_1, 1);
	return 2;
}

int
gpc_devices_get_identity(struct gpc_device_identity *out, int max)
{
	assert_true(max >= 1);
	out[0] = (struct gpc_device_identity){ .uuid = "the only device", .pci_bus = 0x21 };
	return 1;
}

/* The ids as they are written in text. */
#define CUDART_INTERFACE "6bd5fb6c5bf4e74a8987d93912fd9df9"
#define RUNTIME_HOOKS "a094798c2e742e7493f20800200c0a66"
#define TOOLS_TLS "42d85a8123f6cb478298f6e78a3aecdc"
#define CONTEXT_STORAGE "c693336e1121df11a8c368f355d89593"
#define CONTEXT_CHECKS "263e88607cd2614392f6bbd5006dfa7e"
#define INTEGRITY "d4082055bde6704b8d34ba123c66e1f2"
#define TOOLS_CONTEXT "21318c60971432488ca641ff7324c8f2"
#define TOOLS_MODULE "6e163fbeb958444d835ce182aff1991e"
#define CUBLASLT "1734dc26800d47458726c0f1e7dd8bca"

static CUuuid
id_of(const char *text)
{
	CUuuid id;

	assert_int_equal(strlen(text), 2 * sizeof(id.bytes));
	for (size_t i = 0; i < sizeof(id.bytes); i++) {
		unsigned int byte;

		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		id.bytes[i] = (char)byte;
	}
	return id;
}

static void *const *
table(const char *text)
{
	CUuuid id = id_of(text);
	const void *found = NULL;

	assert_int_equal(gpc_export_table_get(&found, &id), CUDA_SUCCESS);
	assert_non_null(found);
	return found;
}

static int
begin(void **state)
{
	initialized = true;
	current = NULL;
	loaded_image = NULL;
	return 0;
}

#define TEST(test) UNIT_TEST_WITH(test, begin, NULL)

/* Runs before all others: the environment is read at the first request. */
TEST(log_names_requests_and_slots_that_are_not_supported)
{
	char text[1024] = "";
	int saved = dup(STDERR_FILENO), log = memfd_create("log", MFD_CLOEXEC);
	CUuuid unknown = id_of("f8cff95121468b4eb9e2fb469e7c0dd9");
	const void *found;
	CUresult result;

	assert_true(saved >= 0 && log >= 0);
	assert_int_equal(setenv("GPUPOOL_LOG", "wire,tables", 1), 0);
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	(void)gpc_export_table_get(&found, &unknown);
	result = ((any_slot)table(TOOLS_CONTEXT)[57])(0xab, 2, 3, 4, 5);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);

	assert_true(pread(log, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(result, CUDA_ERROR_NOT_SUPPORTED);
	assert_non_null(strstr(text, "f8cff95121468b4eb9e2fb469e7c0dd9 refused"));
	assert_non_null(strstr(text, "21318c60971432488ca641ff7324c8f2 tools_context"));
	assert_non_null(strstr(text, "tools_context[57](0xab, 0x2, 0x3, 0x4, 0x5)"));
	assert_int_equal(close(saved), 0);
	assert_int_equal(close(log), 0);
}

TEST(every_table_has_its_size_and_no_empty_slot)
{
	static const struct {
		const char *id;
		size_t slots;
	} expected[] = {
		{ CUDART_INTERFACE, 13 }, { RUNTIME_HOOKS, 7 }, { TOOLS_TLS, 4 },
		{ CONTEXT_CHECKS, 16 },   { INTEGRITY, 3 },     { TOOLS_CONTEXT, 96 },
		{ TOOLS_MODULE, 96 },     { CUBLASLT, 16 },
	};

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		void *const *slots = table(expected[i].id);

		assert_int_equal((uintptr_t)slots[0], expected[i].slots * sizeof(void *));
		for (size_t slot = 1; slot < expected[i].slots; slot++)
			assert_non_null(slots[slot]);
	}
}

TEST(context_storage_has_no_size_and_ends_with_null)
{
	void *const *slots = table(CONTEXT_STORAGE);

	assert_true((uintptr_t)slots[0] > 4096);
	assert_non_null(slots[1]);
	assert_non_null(slots[2]);
	assert_null(slots[3]);
}

TEST(table_stays_at_its_address)
{
	assert_ptr_equal(table(CUDART_INTERFACE), table(CUDART_INTERFACE));
	assert_ptr_not_equal(table(CUDART_INTERFACE), table(INTEGRITY));
}

TEST(tables_that_are_not_served_are_refused_with_null)
{
	static const char *const refused[] = { "f8cff95121468b4eb9e2fb469e7c0dd9",
					       "da9151d33ae6cc41a5c04f26d533e328",
					       "0ca50b8c1004929a89a7d0df10e77286",
					       "00000000000000000000000000000000" };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		CUuuid id = id_of(refused[i]);
		const void *found = &id;

		assert_int_equal(gpc_export_table_get(&found, &id), CUDA_ERROR_INVALID_VALUE);
		assert_null(found);
	}
}

TEST(missing_argument_is_an_invalid_value)
{
	CUuuid id = id_of(INTEGRITY);
	const void *found;

	assert_int_equal(gpc_export_table_get(NULL, &id), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_export_table_get(&found, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void
expect_unsupported(const char *id, size_t slot)
{
	any_slot call = (any_slot)table(id)[slot];

	assert_int_equal(call(1, 2, 3, 4, 5), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(what_is_not_filled_in_is_not_supported)
{
	for (size_t slot = 1; slot < 16; slot++)
		expect_unsupported(CUBLASLT, slot);
	for (size_t slot = 1; slot < 96; slot++) {
		if (slot != 4 && slot != 39 && slot != 51)
			expect_unsupported(TOOLS_CONTEXT, slot);
		if (slot != 7)
			expect_unsupported(TOOLS_MODULE, slot);
	}
	for (size_t slot = 1; slot < 16; slot++) {
		if (slot != 2 && slot != 3)
			expect_unsupported(CONTEXT_CHECKS, slot);
	}
	expect_unsupported(CUDART_INTERFACE, 11);
	expect_unsupported(RUNTIME_HOOKS, 1);
	expect_unsupported(TOOLS_TLS, 1);
	expect_unsupported(INTEGRITY, 2);
}

TEST(primary_context_is_handed_out)
{
	CUresult (*call)(CUcontext *, CUdevice) =
		(CUresult(*)(CUcontext *, CUdevice))table(CUDART_INTERFACE)[2];
	CUcontext ctx = NULL;

	assert_int_equal(call(&ctx, 1), CUDA_SUCCESS);
	assert_ptr_equal(ctx, &context_1);
	assert_int_equal(call(&ctx, 5), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(call(NULL, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(older_runtimes_load_images)
{
	void *const *slots = table(CUDART_INTERFACE);
	char image;

	for (int slot = 1; slot <= 8; slot += slot == 1 ? 5 : 2) {
		CUmodule module = NULL;
		bool swapped = slot == 8;

		loaded_image = NULL;
		assert_int_equal(((any_slot)slots[slot])(
					 (uintptr_t)(swapped ? (void *)&image : (void *)&module),
					 (uintptr_t)(swapped ? (void *)&module : (void *)&image),
					 UNUSED, UNUSED, UNUSED),
				 CUDA_SUCCESS);
		assert_ptr_equal(loaded_image, &image);
		assert_ptr_equal(module, &module_0);
	}
}

TEST(compilers_are_there_for_newer_runtimes)
{
	CUresult (*call)(void) = (CUresult(*)(void))table(CUDART_INTERFACE)[12];

	assert_int_equal(call(), CUDA_SUCCESS);
}

TEST(no_callback_of_a_tool_is_asked_for)
{
	static const struct {
		int slot;
		size_t least;
	} hooks[] = { { 2, 523 }, { 6, 14 } };

	for (int i = 0; i < 2; i++) {
		void (*call)(uint32_t **, size_t *) =
			(void (*)(uint32_t **, size_t *))table(RUNTIME_HOOKS)[hooks[i].slot];
		uint32_t *flags = NULL;
		size_t count = 0;

		call(&flags, &count);
		assert_true(count >= hooks[i].least);
		for (size_t flag = 0; flag < count; flag++)
			assert_int_equal(flags[flag], 0);
	}
}

TEST(current_context_is_told_to_tools)
{
	CUresult (*call)(CUcontext *) = (CUresult(*)(CUcontext *))table(TOOLS_TLS)[2];
	CUcontext ctx = (CUcontext)(void *)&context_0;

	assert_int_equal(call(&ctx), CUDA_SUCCESS);
	assert_null(ctx);
	current = (CUcontext)(void *)&context_1;
	assert_int_equal(call(&ctx), CUDA_SUCCESS);
	assert_ptr_equal(ctx, &context_1);
	assert_int_equal(call(NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(storage_of_no_context_is_that_of_the_current_one)
{
	void *const *slots = table(CONTEXT_STORAGE);
	any_slot put = (any_slot)slots[0], delete = (any_slot)slots[1], get = (any_slot)slots[2];
	uintptr_t key = 0x1000;
	void *value = NULL;

	assert_int_equal(put(0, key, 7, 0, UNUSED), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(get((uintptr_t)&value, 0, key, UNUSED, UNUSED),
			 CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(delete (0, key, UNUSED, UNUSED, UNUSED), CUDA_ERROR_INVALID_CONTEXT);

	current = (CUcontext)(void *)&context_0;
	assert_int_equal(get((uintptr_t)&value, 0, key, UNUSED, UNUSED), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(put(0, key, 7, 0, UNUSED), CUDA_SUCCESS);

	current = NULL;
	assert_int_equal(get((uintptr_t)&value, (uintptr_t)&context_0, key, UNUSED, UNUSED),
			 CUDA_SUCCESS);
	assert_int_equal((uintptr_t)value, 7);
	assert_int_equal(delete ((uintptr_t)&context_0, key, UNUSED, UNUSED, UNUSED), CUDA_SUCCESS);
	assert_int_equal(get((uintptr_t)&value, (uintptr_t)&context_0, key, UNUSED, UNUSED),
			 CUDA_ERROR_INVALID_HANDLE);
}

TEST(context_checks_find_nothing_wrong)
{
	void *const *slots = table(CONTEXT_CHECKS);
	CUresult (*check)(CUcontext, uint32_t *, const void **) =
		(CUresult(*)(CUcontext, uint32_t *, const void **))slots[2];
	uint32_t (*check_nothing)(void) = (uint32_t(*)(void))slots[3];
	const void *more = &more;
	uint32_t answer = 1;

	assert_int_equal(check((CUcontext)(void *)&context_0, &answer, &more), CUDA_SUCCESS);
	assert_int_equal(answer, 0);
	assert_ptr_equal(more, &more);
	assert_int_equal(check_nothing(), 0);
}

TEST(integrity_is_answered_for_this_process_and_thread)
{
	void *const *slots = table(INTEGRITY);
	CUresult (*call)(uint32_t, uint64_t, uint8_t *) =
		(CUresult(*)(uint32_t, uint64_t, uint8_t *))slots[1];
	struct gpc_device_identity device = { .uuid = "the only device", .pci_bus = 0x21 };
	struct gpc_integrity_input input = {
		.driver_version = 13000,
		.version = 13002,
		.process_id = (uint32_t)getpid(),
		.thread_id = (uint32_t)(uintptr_t)pthread_self(),
		.cudart_table = (uintptr_t)table(CUDART_INTERFACE),
		.integrity_table = (uintptr_t)slots,
		.integrity_function = (uintptr_t)slots[1],
		.seconds = 1765432100,
		.devices = &device,
		.device_count = 1,
	};
	uint8_t expected[GPC_INTEGRITY_LEN], answer[GPC_INTEGRITY_LEN] = { 0 };

	gpc_integrity_digest(&input, expected);
	assert_int_equal(call(13002, 1765432100, answer), CUDA_SUCCESS);
	assert_memory_equal(answer, expected, sizeof(expected));
}

TEST(integrity_is_not_answered_before_initialization)
{
	CUresult (*call)(uint32_t, uint64_t, uint8_t *) =
		(CUresult(*)(uint32_t, uint64_t, uint8_t *))table(INTEGRITY)[1];
	uint8_t answer[GPC_INTEGRITY_LEN];

	initialized = false;
	assert_int_equal(call(13002, 1765432100, answer), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(context_has_a_number_and_no_context_has_zero)
{
	CUresult (*call)(CUcontext, uint64_t *) =
		(CUresult(*)(CUcontext, uint64_t *))table(TOOLS_CONTEXT)[4];
	uint64_t id = 99;

	assert_int_equal(call((CUcontext)(void *)&context_1, &id), CUDA_SUCCESS);
	assert_int_equal(id, 17);
	assert_int_equal(call(NULL, &id), CUDA_SUCCESS);
	assert_int_equal(id, 0);
}

TEST(every_stream_has_an_object_of_its_own)
{
	void *const *slots = table(TOOLS_CONTEXT);
	CUresult (*object_of)(CUcontext, CUstream, void **) =
		(CUresult(*)(CUcontext, CUstream, void **))slots[51];
	CUresult (*value_of)(CUcontext, void *, uint64_t *) =
		(CUresult(*)(CUcontext, void *, uint64_t *))slots[39];
	CUstream streams[] = { NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD,
			       (CUstream)(void *)&context_0 };
	void *objects[4], *again;
	uint64_t value = 1;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(object_of(NULL, streams[i], &objects[i]), CUDA_SUCCESS);
		assert_int_equal(object_of(NULL, streams[i], &again), CUDA_SUCCESS);
		assert_non_null(objects[i]);
		assert_ptr_equal(objects[i], again);
		for (int other = 0; other < i; other++)
			assert_ptr_not_equal(objects[other], objects[i]);
		assert_int_equal(value_of(NULL, objects[i], &value), CUDA_SUCCESS);
		assert_int_equal(value, 0);
	}
}

static void
note_function(void *opaque, CUfunction function, uint64_t number)
{
	CUfunction *functions = opaque;

	functions[number] = function;
}

TEST(functions_of_a_module_are_counted_and_handed_out)
{
	int (*call)(CUcontext, CUmodule, void (*)(void *, CUfunction, uint64_t), void *) =
		(int (*)(CUcontext, CUmodule, void (*)(void *, CUfunction, uint64_t), void *))table(
			TOOLS_MODULE)[7];
	CUfunction functions[2] = { NULL, NULL };

	assert_int_equal(call(NULL, (CUmodule)(void *)&module_0, note_function, functions), 2);
	assert_ptr_equal(functions[0], &function_0);
	assert_ptr_equal(functions[1], &function_1);
}

UNIT_TEST_MAIN(NULL, NULL)
