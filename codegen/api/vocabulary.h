/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of the description language.
 *
 * A chapter of the description is a valid C header.  The generator (codegen/parse.py) reads the
 * words; for the C compiler they are empty macros, so a compiler that includes a chapter after
 * <cuda.h> compares its prototypes with NVIDIA's.  codegen/README.md explains how to add a call.
 */
#ifndef GP_API_VOCABULARY_H
#define GP_API_VOCABULARY_H

/*
 * A symbol of libcuda.so.1: exported name, name for cuGetProcAddress, first driver version.
 * symbols.h explains the variants PTDS and PTSZ, and the unit of the version.
 */
#define GP_SYMBOL(name, base, since)
#define GP_SYMBOL_PTDS(name, base, since)
#define GP_SYMBOL_PTSZ(name, base, since)

/*
 * A driver function that hand-written code of the daemon calls.  The daemon rejects a driver without
 * a GP_DRIVER function.  Without a GP_DRIVER_OPTIONAL function its pointer is NULL, and the code that
 * calls it checks that.
 */
#define GP_DRIVER(name)
#define GP_DRIVER_OPTIONAL(name)

/*
 * Symbols that no chapter describes.  codegen/coverage.py prints the reason.
 *   GP_UNSUPPORTED("text", "reason", name, ...)     a call reports the text, an alternative, once
 *   GP_UNSUPPORTED_SILENT("reason", name, ...)      a call reports nothing, as programs only probe
 *                                                   for the function
 */
#define GP_UNSUPPORTED(text, why, ...)
#define GP_UNSUPPORTED_SILENT(why, ...)

/*
 * Checks that a function (or an ALIAS) makes before all others, in this order, as the driver does,
 * also before cuInit() and without a current context.
 *   VALUE(parameter, ...)    not NULL or 0, or CUDA_ERROR_INVALID_VALUE.  In a _ptsz entry, stream
 *                            0 is the thread's own and valid
 *   HANDLE(parameter, ...)   not NULL or 0, or CUDA_ERROR_INVALID_HANDLE
 *   CONTEXT(parameter, ...)  not NULL or 0, or CUDA_ERROR_INVALID_CONTEXT
 *   DEVICE(parameter)        an existing device, or CUDA_ERROR_INVALID_VALUE
 *   WITHIN(parameter, minimum, maximum)  in this range, or CUDA_ERROR_INVALID_VALUE
 *   INITIALIZED              cuInit() has been called, or CUDA_ERROR_NOT_INITIALIZED
 *   CURRENT                  INITIALIZED, and a context is current, or CUDA_ERROR_INVALID_CONTEXT
 *   CURRENT(stream)          CURRENT, or the stream has a context, which is then current during the
 *                            call; must be the last check
 *   LEGACY(context)          a context of the first version of cuCtxCreate(), or
 *                            CUDA_ERROR_INVALID_CONTEXT
 */
#define GP_PRECHECK(name, ...)

/*
 * A kind of handle: its number at both ends, its wire format, its cost and its destruction.
 *   TYPES(type, ...)    the types of the kind in prototypes
 *   COST(bytes)         approximate host memory of the daemon per object; without COST, objects of
 *                       the kind exist in the client only
 *   ORDERED             a call with such a handle executes after the host functions that earlier
 *                       calls with it wait for
 *   LOOKUP              generated code calls hand-written functions to translate the handle:
 *                       stream, event, context
 *   DESTROY(function)   the object is a driver object only: NEW and DROP need no hook, and the
 *                       daemon destroys objects that the client leaves with this driver function
 *   LIFETIME(context)   it destroys them with their context
 *   LIFETIME(session)   it destroys them with the session
 */
#define GP_KIND(name, ...)

/*
 * An object of the client, for GP_LOCAL calls that are generated.
 *   TYPES(type, ...)     the handles that identify an object; without TYPES, a call refers to the
 *                        object by CLIENT_OBJECT(name)
 *   STRUCT(name)         the object is a struct name
 *   ENTER(function)      starts the call and looks up the object: function(handle, &found), where
 *                        each argument is left out if there is none
 *   KIND(kind)           in place of ENTER: the handle is the token of an object of this kind
 *   LEAVE(function)      ends the call, also after ENTER has failed: return function(result)
 *   HEADER("file", ...)  the headers that declare these
 */
#define GP_CLIENT_OBJECT(name, ...)

/*
 * Types.
 *   GP_ENUM(type)                     an enumeration
 *   GP_OPTIONS(type, option, ...)     options whose values are numbers (IN_OPTIONS).  CLIENT_ONLY
 *                                     option: not sent to the daemon.  Hooks call
 *                                     gpc_options_encode_<type>() and gpd_options_decode_<type>()
 *   GP_SET(name, value, ...)          values with a common property: generates gpc_is_<name>() and
 *                                     gpd_is_<name>()
 */
#define GP_ENUM(type)
#define GP_OPTIONS(type, ...)
#define GP_SET(name, ...)

/* Before a prototype. Numbers are unique and never reused; a changed signature gets a new number. */
#define GP_CALL(number, completion, ...)    /* CUDA call that is sent to the daemon */
#define GP_LOCAL(...)                       /* CUDA call of the client: gpc_<name>(), written by
                                             * hand unless words below generate it */
#define GP_MESSAGE(number, completion, ...) /* message of gpupool, for the hand-written calls */

/*
 * Completion:
 *   POST   no reply; a later call reports an error (deferred error)
 *   WAIT   the caller waits for a reply
 *
 * Implementation:
 *   VIA(message, ...)  a GP_LOCAL call that sends these messages or calls
 *   ALIAS(name, ...)   further symbols with the same signature and meaning
 *   SERVER_HOOK        server/ has a hand-written gpd_<name>(); without it the daemon calls the
 *                      driver function
 *   CLIENT_HOOK        client/ has a hand-written gpc_<name>(); without it a stub is generated
 *   SIGNAL_SAFE        a GP_LOCAL call without locks and allocations: it has no call guard
 *                      (client/guard/guard.h)
 *   QUICK              a frequent call that seldom waits: all its cancellation points are after
 *                      gpc_guard_block() (client/guard/guard.h)
 *   BULK_IN            a bulk tail follows the record
 *   BULK_OUT           data notes with bulk tails precede the reply
 *
 * Implementation of a generated GP_LOCAL call:
 *   CLIENT_OBJECT(name)          the object of the call, if no handle identifies it
 *   REQUIRE(member, value, ...)  the member of the object has one of these values, or
 *                                CUDA_ERROR_INVALID_VALUE
 *   FORWARD(function, argument, ...)  calls this CUDA function with these arguments: parameters of
 *                                the same type or with CONVERT, and constants
 *   RETURNS(code)                looks up and checks, writes nothing, and returns the code
 *
 * Order among the session's calls, in addition to the order by ORDERED handles:
 *   AFTER_ALL          executes after all work that was submitted before
 *   BEFORE_ALL         all work that is submitted later waits for it
 *   BARRIER(flags)     BEFORE_ALL if this parameter has GP_COPY_BARRIER (this and the following
 *                      flags: protocol/frame.h).  With GP_COPY_LATE the record executes at once,
 *                      ahead of deferred records; with GP_COPY_LISTED its bytes may be replaced
 *                      while it is deferred
 *   AFTER_MEMORY       executes after the calls that allocate, map or free memory
 *   AWAITS_STREAM      queries or waits for its stream, and adds no work to it
 *   AWAITS_HOST        its stream continues after a host function has returned, or a wait value has
 *                      been written: until then both ends defer the records that follow
 *   QUERY              queries completion: replies CUDA_ERROR_NOT_READY instead of waiting
 *   UNORDERED          a store of the host, or a query of one: it waits for no deferred record
 *   NO_DTOH_WAIT       need not wait for copies to the client that are in flight
 *   ASYNC_LAUNCH       its hook may issue the driver call from another thread, in stream order
 *                      (server/worker/issue/issue.h); all other calls wait for these calls
 *
 * Work of the call, for the client:
 *   UNBOUNDED          the program determines its duration, as for a kernel; AWAITS_HOST implies it
 *   COMPILES           the daemon may compile code before it replies, which takes minutes
 *   WRITES_DEVICE_ONLY it writes device memory, and no host memory that kernels can access, unless
 *                      its caller notes that (gpc_host_memory_scan())
 *   INVALIDATES_CHECKS if it fails while no caller waits for its reply, the device may reject
 *                      what it accepted before: the client checks again (gpc_session_revise())
 *   OWN_RESULT         gpc_wait_<message>() of a message returns the result of the call itself, and
 *                      leaves a deferred error for a later call; a message with NEW has this
 *   TRACE_NAME("text") the name of its work in a trace; by default the name of the call
 *
 * Effect while streams are captured (docs/graphs.md); required for a call with a stream:
 *   CAPTURE(node)            calls client/graph's gpc_capture_<name>(), which adds a node
 *   CAPTURE(refused)         fails and invalidates the capture of its stream
 *   CAPTURE(declined)        fails, and the capture continues without it
 *   CAPTURE(unsafe)          would disturb a capture: fails in the capture modes that forbid it
 *   CAPTURE(default_stream)  refused and unsafe, for the default stream on which it works
 *   CAPTURE(unaffected)      the same as without a capture
 *
 * Work that NVIDIA's driver waits for before the call returns, also on non-blocking streams
 * (client/stream/sync.h):
 *   SYNCHRONIZES(CURRENT)    the work of the current context
 *   SYNCHRONIZES(address)    the work of the context that owns the memory at this parameter, unless
 *                            the memory belongs to a pool
 *
 * Account: charges of the session.  Required for a call that has a stream, creates an object (NEW)
 * or returns device memory (OUT CUdeviceptr), unless VIA names messages with these words:
 *   ALLOCATES(size)    bytes of device memory (a parameter, or BY_HOOK) of the parameter "device"
 *   FREES(size)
 *   LAUNCHES           work of the device: kernels, memsets, copies within it; takes turns
 *   COPIES(size)       bytes over the link (a parameter, or BY_HOOK)
 *   CHARGES_NOTHING    the call itself charges nothing; not together with VIA, where the messages
 *                      charge
 *   RATE_LIMITED       in addition, all bytes of its lists, strings and bytes count for the
 *                      bandwidth limit; without it only those above GPD_ACCOUNT_FREE_BYTES
 *                      (account.h)
 */

/*
 * Directions, before a pointer parameter, which has exactly one.
 *
 * A count or a size is a number or an integer parameter.  An element is a number, an enumeration, or
 * a handle with LOOKUP or DESTROY.  A handle of an ORDERED kind must be a parameter, not an element.
 * A device pointer for the driver needs a SERVER_HOOK, which checks it.  A list, and a string or
 * OUT_BYTES in the daemon, has at most 1 MiB in generated code, or CUDA_ERROR_INVALID_VALUE.
 *
 * For a hand-written GP_LOCAL call the direction is documentation: the hook checks and writes its
 * parameters itself, and no generated code depends on the direction.
 */
#define IN            /* one element, which the call reads */
#define IN_N(count)   /* count elements */
#define IN_BYTES(size)
#define IN_STRING     /* NUL-terminated */
#define IN_OPTIONS(count, values) /* count options of a GP_OPTIONS type; values (BY_HOOK) has their values */
#define OUT           /* one element, written on CUDA_SUCCESS */
#define OUT_N(count)
#define OUT_BYTES(size)
#define INOUT         /* a number, read and written */
#define BY_HOOK       /* read or written by the hook of this call */

/* Qualifiers, after the direction. */
#define OPT           /* may be NULL.  An IN_N or IN_BYTES parameter on the wire whose size is a
                       * parameter has no OPT: it may be NULL while the size is 0, or
                       * CUDA_ERROR_INVALID_VALUE */
#define NEW           /* a handle that this call creates; the client assigns its number */
#define STATIC        /* points to storage that is never freed */

/* For a generated GP_LOCAL call. */
#define FIELD(member) /* OUT: the member of the object; OUT_BYTES: its text */
#define COMPUTE(...)  /* OUT: function(object, argument, ...) with parameters of the call, constants */
#define FIXED(value)  /* OUT: this constant */
#define CONVERT(...)  /* of FORWARD: passes function(&converted, parameter, argument, ...), which
                       * returns the address of the converted struct, or NULL */
#define STORE(member) /* a number, which is stored in the member of the object */
#define WITHIN(minimum, maximum) /* a number in this range, or CUDA_ERROR_INVALID_VALUE */

/* On a handle passed by value. */
#define DROP          /* this call destroys the handle */

/*
 * Types of messages.
 *   gp_address      a device address, which is checked against the session's window
 *   gp_new_address  the address of a new mapping
 *   gp_kernel       a kernel: a function of an image, by the image's ID and the kernel's index
 * Handles:
 *   gp_context, gp_image
 *   gp_host_function  a function of the program that a stream calls (cuLaunchHostFunc)
 *   gp_memory       physical memory
 *   gp_graph_plan, gp_graph_root  (graph.h)
 *   gp_array        a plain or mipmapped array
 *   gp_texture      a texture or surface object
 *   gp_share        memory that other processes may open
 */
typedef unsigned long long gp_address;
typedef unsigned long long gp_new_address;
typedef unsigned long long gp_kernel;
typedef unsigned int gp_context;
typedef unsigned int gp_image;
typedef unsigned int gp_host_function;
typedef unsigned int gp_memory;
typedef unsigned int gp_graph_plan;
typedef unsigned int gp_graph_root;
typedef unsigned int gp_array;
typedef unsigned int gp_texture;
typedef unsigned int gp_share;

#endif /* GP_API_VOCABULARY_H */
