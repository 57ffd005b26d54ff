GP_SET(foo,
        1;
