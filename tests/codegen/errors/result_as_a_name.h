GP_LOCAL(CAPTURE(unsafe))
CUresult cuFoo(
        int result);
