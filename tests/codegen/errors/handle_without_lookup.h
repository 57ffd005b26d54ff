GP_KIND(foo, TYPES(CUgraph), COST(16))

GP_CALL(0x1, WAIT)
CUresult cuFoo(
        CUgraph graph);
