/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that kernels of the session access, at addresses that the client reserves, too
 * (docs/host-memory.md). The addresses are outside of the window of device addresses; the hooks
 * check them.
 *
 * Units: bytes.
 *
 * The words are defined in vocabulary.h; codegen/README.md explains how to add a call.
 */

/* Reserves a range of addresses, at most size bytes; one per session. If the client cannot use the
 * range, as an object of the program is there, it calls again before it maps memory, and gets
 * another range. */
GP_MESSAGE(0x0801, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpHostReserve(
        size_t size,
        OUT unsigned long long *address,
        OUT unsigned long long *room);

/* Maps zeroed memory at whole pages of the range. shared 1: the memory is a file in memory that the
 * client maps, too; the daemon passes the descriptor over the lane before the reply. */
GP_MESSAGE(0x0802, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpHostMap(
        unsigned long long address,
        size_t size,
        unsigned int shared);

/* Unmaps memory of gpHostMap. The daemon replies after all work submitted before, when the
 * addresses are free. */
GP_MESSAGE(0x0803, WAIT, SERVER_HOOK, AFTER_ALL)
void gpHostUnmap(
        unsigned long long address,
        size_t size);

/*
 * Maps zeroed memory at whole granules of the window, or of a range of gpAddressReserve, where no
 * memory is mapped. It is memory of the daemon's machine that kernels of all devices can access.
 * gpMemoryUnmap unmaps it.
 *
 * Errors: CUDA_ERROR_NOT_SUPPORTED if the driver cannot create such memory.
 */
GP_MESSAGE(0x0808, WAIT, SERVER_HOOK, CHARGES_NOTHING, OWN_RESULT)
void gpHostPlace(
        gp_address address,
        size_t size,
        int device);

/* Changes of the program in mapped memory (protocol/host_changes.h), which the daemon stores at
 * once. */
GP_MESSAGE(0x0804, POST, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostWrite(
        IN_BYTES(changes_size) const void *changes,
        size_t changes_size);

/* All later runs of changes mark the unchanged bytes of a word (protocol/host_merge.h), in both
 * directions. */
GP_MESSAGE(0x080a, POST, SERVER_HOOK, CHARGES_NOTHING, UNORDERED, NO_DTOH_WAIT)
void gpHostMerge(void);

/* Sent after the changes that the program had made when the note GP_NOTE_PUBLISH of this number
 * arrived. Number 0: the daemon sends such notes from now on, before a gpStreamWait on a word of
 * shared host memory ends. */
GP_MESSAGE(0x080b, POST, SERVER_HOOK, CHARGES_NOTHING, UNORDERED, NO_DTOH_WAIT)
void gpHostPublish(
        unsigned int number);

/* The older form of gpHostTake, for clients that do not support gpHostTake. */
GP_MESSAGE(0x0805, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostFetch(
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        OUT unsigned long long *done,
        OUT_BYTES(BY_HOOK) void *changes);

/* Returns the changes of the device in these ranges (u64 address, u64 size each; at most
 * GP_HOST_RANGES_MAX) since the last call, in the order in which the client must store them. part:
 * enum gp_consistent_copy_part. done: number of bytes of the concatenated ranges that the reply
 * covers; 0: too many changes for one reply. */
GP_MESSAGE(0x0806, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostTake(
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        unsigned int part,
        OUT unsigned long long *done,
        OUT_BYTES(BY_HOOK) void *changes);

/* gpHostTake for few changes: those that exist after the work that was submitted before this call
 * is complete. kind: enum gp_host_after, for the object named here. Work that waits for a host
 * function of the client is not included. Ranges: at most GP_HOST_AFTER_RANGES, together at most
 * GP_HOST_AFTER_MAX bytes; a range that is unmapped by then is skipped. writes: number of
 * gpHostWrite of the session that have been executed. */
GP_MESSAGE(0x0807, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, NO_DTOH_WAIT)
void gpHostTakeBehind(
        unsigned int kind,
        unsigned int name,
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        OUT unsigned long long *writes,
        OUT_BYTES(BY_HOOK) void *changes);

/* gpHostTake with a reply as soon as the device has changed memory in these ranges, or a later
 * gpHostWrite has been executed; at the latest after GP_HOST_PENDING_MS, or at the session's next
 * gpHostTake. At most GP_HOST_PENDING_MAX are pending. Each reply has the changes since the
 * previous one. */
GP_MESSAGE(0x0809, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostTakeChanged(
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        OUT unsigned long long *writes,
        OUT_BYTES(BY_HOOK) void *changes);
