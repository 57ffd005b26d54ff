GP_HELD(thing, STRUCT(gpc_thing), HEADER("client/thing.h"

GP_LOCAL()
CUresult cuProfilerStart(void);
