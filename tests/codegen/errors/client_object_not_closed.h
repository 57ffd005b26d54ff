GP_CLIENT_OBJECT(thing, STRUCT(gpc_thing), HEADER("client/thing.h"

GP_LOCAL()
CUresult cuProfilerStart(void);
