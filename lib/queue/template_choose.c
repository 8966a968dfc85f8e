/* SPDX-License-Identifier: MIT */
#include "queue/template_choose.h"

#include "queue/template_cut.h"

/* After a failed build a sequence must be seen this often until the next; an open one is all kernels', and the next ones may
 * do. */
#define SIGHTS_AFTER_FAILURE 1000
#define OPEN_SIGHTS_AFTER_FAILURE 64
/* So many kernels are refused launch order until it is the driver, and not they. */
#define REFUSALS 2u
/* How often a wide template must be wanted. */
#define WIDE_SIGHTS 2
/*
 * Where a kernel that is launched by itself comes again after so many launches, on average, its template is still in the
 * driver's and the processor's caches, and launched faster than the kernel (on an H200 1.6 us of 7 or 32 in random order, 1.6
 * or 1.8 of 64, 1.8 or 2.7 of 256, and of 1,024 2.2 or 2.9, the kernel itself 2.9 to 3.4). Such sights count for building
 * one; what was built is used up to the second distance. An average, since a sequence of many kernels may come twice and
 * never again.
 */
#define OFTEN 256u
#define SELDOM 384u
#define DISTANCE_MOST 2048u /* counts as so much, so that it is soon forgotten */
#define AVERAGED 4
/* After so many cuts of which none was seen before, runs are not cut, but go by open templates as large as can be; so many
 * launches of them, and then half as many cuts are looked at again. */
#define FRESH_CUTS 32u
#define UNCUT_LAUNCHES 8192u
/* How often an open template must be wanted. */
#define OPEN_SIGHTS 2

/* ---- dropping ---------------------------------------------------------------------------------------------------- */

static bool is_free(const hdrt__templates *templates, const hdrt__template_instance *instance)
{
    return !instance->taken &&
           (!instance->number || templates->complete(templates->context, instance->index, instance->number));
}

static void drop_instance(hdrt__templates *templates, hdrt__template_instance *instance,
                          hdrt__template_dropped *dropped)
{
    hdrt__template_instance_leave(&templates->table, instance);
    instance->next = dropped->instances;
    dropped->instances = instance;
}

/* It is not found any more. */
static void hide(hdrt__template_sequence *sequence)
{
    sequence->leaving = true;
    hdrt__template_sequence **single =
        sequence->count == 1 ? hdrt__template_single(sequence->kernels[0], sequence->kind) : NULL;
    if (single && *single == sequence) {
        *single = NULL;
    }
}

static void drop_if_empty(hdrt__templates *templates, hdrt__template_sequence *sequence,
                          hdrt__template_dropped *dropped)
{
    if (sequence->instances || sequence->takers) {
        return;
    }
    hide(sequence); /* from who has it in hand, too */
    for (uint32_t i = 0; i < HDRT__TEMPLATE_STREAMS; i++) {
        if (templates->streams[i].last == sequence) {
            templates->streams[i].last = NULL;
        }
    }
    hdrt__template_leave(&templates->table, sequence);
    sequence->next = dropped->sequences;
    dropped->sequences = sequence;
}

bool hdrt__template_drop(hdrt__templates *templates, hdrt__template_sequence *sequence,
                         hdrt__template_dropped *dropped)
{
    hdrt__template_instance *next;
    hide(sequence);
    for (hdrt__template_instance *instance = sequence->instances; instance; instance = next) {
        next = instance->next;
        if (is_free(templates, instance)) {
            drop_instance(templates, instance, dropped);
        }
    }
    bool left = sequence->instances || sequence->takers;
    drop_if_empty(templates, sequence, dropped);
    return left;
}

/* Of an open one that is being filled or made it is not known: it is left, to be asked later. */
bool hdrt__template_drop_unwanted(hdrt__templates *templates, hdrt__template_sequence *sequence,
                                  hdrt__template_dropped *dropped)
{
    hdrt__template_instance *next;
    bool open = sequence->kind == HDRT__TEMPLATE_OPEN, left = open && sequence->building;
    if (left) {
        return true;
    }
    if (hdrt__template_sequence_is_unwanted(sequence)) {
        return hdrt__template_drop(templates, sequence, dropped);
    }
    for (hdrt__template_instance *instance = sequence->instances; open && instance; instance = next) {
        next = instance->next;
        if (!instance->taken && !hdrt__template_instance_is_unwanted(instance)) {
            continue;
        }
        if (is_free(templates, instance)) {
            drop_instance(templates, instance, dropped);
        } else {
            left = true;
        }
    }
    drop_if_empty(templates, sequence, dropped);
    return left;
}

/* Drop the longest unused of those that have not been used for so many launches until there is room for `bytes`. \return
 * whether there is. */
static bool make_room(hdrt__templates *templates, uint64_t bytes, uint32_t unused, hdrt__template_dropped *dropped)
{
    hdrt__template_table *table = &templates->table;
    hdrt__template_instance *newer;
    for (hdrt__template_instance *i = table->oldest; i && table->counts.bytes + bytes > table->limit; i = newer) {
        hdrt__template_sequence *sequence = i->sequence;
        newer = i->newer;
        if (table->clock - i->used_at < unused) {
            break;
        }
        if (is_free(templates, i)) {
            drop_instance(templates, i, dropped);
            drop_if_empty(templates, sequence, dropped);
            table->counts.evicted++;
        }
    }
    return table->counts.bytes + bytes <= table->limit;
}

/* For how many launches something must not have been used to be dropped for one of this kind. Where each launch is waited
 * for, few come in the time of many. */
static uint32_t unused_for(hdrt__template_kind kind)
{
    static const uint32_t unused[HDRT__TEMPLATE_KINDS] = {
        [HDRT__TEMPLATE_CHAIN] = HDRT__TEMPLATE_RECENT,
        [HDRT__TEMPLATE_OPEN] = HDRT__TEMPLATE_RECENT,
        [HDRT__TEMPLATE_WIDE] = 0,
        [HDRT__TEMPLATE_RINGING] = HDRT__TEMPLATE_RECENT / 16,
    };
    return unused[kind];
}

/* Whether there is room, or the longest unused may be dropped for it. */
static bool may_have_room(const hdrt__templates *templates, uint64_t bytes, hdrt__template_kind kind)
{
    const hdrt__template_table *table = &templates->table;
    return table->counts.bytes + bytes <= table->limit ||
           (table->oldest && table->clock - table->oldest->used_at >= unused_for(kind));
}

/* ---- taking and building ----------------------------------------------------------------------------------------- */

static bool take(hdrt__templates *templates, hdrt__template_sequence *sequence, const hdrt__run_place *place,
                 hdrt__template_choice *choice)
{
    hdrt__template_instance **chosen = NULL;
    for (hdrt__template_instance **link = &sequence->instances, *i; (i = *link); link = &i->next) {
        if (!i->taken && i->number && i->index == place->index) {
            chosen = link; /* behind its own last launch in the same stream, complete or not */
            break;
        }
        if (!chosen && is_free(templates, i)) {
            chosen = link;
        }
    }
    if (chosen) {
        hdrt__template_instance *instance = *chosen;
        *chosen = instance->next; /* the first to be looked at the next time */
        instance->next = sequence->instances;
        sequence->instances = instance;
        instance->taken = true;
        sequence->takers++;
        choice->sequence = sequence;
        choice->instance = instance;
        choice->size = sequence->count;
    }
    return chosen != NULL;
}

/* Whether as many instances as may be are on their way to the device. */
static bool is_on_the_way(const hdrt__templates *templates)
{
    uint32_t oldest = templates->first_count % HDRT__TEMPLATE_FIRST_LAUNCHES;
    return templates->firsts[oldest].number &&
           !templates->complete(templates->context, templates->firsts[oldest].index, templates->firsts[oldest].number);
}

static void note_first(hdrt__templates *templates, const hdrt__run_place *place)
{
    uint32_t oldest = templates->first_count++ % HDRT__TEMPLATE_FIRST_LAUNCHES;
    templates->firsts[oldest].index = place->index;
    templates->firsts[oldest].number = place->sequence;
}

/* Let the caller build an instance of the sequence, if there are credit and room. */
static bool build(hdrt__templates *templates, hdrt__template_sequence *sequence, hdrt__template_choice *choice)
{
    hdrt__template_table *table = &templates->table;
    int64_t cost = hdrt__template_build_ns(sequence->count, sequence->branches);
    int64_t *credit = &table->credit[sequence->kind];
    uint64_t bytes = hdrt__template_bytes(sequence->count, sequence->branches);
    sequence->takers++; /* so that making room does not drop it */
    if (sequence->building || *credit < cost || is_on_the_way(templates) ||
        !make_room(templates, bytes, unused_for(sequence->kind), &choice->dropped)) {
        sequence->takers--;
        drop_if_empty(templates, sequence, &choice->dropped);
        return false;
    }
    *credit -= cost;
    table->counts.bytes += bytes;
    sequence->building = true;
    choice->sequence = sequence;
    choice->instance = NULL;
    choice->size = sequence->count;
    return true;
}

/* It cannot be built: not soon again. */
static void put_off(hdrt__templates *templates, hdrt_kernel *first, uint32_t count, uint64_t key,
                    hdrt__template_kind kind)
{
    if (kind == HDRT__TEMPLATE_RINGING) {
        first->single.ringing_off = SIGHTS_AFTER_FAILURE; /* whoever waits rings instead */
    } else if (count == 1) {
        first->single.sights = -SIGHTS_AFTER_FAILURE;
    } else {
        hdrt__template_set_seen(&templates->table, key,
                                kind == HDRT__TEMPLATE_OPEN ? -OPEN_SIGHTS_AFTER_FAILURE : -SIGHTS_AFTER_FAILURE);
    }
}

/* Against launches one by one. */
static int64_t saved_ns(int64_t count, int64_t node_ns)
{
    return (HDRT__TEMPLATE_DIRECT_NS - node_ns) * count - HDRT__TEMPLATE_LAUNCH_NS;
}

static int64_t single_saves_ns(void)
{
    return saved_ns(1, HDRT__TEMPLATE_NODE_NS);
}

/* By a template of just these kernels, one after the other: against an open one, or of those that may be in none, and of a
 * single one, against launches by themselves. */
static int64_t chain_saves_ns(const hdrt__run_launch *launches, uint32_t count)
{
    int64_t saved = 0, open = HDRT__TEMPLATE_OPEN_NODE_NS - HDRT__TEMPLATE_NODE_NS;
    for (uint32_t i = 0; i < count; i++) {
        saved += hdrt__template_may_be_open(launches[i].kernel) ? open : HDRT__TEMPLATE_DIRECT_NS - HDRT__TEMPLATE_NODE_NS;
    }
    return count == 1 ? single_saves_ns() : saved;
}

/* A first instance of a sequence that was not built so far. */
static bool build_new(hdrt__templates *templates, const hdrt__run_launch *launches, uint32_t count, uint64_t key,
                      hdrt__template_kind kind, hdrt__template_choice *choice)
{
    bool wide = kind == HDRT__TEMPLATE_WIDE;
    bool branches = wide && (!templates->orders || launches[0].kernel->single.refuses_order);
    if (templates->table.credit[kind] < hdrt__template_build_ns(count, branches) || is_on_the_way(templates) ||
        !may_have_room(templates, hdrt__template_bytes(count, branches), kind)) {
        return false; /* before anything is made that would be dropped again */
    }
    hdrt__template_sequence *sequence = hdrt__template_sequence_create(launches, count, key, kind);
    if (!sequence) {
        put_off(templates, launches[0].kernel, count, key, kind);
        return false;
    }
    sequence->branches = branches;
    sequence->saves_ns = kind == HDRT__TEMPLATE_CHAIN ? chain_saves_ns(launches, count) : 0;
    hdrt__template_enter(&templates->table, sequence);
    return build(templates, sequence, choice);
}

void hdrt__template_refuse(hdrt__templates *templates, hdrt__template_sequence *sequence, hdrt_kernel *kernel,
                           hdcu_result result, hdrt__template_dropped *dropped)
{
    if (sequence->kind == HDRT__TEMPLATE_OPEN && kernel) {
        uint8_t *refused = &kernel->single.refused_changes; /* the others will do without it */
        *refused += result != HDCU_ERROR_OUT_OF_MEMORY && *refused < HDRT__TEMPLATE_CHANGES_REFUSED;
        return;
    }
    put_off(templates, sequence->kernels[0], sequence->count, sequence->key, sequence->kind);
    hdrt__template_drop(templates, sequence, dropped);
}

void hdrt__template_switch_no_more(hdrt__templates *templates, hdrt__template_instance *instance,
                                   hdrt__template_dropped *dropped)
{
    hdrt__template_sequence *sequence = instance->sequence;
    templates->switches = false;
    if (is_free(templates, instance)) {
        drop_instance(templates, instance, dropped);
        drop_if_empty(templates, sequence, dropped);
    }
}

void hdrt__template_not_built(hdrt__templates *templates, hdrt__template_sequence *sequence,
                              hdrt__template_dropped *dropped)
{
    templates->table.counts.bytes -= hdrt__template_bytes(sequence->count, sequence->branches);
    sequence->building = false;
    sequence->takers--;
    if (sequence->refuses_order && !sequence->instances) {
        hdrt_kernel *kernel = sequence->kernels[0];
        templates->refusals += !kernel->single.refuses_order;
        templates->orders = templates->orders && templates->refusals < REFUSALS;
        kernel->single.refuses_order = true;
        hdrt__template_drop(templates, sequence, dropped); /* the next is built of branches */
    } else if (!sequence->instances) {
        hdrt__template_refuse(templates, sequence, NULL, 0, dropped);
    }
}

/* By the launch of so many of its nodes. Those that are switched off are launched too. */
static int64_t gained_ns(const hdrt__template_sequence *sequence, int64_t launched)
{
    if (sequence->kind == HDRT__TEMPLATE_CHAIN) {
        return sequence->saves_ns;
    }
    int64_t wide = sequence->branches ? HDRT__TEMPLATE_BRANCH_NODE_NS : HDRT__TEMPLATE_ORDERED_NODE_NS;
    int64_t node = sequence->kind == HDRT__TEMPLATE_WIDE   ? wide
                   : sequence->kind == HDRT__TEMPLATE_OPEN ? HDRT__TEMPLATE_OPEN_NODE_NS
                                                           : HDRT__TEMPLATE_NODE_NS;
    return saved_ns(launched, node) - (sequence->count - launched) * node;
}

void hdrt__template_give_back(hdrt__templates *templates, hdrt__template_instance *instance,
                              const hdrt__run_place *place, uint32_t launched)
{
    hdrt__template_sequence *sequence = instance->sequence;
    hdrt__template_table *table = &templates->table;
    instance->taken = false;
    sequence->takers--;
    hdrt__template_instance_used(table, instance);
    if (launched) {
        if (!instance->number) {
            note_first(templates, place);
        }
        instance->index = place->index;
        instance->number = place->sequence;
        table->counts.launches++;
        table->counts.kernels += launched;
        hdrt__template_earn(table, sequence->kind, gained_ns(sequence, launched) / 2);
    }
}

/* ---- a kernel by itself ------------------------------------------------------------------------------------------ */

/* The choice is the built sequence: an instance of it, else another one, else none. */
static bool use(hdrt__templates *templates, hdrt__template_sequence *sequence, const hdrt__run_place *place,
                hdrt__template_choice *choice)
{
    /* Making room for a larger one may have dropped it. */
    return !sequence->leaving && (take(templates, sequence, place, choice) || build(templates, sequence, choice));
}

/* From one sight to the next on average, with this one. */
static uint32_t distance_now(const hdrt__templates *templates, const hdrt_kernel *kernel)
{
    uint32_t last = templates->table.clock - kernel->single.seen_at;
    last = last < DISTANCE_MOST ? last : DISTANCE_MOST;
    return (kernel->single.distance * (AVERAGED - 1) + last) / AVERAGED;
}

/* Whether the kernel's template, which comes so often, is to be used if there is one, and else to be built. */
static bool deserves(const hdrt_kernel *kernel, const hdrt__run_place *place, uint32_t distance)
{
    return kernel->single.sequence || (place->word && kernel->single.ringing)
               ? distance <= SELDOM
               : distance <= OFTEN && kernel->single.sights + 1 >= hdrt__template_sights(1, single_saves_ns());
}

static void see(const hdrt__templates *templates, hdrt_kernel *kernel, uint32_t distance)
{
    kernel->single.seen_at = templates->table.clock;
    kernel->single.distance = distance;
    if (distance <= OFTEN) {
        kernel->single.sights += kernel->single.sights < INT32_MAX;
    } else {
        kernel->single.sights -= kernel->single.sights > 0;
    }
}

static bool use_alone(hdrt__templates *templates, const hdrt__run_place *place, const hdrt__run_launch *launch,
                      hdrt__template_kind kind, hdrt__template_choice *choice)
{
    hdrt__template_sequence *sequence = *hdrt__template_single(launch->kernel, kind);
    if (sequence) {
        return use(templates, sequence, place, choice);
    }
    uint64_t hash = hdrt__template_hash(HDRT__TEMPLATE_HASH_START, launch->kernel);
    return build_new(templates, launch, 1, hdrt__template_key(hash, 1, kind), kind, choice);
}

static void choose_single(hdrt__templates *templates, const hdrt__run_place *place, const hdrt__run_launch *launch,
                          hdrt__template_choice *choice)
{
    hdrt_kernel *kernel = launch->kernel;
    uint32_t distance = distance_now(templates, kernel);
    bool deserved = deserves(kernel, place, distance);
    see(templates, kernel, distance);
    bool rings = place->word && templates->rings && !kernel->single.ringing_off;
    kernel->single.ringing_off -= kernel->single.ringing_off > 0;
    choice->direct = 1;
    if (deserved && !(rings && use_alone(templates, place, launch, HDRT__TEMPLATE_RINGING, choice))) {
        use_alone(templates, place, launch, HDRT__TEMPLATE_CHAIN, choice);
    }
}

/* ---- chains ------------------------------------------------------------------------------------------------------ */

/* How many of the first launches may be in open templates. */
static uint32_t open_from(const hdrt__run_launch *launches, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && hdrt__template_may_be_open(launches[i].kernel)) {
        i++;
    }
    return i;
}

/*
 * The beginning of a cut that is not built, and may never come again, by the largest template there is that takes any
 * kernels: such are for powers of two. To change what a node runs costs more than to set its values, but half of what a
 * launch does.
 */
static void choose_open(hdrt__templates *templates, const hdrt__run_place *place, const hdrt__run_launch *launches,
                        uint32_t count, hdrt__template_choice *choice)
{
    uint32_t reach = open_from(launches, count);
    choice->direct = reach;
    if (reach < 2) {
        choose_single(templates, place, launches, choice);
        return;
    }
    for (uint32_t size = HDRT__TEMPLATE_CHAIN_LIMIT; size > 1; size /= 2) {
        uint64_t key = hdrt__template_key(HDRT__TEMPLATE_HASH_START, size, HDRT__TEMPLATE_OPEN);
        if (size > reach) {
            continue;
        }
        hdrt__template_sequence *sequence =
            hdrt__template_find(&templates->table, key, launches, size, HDRT__TEMPLATE_OPEN);
        if (sequence ? use(templates, sequence, place, choice)
                     : hdrt__template_see(&templates->table, key) >= OPEN_SIGHTS &&
                           build_new(templates, launches, size, key, HDRT__TEMPLATE_OPEN, choice)) {
            return;
        }
    }
}

static void choose_cut(hdrt__templates *templates, const hdrt__run_place *place, const hdrt__run_launch *launches,
                       uint32_t count, bool more, hdrt__template_choice *choice)
{
    hdrt__template_stream *stream = &templates->streams[place->index % HDRT__TEMPLATE_STREAMS];
    uint32_t size = hdrt__template_cut(launches, count, more);
    uint64_t hash = HDRT__TEMPLATE_HASH_START;
    for (uint32_t i = 0; i < size; i++) {
        hash = hdrt__template_hash(hash, launches[i].kernel);
    }
    uint64_t key = hdrt__template_key(hash, size, HDRT__TEMPLATE_CHAIN);
    hdrt__template_sequence *sequence =
        hdrt__template_find(&templates->table, key, launches, size, HDRT__TEMPLATE_CHAIN);
    /* A whole cut that comes again is a program's loop: half the price is enough. */
    int32_t enough = hdrt__template_sights(size, 2 * chain_saves_ns(launches, size));
    int32_t seen = sequence || size == 1 ? 0 : hdrt__template_see(&templates->table, key);
    stream->fresh = seen == 1 ? stream->fresh + 1 : 0;
    if (sequence ? use(templates, sequence, place, choice)
                 : seen >= enough && build_new(templates, launches, size, key, HDRT__TEMPLATE_CHAIN, choice)) {
        stream->last = choice->sequence;
    } else {
        stream->rest = size;
        choose_open(templates, place, launches, size, choice);
    }
}

/* Whether the run begins with what was last launched there, and not with much more of the same. */
static bool comes_again(const hdrt__template_sequence *last, const hdrt__run_launch *launches, uint32_t count)
{
    return last && !last->leaving && last->count <= count &&
           (count < 2 * last->count || 2 * last->count > HDRT__TEMPLATE_CHAIN_LIMIT) &&
           hdrt__template_sequence_is(last, launches, last->count, HDRT__TEMPLATE_CHAIN);
}

/* Whether nothing comes again there, as it looked of late. */
static bool is_random(hdrt__template_stream *stream)
{
    if (stream->uncut >= UNCUT_LAUNCHES) {
        stream->uncut = 0;
        stream->fresh = FRESH_CUTS / 2;
    }
    return stream->fresh >= FRESH_CUTS;
}

void hdrt__template_choose_chain(hdrt__templates *templates, const hdrt__run_place *place,
                                 const hdrt__run_launch *launches, uint32_t count, bool more,
                                 hdrt__template_choice *choice)
{
    hdrt__template_stream *stream = &templates->streams[place->index % HDRT__TEMPLATE_STREAMS];
    uint32_t reach = count < HDRT__TEMPLATE_CHAIN_LIMIT ? count : HDRT__TEMPLATE_CHAIN_LIMIT;
    *choice = (hdrt__template_choice){.direct = reach};
    if (stream->rest && stream->expected && stream->expected != launches[0].kernel) {
        stream->rest = 0;
    }
    if (place->word && count == 1) {
        choose_single(templates, place, launches, choice);
    } else if (stream->rest) {
        choose_open(templates, place, launches, reach < stream->rest ? reach : stream->rest, choice);
    } else if (comes_again(stream->last, launches, reach)) {
        uint32_t size = stream->last->count; /* which may be dropped now */
        if (!use(templates, stream->last, place, choice)) {
            stream->rest = size;
            choose_open(templates, place, launches, size, choice);
        }
    } else if (reach == HDRT__TEMPLATE_CHAIN_LIMIT && is_random(stream)) {
        choose_open(templates, place, launches, reach, choice);
        stream->uncut += choice->sequence ? choice->size : choice->direct;
    } else {
        choose_cut(templates, place, launches, reach, more || count > reach, choice);
    }
    uint32_t served = choice->sequence ? choice->size : choice->direct;
    templates->table.clock += served;
    hdrt__template_earn(&templates->table, HDRT__TEMPLATE_CHAIN, served * (int64_t)HDRT__TEMPLATE_EARN_NS);
    hdrt__template_earn(&templates->table, HDRT__TEMPLATE_OPEN, served * (int64_t)HDRT__TEMPLATE_EARN_NS);
    hdrt__template_earn(&templates->table, HDRT__TEMPLATE_RINGING, served * (int64_t)HDRT__TEMPLATE_EARN_NS);
    stream->rest = stream->rest > served ? stream->rest - served : 0;
    stream->expected = served < count ? launches[served].kernel : NULL;
}

/* ---- wide ones --------------------------------------------------------------------------------------------------- */

/* How many launches, from the first on, are of the same function. */
static uint32_t alike(const hdrt__run_launch *launches, uint32_t count)
{
    uint32_t same = count != 0;
    while (same < count && same < HDRT__TEMPLATE_WIDE_LIMIT && launches[same].kernel == launches[0].kernel) {
        same++;
    }
    return same;
}

/*
 * The sizes of templates that may serve so many: only powers of two, since one for each number that happens to come would
 * take milliseconds each time. Nodes that are too many are switched off, which takes 1 us each, and they are launched no
 * faster than others; so one of twice the size will do, if it is there, and for so few that they get none of their own any.
 * Where nodes cannot be switched off, there are too few. The first is 0: none.
 */
typedef struct wide_sizes {
    uint32_t first, last;
} wide_sizes;

static wide_sizes sizes_for(const hdrt__templates *templates, uint32_t count)
{
    uint32_t size = HDRT__TEMPLATE_WIDE_LEAST;
    while (size < count) {
        size *= 2;
    }
    if (!templates->switches) {
        size = size <= count ? size : size / 2;
        return (wide_sizes){size < HDRT__TEMPLATE_WIDE_LEAST ? 0 : size, size};
    }
    return (wide_sizes){count ? size : 0, count < HDRT__TEMPLATE_WIDE_LEAST ? HDRT__TEMPLATE_WIDE_LIMIT : size * 2};
}

static hdrt__template_sequence *find_wide(const hdrt__templates *templates, const hdrt__run_launch *launches,
                                          uint32_t size, uint64_t *out_key)
{
    *out_key = hdrt__template_key(hdrt__template_hash(HDRT__TEMPLATE_HASH_START, launches[0].kernel), size,
                                  HDRT__TEMPLATE_WIDE);
    return hdrt__template_find(&templates->table, *out_key, launches, size, HDRT__TEMPLATE_WIDE);
}

void hdrt__template_choose_wide(hdrt__templates *templates, const hdrt__run_place *place,
                                const hdrt__run_launch *launches, uint32_t count, hdrt__template_choice *choice)
{
    uint32_t served = alike(launches, count);
    wide_sizes sizes = sizes_for(templates, served);
    hdrt__template_sequence *fitting = NULL;
    uint64_t key, wanted = 0;
    bool chosen = false;
    *choice = (hdrt__template_choice){.direct = count};
    for (uint32_t size = sizes.first; !chosen && size && size <= sizes.last; size *= 2) {
        hdrt__template_sequence *sequence = find_wide(templates, launches, size, &key);
        chosen = sequence && take(templates, sequence, place, choice);
        if (size == sizes.first) {
            fitting = sequence;
            wanted = key;
        }
    }
    if (!chosen && sizes.first && served >= HDRT__TEMPLATE_WIDE_LEAST) {
        chosen = fitting ? build(templates, fitting, choice)
                         : hdrt__template_see(&templates->table, wanted) >= WIDE_SIGHTS &&
                               build_new(templates, launches, sizes.first, wanted, HDRT__TEMPLATE_WIDE, choice);
    }
    choice->size = served < choice->size ? served : choice->size;
    served = chosen ? choice->size : served;
    templates->table.clock += served;
    hdrt__template_earn(&templates->table, HDRT__TEMPLATE_WIDE, served * (int64_t)HDRT__TEMPLATE_EARN_NS);
}

static bool has_ready(const hdrt__templates *templates, const hdrt__template_sequence *sequence)
{
    const hdrt__template_instance *instance = sequence ? sequence->instances : NULL;
    while (instance && !(instance->number && is_free(templates, instance))) {
        instance = instance->next;
    }
    return instance != NULL;
}

bool hdrt__template_wide_is_ready(const hdrt__templates *templates, const hdrt__run_launch *launches, uint32_t count)
{
    wide_sizes sizes = sizes_for(templates, alike(launches, count));
    uint64_t key;
    bool ready = false;
    for (uint32_t size = sizes.first; !ready && size && size <= sizes.last; size *= 2) {
        ready = has_ready(templates, find_wide(templates, launches, size, &key));
    }
    return ready;
}
