GP_LOCAL(ALIAS())
CUresult cuFoo(
        int a);
