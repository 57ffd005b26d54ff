GP_KIND(linker, TYPES(CUlinkState), COST(4096), DESTROY(cuLinkDestroy), LIFETIME(context))

GP_CALL(0x1, WAIT)
CUresult cuFoo(
        NEW CUlinkState state);
