GP_KIND(graph, TYPES(CUgraph), COST(64), OBJECT(cuGraphDestroy), GOES_WITH(session))
GP_KIND(graph, TYPES(CUgraphExec), COST(64), OBJECT(cuGraphExecDestroy), GOES_WITH(session))
