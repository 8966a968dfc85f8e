/* SPDX-License-Identifier: MIT */
/*
 * A list to whose end any thread appends, and from whose beginning one takes, without a lock: D. Vyukov's intrusive queue
 * for many producers and one consumer. Whoever takes touches no more than what it takes and the next one, however many
 * there are.
 *
 *     first -> entry -> entry -> ... -> last       the stub is somewhere among them, or the only one: it is empty
 *
 * An entry is in the list once `last` names it, and can be taken once the one before it does, a few instructions later. If
 * its thread loses its processor in between, what others append meanwhile cannot be taken either; nobody who appends waits.
 */
#ifndef HDRT_QUEUE_LISTING_H
#define HDRT_QUEUE_LISTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hdrt__listing_link {
    struct hdrt__listing_link *_Atomic next;
} hdrt__listing_link;

typedef struct hdrt__listing {
    hdrt__listing_link *_Atomic last; /* who append */
    char apart[64 - sizeof(void *)];
    hdrt__listing_link *first; /* who takes */
    hdrt__listing_link stub;
    char apart_from_the_next[64 - 2 * sizeof(void *)];
} hdrt__listing;

static inline void hdrt__listing_init(hdrt__listing *listing)
{
    atomic_init(&listing->stub.next, NULL);
    atomic_init(&listing->last, &listing->stub);
    listing->first = &listing->stub;
}

/* Any thread, in two steps. The link is in no list: put it in. \return the one before it, to join it with: till then it
 * cannot be taken, and from then on may be gone. */
static inline hdrt__listing_link *hdrt__listing_enter(hdrt__listing *listing, hdrt__listing_link *link)
{
    atomic_store_explicit(&link->next, NULL, memory_order_relaxed);
    return atomic_exchange(&listing->last, link);
}
static inline void hdrt__listing_join(hdrt__listing_link *before, hdrt__listing_link *link)
{
    atomic_store_explicit(&before->next, link, memory_order_release);
}
static inline void hdrt__listing_append(hdrt__listing *listing, hdrt__listing_link *link)
{
    hdrt__listing_join(hdrt__listing_enter(listing, link), link);
}

/* The thread that takes: whether there is nothing, not even what is just being appended. */
static inline bool hdrt__listing_is_empty(const hdrt__listing *listing)
{
    return listing->first == &listing->stub && atomic_load(&listing->last) == &listing->stub;
}

/* Any thread: whether something was entered and not taken. */
static inline bool hdrt__listing_was_entered(const hdrt__listing *listing)
{
    return atomic_load_explicit(&listing->last, memory_order_relaxed) != &listing->stub;
}

/* The thread that takes: whether something can be taken. */
static inline bool hdrt__listing_has(const hdrt__listing *listing)
{
    const hdrt__listing_link *first = listing->first;
    if (first == &listing->stub) {
        first = atomic_load_explicit(&first->next, memory_order_acquire);
    }
    return first && (atomic_load_explicit(&first->next, memory_order_acquire) ||
                     atomic_load_explicit(&listing->last, memory_order_acquire) == first);
}

/* The thread that takes. *out_next: the one after it, if it can be taken already. \return NULL: there is none that can. */
static inline hdrt__listing_link *hdrt__listing_take(hdrt__listing *listing, hdrt__listing_link **out_next)
{
    hdrt__listing_link *first = listing->first;
    hdrt__listing_link *next = atomic_load_explicit(&first->next, memory_order_acquire);
    *out_next = NULL;
    if (first == &listing->stub) {
        if (!next) {
            return NULL;
        }
        listing->first = first = next;
        next = atomic_load_explicit(&first->next, memory_order_acquire);
    }
    if (!next && atomic_load_explicit(&listing->last, memory_order_acquire) == first) {
        hdrt__listing_append(listing, &listing->stub); /* so that `first` has one after it */
        next = atomic_load_explicit(&first->next, memory_order_acquire);
    }
    if (next) {
        listing->first = next;
        *out_next = next != &listing->stub ? next : NULL;
        return first;
    }
    return NULL;
}

#endif
