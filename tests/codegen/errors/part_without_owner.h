GP_KIND(graph, TYPES(CUgraph), COST(64), OBJECT(cuGraphDestroy), GOES_WITH(session))
GP_KIND(graph_node, TYPES(CUgraphNode), COST(64), PART_OF(graph))

GP_CALL(0x1, WAIT, CHARGES_NOTHING)
CUresult cuFoo(OUT NEW CUgraphNode *node);
