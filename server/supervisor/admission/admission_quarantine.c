/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the sessions of an incident to programs for the quarantine, and isolates the sessions of
 * programs in quarantine. */
#include "base/clock.h"
#include "server/supervisor/admission/admission_internal.h"
#include "server/supervisor/workers/orphaned_work.h"

#include <cuda.h>
#include <stdio.h>

/* Returns whether a kernel of a program causes this error, rather than the GPU or the driver. */
static bool
is_kernel_fault(int result)
{
	switch (result) {
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
		return true;
	default:
		return false;
	}
}

static uint32_t
get_seconds(const struct gpd_admission *admission)
{
	return admission->quota->tenants.config->quarantine;
}

static void
program_from_session(const struct gpd_admission *admission, const struct gpd_ledger_session *entry,
		     struct gpd_program *program)
{
	const struct gpd_ledger *ledger = admission->quota->ledger;
	const struct gpd_session_owner *client =
		gpd_session_owner(&admission->session_owners, gpd_ledger_index(ledger, entry),
				  atomic_load(&entry->id));

	gpd_program_set(program, ledger->tenants[entry->tenant].name, client->program_key,
			sizeof(client->program_key), client->host, client->user, client->program);
}

/* Returns whether the worker has a session of another program. */
static bool
worker_has_others(const struct gpd_admission *admission, const struct gpd_worker_process *worker,
		  const struct gpd_program *program)
{
	const struct gpd_ledger_session *entry = NULL;
	struct gpd_program other;

	while ((entry = gpd_ledger_next(admission->quota->ledger, entry, worker->pid))) {
		program_from_session(admission, entry, &other);
		if (!gpd_program_equals(&other, program))
			return true;
	}
	return false;
}

/* Returns whether a fault in the worker counts for this program. In a worker of its own, or of its
 * tenant without other programs, it only extends a quarantine. */
static bool
fault_counts(struct gpd_admission *admission, const struct gpd_worker_process *worker,
	     const struct gpd_program *program)
{
	if (!gpd_worker_process_is_dedicated(worker) &&
	    (worker->group == GPD_GROUP_SHARED || worker_has_others(admission, worker, program)))
		return true;
	return gpd_quarantine_find(&admission->quarantine, program, get_seconds(admission),
				   gp_now_ms()) != NULL;
}

void
gpd_admission_report_fault(struct gpd_admission *admission, const struct gpd_worker_process *worker,
			   int result, const struct gpd_channel_lost *lost)
{
	struct gpd_program candidates[GPD_LOST_SUSPECTS];
	size_t count = 0;

	if (!is_kernel_fault(result))
		return;
	for (uint32_t i = 0; i < lost->suspect_count && i < GPD_LOST_SUSPECTS; i++) {
		const struct gpd_ledger_session *entry =
			gpd_ledger_find(admission->quota->ledger, lost->suspects[i]);

		if (!entry || entry->worker != worker->pid)
			continue;
		program_from_session(admission, entry, &candidates[count]);
		count += fault_counts(admission, worker, &candidates[count]);
	}
	gpd_quarantine_report(&admission->quarantine, candidates, count, result,
			      get_seconds(admission), gp_now_ms());
}

void
gpd_admission_report_wedged(struct gpd_admission *admission,
			    const struct gpd_worker_process *worker)
{
	const struct gpd_ledger_session *entry = NULL;
	struct gpd_program candidates[GPD_LOST_SUSPECTS];
	size_t count = 0;

	while (count < GPD_LOST_SUSPECTS &&
	       (entry = gpd_orphaned_work_next(worker, admission->quota->ledger, entry)))
		program_from_session(admission, entry, &candidates[count++]);
	gpd_quarantine_report(&admission->quarantine, candidates, count, 0, get_seconds(admission),
			      gp_now_ms());
}

static bool
conn_refuse(struct gpd_admission *admission, struct gpd_connection *connection,
	    const struct gpd_quarantine_entry *entry, const char *key)
{
	char text[GPD_CONFIG_ERROR_MAX], why[GPD_QUARANTINE_TEXT_MAX], until[32];

	(void)snprintf(
		text, sizeof(text),
		"this program is in quarantine until %s: %s; it gets no worker of its own, "
		"because it would escape the quota of tenant %s (key %s): start it later, or "
		"ask the administrator (gpupoolctl quarantine end %llu)",
		gpd_quarantine_format_end(entry, until), gpd_quarantine_explain(entry, why),
		entry->program.tenant, key, (unsigned long long)entry->id);
	gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__POLICY, text);
	return false;
}

bool
gpd_admission_check_quarantine(struct gpd_admission *admission, struct gpd_connection *connection)
{
	const struct gpd_tenants *tenants = &admission->quota->tenants;
	uint32_t tenant = connection->assignment.tenant;
	int config_index = tenants->config_indexes[tenant];
	const Gpupool__Hello *hello = connection->hello->hello;
	char why[GPD_QUARANTINE_TEXT_MAX], until[32];
	const struct gpd_quarantine_entry *entry;
	struct gpd_program program;
	const char *key;

	connection->notice[0] = '\0';
	if (connection->assignment.dedicated)
		return true;
	gpd_program_set(&program, tenants->ledger->tenants[tenant].name, hello->program_key.data,
			hello->program_key.len, hello->host, hello->user, hello->program);
	entry = gpd_quarantine_find(&admission->quarantine, &program, get_seconds(admission),
				    gp_now_ms());
	if (!entry)
		return true;
	key = config_index < 0 ? NULL : gpd_tenants_sharing_key(tenants, config_index);
	if (key)
		return conn_refuse(admission, connection, entry, key);
	connection->assignment.dedicated = true;
	(void)snprintf(connection->notice, sizeof(connection->notice),
		       "gpupool: this program runs in a worker of its own until %s: %s\n",
		       gpd_quarantine_format_end(entry, until), gpd_quarantine_explain(entry, why));
	return true;
}
