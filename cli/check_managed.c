/* SPDX-License-Identifier: Apache-2.0 */
/* check: handling of page faults on managed memory. */
#include "base/userfault.h"
#include "cli/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
check_managed(void)
{
	const char *wanted = getenv("GPUPOOL_MANAGED");
	bool in_kernel;
	int fd;

	if (wanted && strcmp(wanted, "signal") == 0) {
		check_print(CHECK_NOTE, "managed",
			    "by SIGSEGV, set by GPUPOOL_MANAGED: see gpupool(7) for the limits");
		return;
	}
	fd = gp_userfault_open(&in_kernel);
	if (fd >= 0)
		(void)close(fd);
	if (fd < 0)
		check_print(CHECK_NOTE, "managed",
			    "by SIGSEGV, as userfaultfd is not available (%s): a program that "
			    "handles or blocks the signal crashes at managed memory, and system "
			    "calls fail with EFAULT while the GPU has the memory; Linux 5.19 and a "
			    "seccomp profile that allows userfaultfd help",
			    strerror(-fd));
	else if (!in_kernel)
		check_print(CHECK_NOTE, "managed",
			    "by userfaultfd, without system calls: they fail with EFAULT while the "
			    "GPU has the memory; access to /dev/userfaultfd or "
			    "vm.unprivileged_userfaultfd=1 helps");
	else
		check_print(CHECK_OK, "managed", "by userfaultfd, system calls included");
}
