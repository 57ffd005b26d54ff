GP_LOCAL(OF(program), ANSWERS(7))
CUresult cuFoo(
        int a);
