/* SPDX-License-Identifier: MIT */
/*
 * Instances of explicit graphs: a driver's graph and its executable form, built from a plan and brought to another
 * plan's values, if that has the same topology, by setting the nodes whose stamps differ. Built always by the
 * explicit interface; what was captured is a child graph in it, of which the driver makes its own copy. Inside the
 * device's scope; who calls has the instance for himself.
 */
#ifndef HDRT_QUEUE_GRAPH_INSTANCE_H
#define HDRT_QUEUE_GRAPH_INSTANCE_H

#include "device/device.h"
#include "queue/plan.h"

typedef struct hdrt__graph_instance {
    struct hdrt__graph_instance *next;
    uint64_t topology;
    hdcu_graph graph;
    hdcu_graph_exec exec;
    hdcu_graph_node *nodes;
    uint64_t *stamps;
    uint32_t count;
    /* The graph's, under its lock: */
    bool taken;
    uint32_t stream; /* index of the one that it was last launched in */
    uint64_t sequence; /* there; 0: never */
    uint64_t turn;   /* of its last launch */
} hdrt__graph_instance;

/* Whether the driver has all that is needed. */
bool hdrt__graph_instance_possible(const hdrt__driver_table *driver);
/* \return HDRT_OK, HDRT_ERROR_OUT_OF_MEMORY, as hdrt__device_check. `name`: the graph's. */
hdrt_status hdrt__graph_instance_create(hdrt_device *device, const char *name, const hdrt__plan *plan,
                                        hdrt__graph_instance **out_instance);
/* Nothing of it is in flight, or the device is lost. NULL accepted. */
void hdrt__graph_instance_destroy(hdrt_device *device, hdrt__graph_instance *instance);
/* Bring it to the plan's values. After a failure it has some of them. */
hdrt__call hdrt__graph_instance_fill(hdrt_device *device, hdrt__graph_instance *instance, const hdrt__plan *plan);

#endif
