/* SPDX-License-Identifier: MIT */
#include "queue/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/status.h"
#include "queue/template_choose.h"

static bool has_graphs(const hdrt__driver_table *driver)
{
    return driver->cuGraphCreate && driver->cuGraphDestroy && driver->cuGraphAddKernelNode &&
           driver->cuGraphInstantiateWithFlags && driver->cuGraphExecKernelNodeSetParams && driver->cuGraphLaunch &&
           driver->cuGraphExecDestroy;
}

hdrt__templates *hdrt__templates_create(hdrt_device *device, hdrt__template_complete complete, void *context)
{
    const char *wish = hdrt__environment(HDRT__ENV_TEMPLATES);
    hdrt__templates *templates = calloc(1, sizeof *templates);
    if (!templates) {
        hdrt__fail_memory(sizeof *templates, "the cache of launch templates");
        return NULL;
    }
    templates->device = device;
    templates->complete = complete;
    templates->context = context;
    templates->switches = device->driver->cuGraphNodeSetEnabled != NULL;
    templates->rings = device->driver->cuGraphAddBatchMemOpNode && device->driver->cuGraphExecBatchMemOpNodeSetParams;
    templates->orders = device->limits.launch_order && device->driver->cuGraphAddNode;
    templates->enabled = has_graphs(device->driver) && !(wish && strcmp(wish, "off") == 0);
    pthread_mutex_init(&templates->lock, NULL);
    hdrt__template_table_init(&templates->table);
    return templates;
}

void hdrt__templates_limit(hdrt__templates *templates, uint64_t bytes)
{
    templates->table.limit = bytes;
}

/* ---- what was dropped -------------------------------------------------------------------------------------------- */

static const hdrt__driver_table *driver_of(const hdrt__templates *templates)
{
    return hdrt__device_is_lost(templates->device) ? NULL : templates->device->driver;
}

/* Destroy what was dropped, without the lock; modules, with those of kernels that are left, are only noted, for the caller
 * may have locks of its own. */
static void bury(hdrt__templates *templates, hdrt__template_dropped *dropped, hdrt_kernel *left)
{
    const hdrt__driver_table *driver = driver_of(templates);
    hdrt__template_instance **last_instance = &dropped->instances;
    hdrt__template_sequence **last_sequence = &dropped->sequences;
    hdrt_kernel **last_left = &left;
    for (; *last_instance; last_instance = &(*last_instance)->next) {
        hdrt__template_instance_end(*last_instance, driver);
    }
    for (; *last_sequence; last_sequence = &(*last_sequence)->next) {
        hdrt__template_sequence_end(*last_sequence, driver);
    }
    while (*last_left) {
        last_left = &(*last_left)->single.left;
    }
    if (dropped->instances || dropped->sequences || left) {
        pthread_mutex_lock(&templates->lock);
        *last_instance = templates->to_release.instances;
        *last_sequence = templates->to_release.sequences;
        *last_left = templates->left;
        templates->to_release = *dropped;
        templates->left = left;
        atomic_store(&templates->released, true);
        pthread_mutex_unlock(&templates->lock);
        *dropped = (hdrt__template_dropped){NULL, NULL};
    }
}

void hdrt__templates_collect(hdrt__templates *templates)
{
    if (!atomic_load_explicit(&templates->released, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&templates->lock);
    hdrt__template_dropped dropped = templates->to_release;
    hdrt_kernel *left = templates->left;
    templates->to_release = (hdrt__template_dropped){NULL, NULL};
    templates->left = NULL;
    atomic_store(&templates->released, false);
    pthread_mutex_unlock(&templates->lock);
    for (hdrt__template_instance *next, *instance = dropped.instances; instance; instance = next) {
        next = instance->next;
        hdrt__template_instance_release(instance);
    }
    for (hdrt__template_sequence *next, *sequence = dropped.sequences; sequence; sequence = next) {
        next = sequence->next;
        hdrt__template_sequence_release(sequence);
    }
    for (hdrt_kernel *next; left; left = next) {
        next = left->single.left; /* it goes with its module */
        hdrt__module_release_cached(left->module);
    }
}

/* Drop all sequences, or only what is `unwanted`. \return whether some of it is left. */
static bool drop_all(hdrt__templates *templates, bool unwanted)
{
    hdrt__template_dropped dropped = {NULL, NULL};
    bool left = false;
    pthread_mutex_lock(&templates->lock);
    for (uint32_t i = 0; i < HDRT__TEMPLATE_BUCKETS; i++) {
        hdrt__template_sequence *next;
        for (hdrt__template_sequence *s = templates->table.buckets[i]; s; s = next) {
            next = s->next;
            left = (unwanted ? hdrt__template_drop_unwanted(templates, s, &dropped)
                             : hdrt__template_drop(templates, s, &dropped)) || left;
        }
    }
    pthread_mutex_unlock(&templates->lock);
    bury(templates, &dropped, NULL);
    hdrt__templates_collect(templates);
    return left;
}

bool hdrt__templates_forget(hdrt__templates *templates)
{
    return templates->enabled && drop_all(templates, true);
}

static bool all_complete(void *context, uint32_t index, uint64_t sequence)
{
    (void)context;
    (void)index;
    (void)sequence;
    return true;
}

void hdrt__templates_destroy(hdrt__templates *templates)
{
    if (!templates) {
        return;
    }
    templates->complete = all_complete;
    drop_all(templates, false);
    pthread_mutex_destroy(&templates->lock);
    free(templates);
}

void hdrt__templates_count(hdrt__templates *templates, hdrt__template_counts *out_counts)
{
    pthread_mutex_lock(&templates->lock);
    *out_counts = templates->table.counts;
    pthread_mutex_unlock(&templates->lock);
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

/* Without the lock: build the chosen sequence's instance, which is taken then. false: the sequence may be gone. */
static bool build_chosen(hdrt__templates *templates, const hdrt__run_place *place, const hdrt__run_launch *launches,
                         hdrt__template_choice *choice)
{
    hdrt__template_sequence *sequence = choice->sequence;
    hdrt_kernel *left = NULL;
    hdrt__template_instance *instance =
        hdrt__template_instance_create(sequence, templates->device->driver, place, launches, choice->size, &left);
    hdrt__template_dropped dropped = {NULL, NULL};
    pthread_mutex_lock(&templates->lock);
    if (instance) {
        sequence->building = false;
        instance->taken = true;
        hdrt__template_instance_enter(&templates->table, instance);
        templates->table.counts.built++;
    } else {
        hdrt__template_not_built(templates, sequence, &dropped);
    }
    pthread_mutex_unlock(&templates->lock);
    bury(templates, &dropped, left);
    choice->instance = instance;
    return instance != NULL;
}

/*
 * Do what was chosen. A failure to build or to refill is nobody's but ours: the launches go out one by one, and what is
 * wrong with them, or with the device, shows there.
 */
static uint32_t launch_chosen(hdrt__templates *templates, const hdrt__run_place *place,
                              const hdrt__run_launch *launches, hdrt__template_choice *choice, hdrt__call *out_call)
{
    const hdrt__driver_table *driver = templates->device->driver;
    hdrt__template_dropped dropped = {NULL, NULL};
    hdrt_kernel *left = NULL;
    uint32_t refused = 0;
    bury(templates, &choice->dropped, NULL);
    bool built = !choice->instance;
    if (!choice->sequence || (built && !build_chosen(templates, place, launches, choice))) {
        return 0;
    }
    hdrt__call fill = {0, NULL}, enable = {0, NULL};
    if (!built || !choice->instance->filled) {
        fill = hdrt__template_instance_fill(choice->instance, driver, launches, choice->size, &refused, &left);
    }
    if (!fill.result && choice->sequence->kind == HDRT__TEMPLATE_RINGING) {
        fill = hdrt__template_instance_ring(choice->instance, driver, place);
    }
    if (!fill.result) {
        enable = hdrt__template_instance_enable(choice->instance, driver, choice->size);
    }
    if (!fill.result && !enable.result) {
        *out_call = HDRT__CALL(driver, cuGraphLaunch, choice->instance->exec, place->stream);
    }
    bool launched = !fill.result && !enable.result && !out_call->result;
    pthread_mutex_lock(&templates->lock);
    hdrt__template_give_back(templates, choice->instance, place, launched ? choice->size : 0);
    if (fill.result) {
        hdrt__template_refuse(templates, choice->sequence, launches[refused].kernel, fill.result, &dropped);
    }
    if (enable.result) {
        hdrt__template_switch_no_more(templates, choice->instance, &dropped);
    }
    pthread_mutex_unlock(&templates->lock);
    bury(templates, &dropped, left);
    return launched ? choice->size : 0;
}

uint32_t hdrt__templates_chain(hdrt__templates *templates, hdrt__run_place *place,
                               const hdrt__run_launch *launches, uint32_t count, bool more, uint32_t *out_direct,
                               hdrt__call *out_call)
{
    hdrt__template_choice choice;
    *out_call = (hdrt__call){0, NULL};
    *out_direct = count;
    place->rings = false;
    if (!templates->enabled || !count) {
        return 0;
    }
    pthread_mutex_lock(&templates->lock);
    hdrt__template_choose_chain(templates, place, launches, count, more, &choice);
    pthread_mutex_unlock(&templates->lock);
    *out_direct = choice.sequence ? choice.size : choice.direct;
    bool ringing = choice.sequence && choice.sequence->kind == HDRT__TEMPLATE_RINGING;
    uint32_t launched = launch_chosen(templates, place, launches, &choice, out_call);
    place->rings = ringing && launched;
    return launched;
}

uint32_t hdrt__templates_wide(hdrt__templates *templates, const hdrt__run_place *place,
                              const hdrt__run_launch *launches, uint32_t count, hdrt__call *out_call)
{
    hdrt__template_choice choice;
    *out_call = (hdrt__call){0, NULL};
    if (!templates->enabled) {
        return 0;
    }
    pthread_mutex_lock(&templates->lock);
    hdrt__template_choose_wide(templates, place, launches, count, &choice);
    pthread_mutex_unlock(&templates->lock);
    return launch_chosen(templates, place, launches, &choice, out_call);
}

bool hdrt__templates_wide_in_order(hdrt__templates *templates)
{
    pthread_mutex_lock(&templates->lock);
    bool orders = templates->orders;
    pthread_mutex_unlock(&templates->lock);
    return orders;
}

uint32_t hdrt__templates_wide_rest(hdrt__templates *templates, uint32_t count)
{
    pthread_mutex_lock(&templates->lock);
    uint32_t rest = templates->switches ? 0 : count % HDRT__TEMPLATE_WIDE_LEAST;
    pthread_mutex_unlock(&templates->lock);
    return templates->enabled ? rest : count;
}

bool hdrt__templates_wide_is_ready(hdrt__templates *templates, const hdrt__run_launch *launches, uint32_t count)
{
    pthread_mutex_lock(&templates->lock);
    bool ready = templates->enabled && hdrt__template_wide_is_ready(templates, launches, count);
    pthread_mutex_unlock(&templates->lock);
    return ready;
}
