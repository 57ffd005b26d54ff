GP_CALL(0x1, POST, VIA(cuFoo), CAPTURE(as_ever))
CUresult cuFoo(
        CUstream stream);
