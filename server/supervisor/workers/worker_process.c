/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/worker_process.h"

#include "base/clock.h"
#include "server/common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All processes between gpd_worker_process_start() and gpd_worker_process_destroy(). */
static struct gpd_worker_process *children;

#define TO(state) (1u << (GPD_WORKER_##state))

/* Valid successors of each state. */
static const unsigned int next_states[GPD_WORKER_STATES] = {
	[GPD_WORKER_STARTING] =
		TO(SERVING) | TO(SPARE) | TO(DEDICATED) | TO(ABANDONED) | TO(LOST) | TO(ENDING),
	[GPD_WORKER_SERVING] = TO(BUSY) | TO(RETIRED) | TO(LOST) | TO(ENDING),
	[GPD_WORKER_BUSY] = TO(SERVING) | TO(WEDGED) | TO(RETIRED) | TO(LOST) | TO(ENDING),
	[GPD_WORKER_WEDGED] = TO(SERVING) | TO(RETIRED) | TO(LOST) | TO(ENDING),
	[GPD_WORKER_SPARE] = TO(SERVING) | TO(RETIRED) | TO(DEDICATED) | TO(LOST) | TO(ENDING),
	[GPD_WORKER_RETIRED] = TO(LOST) | TO(ENDING),
	[GPD_WORKER_DEDICATED] = TO(ABANDONED) | TO(LOST) | TO(ENDING),
	[GPD_WORKER_ABANDONED] = TO(LOST) | TO(ENDING),
	[GPD_WORKER_LOST] = TO(ENDING),
	[GPD_WORKER_ENDING] = 0,
};

bool
gpd_worker_process_set_state(struct gpd_worker_process *process,
			     enum gpd_worker_process_state state)
{
	if (!(next_states[process->state] >> state & 1))
		return false;
	process->state = state;
	process->state_ms = gp_now_ms();
	return true;
}

/* Between fork and exec in a process with threads: only async-signal-safe functions. */
static void
become_worker(int fd, int ledger_fd, char *const argv[])
{
	sigset_t none;

	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) == 0 && fcntl(fd, F_SETFD, 0) == 0 &&
	    fcntl(ledger_fd, F_SETFD, 0) == 0)
		execv("/proc/self/exe", argv);
	_exit(127);
}

struct gpd_worker_process *
gpd_worker_process_start(const struct gpd_worker_start *start)
{
	struct gpd_worker_process *process = calloc(1, sizeof(*process));
	char number[16], ledger[16], queues[16], devices[GPD_DEVICE_LIST_TEXT_MAX];
	const char *argv[22] = { "gpupoold",
				 "--worker-fd",
				 number,
				 "--ledger-fd",
				 ledger,
				 "--log-level",
				 gpd_log_level_name(gpd_log_level),
				 "--devices",
				 devices };
	int count = 9;
	int fds[2], r;

	if (!process || (r = gpd_channel_pair(fds)) < 0) {
		free(process);
		return NULL;
	}
	gpd_device_list_format(&start->devices, devices);
	if (start->monitor)
		argv[count++] = "--monitor";
	if (start->connections) {
		argv[count++] = "--worker-connections";
		argv[count++] = queues;
	}
	if (start->driver) {
		argv[count++] = "--driver";
		argv[count++] = start->driver;
	}
	if (!start->software)
		argv[count++] = "--software-device=off";
	if (start->rdma) {
		argv[count++] = "--worker-rdma";
		argv[count++] = start->rdma;
	}
	if (!start->peer_memory)
		argv[count++] = "--peer-memory=off";
	if (start->syscall_filter) {
		argv[count++] = "--syscall-filter";
		argv[count++] = start->syscall_filter;
	}
	snprintf(number, sizeof(number), "%d", fds[1]);
	snprintf(ledger, sizeof(ledger), "%d", start->ledger_fd);
	snprintf(queues, sizeof(queues), "%d", start->connections);
	r = gpd_channel_init(&process->channel, fds[0]);
	if (r == 0)
		process->pid = fork();
	if (r == 0 && process->pid == 0)
		become_worker(fds[1], start->ledger_fd, (char *const *)argv);
	close(fds[1]);
	if (r || process->pid < 0) {
		int error = r ? -r : errno;

		gpd_channel_fini(&process->channel);
		free(process);
		errno = error;
		return NULL;
	}
	process->deadline_ms = INT64_MAX;
	process->connections = start->connections;
	process->memory_max = GPD_NO_LIMIT;
	process->poll_index = -1;
	process->devices = start->devices.used;
	process->contexts = start->devices.contexts;
	process->next_child = children;
	children = process;
	return process;
}

int
gpd_worker_process_follow_context(struct gpd_worker_process *process,
				  const struct gpd_channel_message *message)
{
	const struct gpd_channel_context *context = message->data;
	int device = message->header.result;
	uint32_t bit;

	if (device < 0 || device >= GPD_LEDGER_DEVICES || message->size != sizeof(*context) ||
	    context->step > GPD_CONTEXT_FAILED)
		return -1;
	bit = UINT32_C(1) << device;
	process->creating &= ~bit;
	if (context->step == GPD_CONTEXT_FAILED)
		process->contexts &= ~bit;
	else
		process->contexts |= bit;
	if (context->step == GPD_CONTEXT_STARTS)
		process->creating |= bit;
	process->context_bytes[device] = context->step == GPD_CONTEXT_CREATED ? context->bytes : 0;
	return device;
}

bool
gpd_worker_process_is_own(pid_t pid)
{
	const struct gpd_worker_process *child = children;

	while (child && child->pid != pid)
		child = child->next_child;
	return child || (pid > 0 && kill(pid, 0) && errno == ESRCH);
}

static void
children_remove(const struct gpd_worker_process *process)
{
	struct gpd_worker_process **p = &children;

	while (*p && *p != process)
		p = &(*p)->next_child;
	if (*p)
		*p = process->next_child;
}

void
gpd_worker_process_destroy(struct gpd_worker_process *process)
{
	children_remove(process);
	gpd_channel_fini(&process->channel);
	if (process->facts)
		gpupool__welcome__free_unpacked(process->facts, NULL);
	free(process);
}

void
gpd_worker_process_explain_exit(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
}
