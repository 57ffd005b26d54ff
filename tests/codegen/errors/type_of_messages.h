GP_CALL(0x1, WAIT)
CUresult cuFoo(
        gp_context ctx);
