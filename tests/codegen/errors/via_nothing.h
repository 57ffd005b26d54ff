GP_LOCAL(VIA())
CUresult cuFoo(
        int a);
