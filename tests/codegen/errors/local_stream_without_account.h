GP_LOCAL()
CUresult cuFoo(
        int x,
        CUstream stream);
