/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of core dumps: the defaults, the application's, and those of a context. */
#include "driver_app.h"

#include <cstring>
#include <string>
#include <unistd.h>

static std::string
get_text(CUcoredumpSettings attribute, bool global)
{
	char text[1024] = "";
	size_t size = sizeof(text);

	CHECK(global ? cuCoredumpGetAttributeGlobal(attribute, text, &size)
		     : cuCoredumpGetAttribute(attribute, text, &size));
	return text;
}

static void
set_text(CUcoredumpSettings attribute, const char *text, bool global)
{
	size_t size = strlen(text) + 1;

	CHECK(global ? cuCoredumpSetAttributeGlobal(attribute, (void *)text, &size)
		     : cuCoredumpSetAttribute(attribute, (void *)text, &size));
}

static bool
is_set(CUcoredumpSettings attribute)
{
	bool value = false;
	size_t size = sizeof(value);

	CHECK(cuCoredumpGetAttribute(attribute, &value, &size));
	return value;
}

static void
defaults()
{
	std::string pid = "." + std::to_string(getpid()), file = get_text(CU_COREDUMP_FILE, false);

	REQUIRE(!is_set(CU_COREDUMP_ENABLE_ON_EXCEPTION));
	REQUIRE(!is_set(CU_COREDUMP_ENABLE_USER_TRIGGER));
	REQUIRE(!is_set(CU_COREDUMP_LIGHTWEIGHT));
	REQUIRE(is_set(CU_COREDUMP_TRIGGER_HOST));
	REQUIRE(file.compare(0, 10, "core.cuda.") == 0);
	REQUIRE(file.compare(file.size() - pid.size(), pid.size(), pid) == 0);
	REQUIRE(get_text(CU_COREDUMP_PIPE, true).compare(0, 14, "corepipe.cuda.") == 0);
	printf("defaults: right\n");
}

static void
settings()
{
	bool off = false;
	size_t size = sizeof(off);
	int flags = CU_COREDUMP_SKIP_GLOBAL_MEMORY;

	set_text(CU_COREDUMP_FILE, "of-all", true);
	REQUIRE(get_text(CU_COREDUMP_FILE, true) == "of-all");
	set_text(CU_COREDUMP_FILE, "of-one", false);
	REQUIRE(get_text(CU_COREDUMP_FILE, false) == "of-one");
	REQUIRE(get_text(CU_COREDUMP_FILE, true) == "of-all");
	CHECK(cuCoredumpSetAttribute(CU_COREDUMP_TRIGGER_HOST, &off, &size));
	REQUIRE(!is_set(CU_COREDUMP_TRIGGER_HOST));
	size = sizeof(flags);
	CHECK(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
	flags = 0;
	CHECK(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
	REQUIRE(flags == CU_COREDUMP_SKIP_GLOBAL_MEMORY);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuCoredumpGetAttribute((CUcoredumpSettings)99, &flags, &size));
	printf("settings: right\n");
}

int
main()
{
	CUcontext context;
	size_t size = 1;
	bool value;

	CHECK(cuInit(0));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT,
	       cuCoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &value, &size));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	defaults();
	settings();
	CHECK(cuDevicePrimaryCtxRelease(0));
	printf("coredumps: ok\n");
	return 0;
}
