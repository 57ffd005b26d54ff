/* SPDX-License-Identifier: Apache-2.0 */
/* Device state that is read from NVML, with a library of the test that has functions of each
 * shape. */
#include "base/clock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/nvml.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

static uint64_t words[GP_STATE_WORDS];
static char texts[GPD_NVML_TEXTS_MAX];
static size_t texts_size;

static CUresult
give_uuid(CUuuid *uuid, CUdevice device)
{
	for (int i = 0; i < 16; i++)
		uuid->bytes[i] = (char)i;
	uuid->bytes[14] = (char)0xfe;
	/* This NVML does not know the second GPU. */
	uuid->bytes[15] = device == 0 ? (char)0xff : 0;
	return CUDA_SUCCESS;
}

static int
setup(void **state)
{
	gpd_driver.cuDeviceGetUuid_v2 = give_uuid;
	gpd_devices.count = 2;
	gpd_devices.all[1].device = 1;
	return 0;
}

static void
read_device(int ordinal)
{
	memset(words, 0x55, sizeof(words));
	texts_size = gpd_nvml_read(ordinal, words, texts);
}

UNIT_TEST(every_shape_of_function_is_asked)
{
	read_device(0);
	assert_int_equal(words[8], 1001);
	assert_true(words[50] == UINT64_C(1) << 40);
	assert_int_equal(words[56], 1);
	assert_int_equal(words[57], 0);
	assert_int_equal(words[68], 97);
	assert_int_equal(words[69], 43);
	assert_int_equal(words[75], 100);
	assert_int_equal(words[77], 102);
	assert_true(words[94] == (UINT64_C(1) << 33) + 10);
	assert_true(words[95] == (UINT64_C(1) << 33) + 11);
	assert_int_equal(words[GP_STATE_SYSTEM_CUDA], 13000);
	assert_int_equal(words[GP_STATE_BAR1_TOTAL], 256);
	assert_int_equal(words[GP_STATE_BAR1_FREE], 200);
	assert_int_equal(words[GP_STATE_PCI_ID], 0x233010de);
	assert_int_equal(words[GP_STATE_PCI_SUBSYSTEM], 0x16c110de);
}

UNIT_TEST(what_it_refuses_or_lacks_is_not_known)
{
	read_device(0);
	assert_true(words[15] == GP_STATE_NONE); /* refused */
	assert_true(words[78] == GP_STATE_NONE); /* refused for this argument */
	assert_true(words[9] == GP_STATE_NONE);  /* lacked */
}

UNIT_TEST(texts_are_told_with_their_ends)
{
	static const char wanted[] = "580.65\0\0004711\0\0\0";
	const char *branch = texts + sizeof(wanted);

	read_device(0);
	assert_int_equal(texts_size, sizeof(wanted) + 81);
	assert_memory_equal(texts, wanted, sizeof(wanted));
	assert_int_equal(strspn(branch, "b"), 80);
	assert_int_equal(branch[80], '\0');
}

UNIT_TEST(it_is_asked_again_when_that_is_worth_it)
{
	uint64_t first;

	read_device(0);
	first = words[8];
	gp_clock_advance(GPD_NVML_AGE_NS);
	read_device(0);
	assert_int_equal(words[8], first + 1);
}

UNIT_TEST(a_device_that_it_does_not_know_has_nothing)
{
	read_device(1);
	for (size_t i = GP_STATE_NVML; i < GP_STATE_WORDS; i++)
		assert_true(words[i] == GP_STATE_NONE);
	assert_int_equal(texts_size, GP_STATE_TEXTS);
}

UNIT_TEST(memory_of_this_process_is_separated_from_that_of_others)
{
	assert_int_equal(gpd_nvml_get_free_memory(0), 7000);
	(void)setenv("FAKE_USED", "518", 1);
	assert_int_equal(gpd_nvml_get_own_memory(0, 9000), 518);
	(void)unsetenv("FAKE_USED");
	assert_int_equal(gpd_nvml_get_own_memory(0, 9000), 2000);
	(void)setenv("FAKE_CONTAINER", "1", 1);
	assert_int_equal(gpd_nvml_get_own_memory(0, 9000), 2000);
	/* Others have freed memory meanwhile, or nothing is known. */
	assert_int_equal(gpd_nvml_get_own_memory(0, 6000), 0);
	assert_int_equal(gpd_nvml_get_own_memory(0, 0), 0);
	(void)unsetenv("FAKE_CONTAINER");
}

UNIT_TEST(memory_of_a_device_that_it_does_not_know_is_not_known)
{
	assert_int_equal(gpd_nvml_get_free_memory(1), 0);
	assert_int_equal(gpd_nvml_get_own_memory(1, 9000), 0);
}

UNIT_TEST_MAIN(setup, NULL)
