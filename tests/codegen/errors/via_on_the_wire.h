GP_CALL(0x1, POST, VIA(cuFoo), CAPTURE(unaffected))
CUresult cuFoo(
        CUstream stream);
