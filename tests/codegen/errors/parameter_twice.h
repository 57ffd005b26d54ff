GP_LOCAL()
CUresult cuFoo(
        int x,
        int x);
