/* SPDX-License-Identifier: MIT */
/* Many threads append, one takes: nothing is lost, nothing comes twice, and what one thread appended keeps its order. */
#include "queue/listing.h"

#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define THREADS 4u
#define EACH 50000u

typedef struct entry {
    uint32_t number;
    hdrt__listing_link link;
    uint32_t thread;
} entry;

static hdrt__listing listing;
static entry *entries[THREADS];

static entry *entry_of(hdrt__listing_link *link)
{
    return (entry *)((char *)link - offsetof(entry, link));
}

static void *append(void *argument)
{
    uint32_t thread = (uint32_t)(uintptr_t)argument;
    for (uint32_t i = 0; i < EACH; i++) {
        entries[thread][i].number = i;
        entries[thread][i].thread = thread;
        hdrt__listing_append(&listing, &entries[thread][i].link);
    }
    return NULL;
}

START_TEST(test_empty_again_and_again)
{
    entry two[2] = {{.number = 1}, {.number = 2}};
    hdrt__listing_link *next;
    hdrt__listing_init(&listing);
    for (int round = 0; round < 3; round++) {
        ck_assert(hdrt__listing_is_empty(&listing));
        ck_assert_ptr_null(hdrt__listing_take(&listing, &next));
        hdrt__listing_append(&listing, &two[0].link);
        ck_assert(!hdrt__listing_is_empty(&listing));
        ck_assert_ptr_eq(hdrt__listing_take(&listing, &next), &two[0].link);
        ck_assert_ptr_null(next);
        ck_assert(hdrt__listing_is_empty(&listing));
        hdrt__listing_append(&listing, &two[1].link);
        hdrt__listing_append(&listing, &two[0].link);
        ck_assert_ptr_eq(hdrt__listing_take(&listing, &next), &two[1].link);
        ck_assert_ptr_eq(next, &two[0].link);
        ck_assert_ptr_eq(hdrt__listing_take(&listing, &next), &two[0].link);
    }
}
END_TEST

/* Somebody lost its processor while it appends: what others append meanwhile cannot be taken either, and nothing is lost. */
START_TEST(test_append_that_stands_still)
{
    entry three[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
    hdrt__listing_link *next;
    hdrt__listing_init(&listing);
    hdrt__listing_append(&listing, &three[0].link);
    hdrt__listing_link *before = hdrt__listing_enter(&listing, &three[1].link);
    hdrt__listing_append(&listing, &three[2].link);
    ck_assert(!hdrt__listing_is_empty(&listing));
    ck_assert(!hdrt__listing_has(&listing));
    ck_assert_ptr_null(hdrt__listing_take(&listing, &next));
    hdrt__listing_join(before, &three[1].link);
    for (int i = 0; i < 3; i++) {
        ck_assert(hdrt__listing_has(&listing));
        ck_assert_ptr_eq(hdrt__listing_take(&listing, &next), &three[i].link);
    }
    ck_assert(!hdrt__listing_has(&listing));
    ck_assert(hdrt__listing_is_empty(&listing));
}
END_TEST

/* An entry that was taken is appended again now and then, as a queue that has more. */
START_TEST(test_many_threads)
{
    pthread_t threads[THREADS];
    uint32_t expected[THREADS] = {0}, again = 0;
    hdrt__listing_link *next, *link;
    hdrt__listing_init(&listing);
    for (uint32_t i = 0; i < THREADS; i++) {
        entries[i] = calloc(EACH, sizeof(entry));
        ck_assert_ptr_nonnull(entries[i]);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, append, (void *)(uintptr_t)i), 0);
    }
    for (uint32_t taken = 0; taken < THREADS * EACH;) {
        if (!(link = hdrt__listing_take(&listing, &next))) {
            continue;
        }
        entry *one = entry_of(link);
        if (one->thread == UINT32_MAX) {
            again++;
        } else {
            ck_assert_uint_eq(one->number, expected[one->thread]++);
            taken++;
            if (one->number % 7 == 0) {
                one->thread = UINT32_MAX;
                hdrt__listing_append(&listing, link);
            }
        }
    }
    while (hdrt__listing_take(&listing, &next)) {
        again++;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        free(entries[i]);
    }
    ck_assert(hdrt__listing_is_empty(&listing));
    ck_assert_uint_eq(again, THREADS * ((EACH + 6) / 7));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listing");
    TCase *rules = tcase_create("rules");
    tcase_set_timeout(rules, 60);
    tcase_add_test(rules, test_empty_again_and_again);
    tcase_add_test(rules, test_append_that_stands_still);
    tcase_add_test(rules, test_many_threads);
    suite_add_tcase(suite, rules);
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    srunner_free(runner);
    return 0;
}
