GP_LOCAL(CLIENT_OBJECT(program), RETURNS(7))
CUresult cuFoo(
        int a);
