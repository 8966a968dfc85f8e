/* SPDX-License-Identifier: MIT */
/*
 * Operations of several lanes of a warp: shfl, vote, match, redux, elect, bar.warp.sync. Lanes meet by operation and
 * member mask, not by place: a split that comes first waits until all members that have not exited have come. Operands
 * are result, predicate, three sources, member mask (absent in the old forms, which mean the active lanes).
 */
#include <string.h>

#include "soft/exec/control.h"
#include "soft/exec/warp.h"

/* Who takes part: where each lane's operands are. */
typedef struct lane_meeting {
    uint32_t lanes;
    const hdsoft_instruction *instruction[HDSOFT_LANES];
    unsigned char *frame[HDSOFT_LANES];
} lane_meeting;

static const void *source_of(const hdsoft_warp *warp, const lane_meeting *meeting, unsigned lane, unsigned number)
{
    int32_t operand = meeting->instruction[lane]->operand[number];
    return operand < 0 ? warp->constants + (operand & INT32_MAX) : meeting->frame[lane] + operand;
}

static uint32_t word_of(const hdsoft_warp *warp, const lane_meeting *meeting, unsigned lane, unsigned number)
{
    uint32_t value;
    memcpy(&value, (const unsigned char *)source_of(warp, meeting, lane, number) + lane * 4, 4);
    return value;
}

static bool predicate_of(const hdsoft_warp *warp, const lane_meeting *meeting, unsigned lane, unsigned number)
{
    uint32_t value;
    memcpy(&value, source_of(warp, meeting, lane, number), 4);
    return value >> lane & 1;
}

static void put_word(const lane_meeting *meeting, unsigned lane, uint32_t value)
{
    int32_t operand = meeting->instruction[lane]->operand[0];
    if (operand != HDSOFT_ABSENT)
        memcpy(meeting->frame[lane] + operand + lane * 4, &value, 4);
}

static void put_predicate(const lane_meeting *meeting, unsigned lane, bool value)
{
    int32_t operand = meeting->instruction[lane]->operand[1];
    if (operand == HDSOFT_ABSENT)
        return;
    uint32_t *word = (uint32_t *)(void *)(meeting->frame[lane] + operand);
    *word = (*word & ~(1u << lane)) | (uint32_t)value << lane;
}

#define EACH_MEMBER(lane) \
    for (uint32_t rest_##lane = meeting->lanes, lane; \
         rest_##lane && (lane = (uint32_t)__builtin_ctz(rest_##lane), true); rest_##lane &= rest_##lane - 1)

static void shuffle(const hdsoft_warp *warp, const lane_meeting *meeting, unsigned mode)
{
    enum { UP, DOWN, BUTTERFLY, INDEX };
    uint32_t values[HDSOFT_LANES];
    EACH_MEMBER(lane)
        values[lane] = word_of(warp, meeting, lane, 2);
    uint32_t results[HDSOFT_LANES], valid = 0;
    EACH_MEMBER(lane) {
        uint32_t b = word_of(warp, meeting, lane, 3) & 31, c = word_of(warp, meeting, lane, 4);
        uint32_t segment = c >> 8 & 31, clamp = c & 31;
        uint32_t last = (lane & segment) | (clamp & ~segment), first = lane & segment;
        int32_t from = mode == UP          ? (int32_t)lane - (int32_t)b
                       : mode == DOWN      ? (int32_t)(lane + b)
                       : mode == BUTTERFLY ? (int32_t)(lane ^ b)
                                           : (int32_t)(first | (b & ~segment));
        bool inside = mode == UP ? from >= (int32_t)last : from <= (int32_t)last;
        if (!inside)
            from = (int32_t)lane;
        valid |= (uint32_t)inside << lane;
        /* A lane that takes no part has no value to give: undefined; its register's old content, as on hardware. */
        uint32_t value = 0;
        if (meeting->lanes >> from & 1) {
            value = values[from];
        } else {
            int32_t operand = meeting->instruction[lane]->operand[2];
            memcpy(&value, (operand < 0 ? warp->constants + (operand & INT32_MAX) : meeting->frame[lane] + operand) +
                               from * 4, 4);
        }
        results[lane] = value;
    }
    EACH_MEMBER(lane) {
        put_word(meeting, lane, results[lane]);
        put_predicate(meeting, lane, valid >> lane & 1);
    }
}

static void vote(const hdsoft_warp *warp, const lane_meeting *meeting, unsigned mode)
{
    enum { ALL, ANY, UNIFORM, BALLOT };
    uint32_t ballot = 0;
    EACH_MEMBER(lane)
        ballot |= (uint32_t)predicate_of(warp, meeting, lane, 2) << lane;
    bool all = ballot == meeting->lanes, any = ballot != 0;
    EACH_MEMBER(lane) {
        if (mode == BALLOT)
            put_word(meeting, lane, ballot);
        else
            put_predicate(meeting, lane, mode == ALL ? all : mode == ANY ? any : all || !any);
    }
}

static void match(const hdsoft_warp *warp, const lane_meeting *meeting, unsigned mode, bool wide)
{
    enum { ANY, ALL };
    uint64_t values[HDSOFT_LANES];
    EACH_MEMBER(lane) {
        values[lane] = 0;
        memcpy(&values[lane], (const unsigned char *)source_of(warp, meeting, lane, 2) + lane * (wide ? 8 : 4),
               wide ? 8 : 4);
    }
    uint32_t results[HDSOFT_LANES];
    EACH_MEMBER(lane) {
        results[lane] = 0;
        EACH_MEMBER(other)
            results[lane] |= (uint32_t)(values[other] == values[lane]) << other;
    }
    EACH_MEMBER(lane) {
        bool all = results[lane] == meeting->lanes;
        put_word(meeting, lane, mode == ALL && !all ? 0 : results[lane]);
        put_predicate(meeting, lane, all);
    }
}

static void reduce(const hdsoft_warp *warp, const lane_meeting *meeting, unsigned mode, bool is_signed)
{
    enum { ADD, MIN, MAX, AND, OR, XOR };
    bool first = true;
    uint32_t result = 0;
    EACH_MEMBER(lane) {
        uint32_t value = word_of(warp, meeting, lane, 2);
        bool less = is_signed ? (int32_t)value < (int32_t)result : value < result;
        if (first)
            result = value;
        else if (mode == ADD)
            result += value;
        else if (mode == MIN)
            result = less ? value : result;
        else if (mode == MAX)
            result = less ? result : value;
        else
            result = mode == AND ? result & value : mode == OR ? result | value : result ^ value;
        first = false;
    }
    EACH_MEMBER(lane)
        put_word(meeting, lane, result);
}

static void elect(const lane_meeting *meeting)
{
    uint32_t leader = (uint32_t)__builtin_ctz(meeting->lanes);
    EACH_MEMBER(lane) {
        put_word(meeting, lane, leader);
        put_predicate(meeting, lane, lane == leader);
    }
}

typedef enum meeting_kind { MEET, SHUFFLE, VOTE, MATCH, REDUCE, ELECT } meeting_kind;

static void perform(const hdsoft_warp *warp, const lane_meeting *meeting, meeting_kind kind,
                    const hdsoft_instruction *instruction)
{
    unsigned mode = instruction->option[0];
    bool flag = instruction->option[1] != 0;
    switch (kind) {
    case SHUFFLE:
        shuffle(warp, meeting, mode);
        break;
    case VOTE:
        vote(warp, meeting, mode);
        break;
    case MATCH:
        match(warp, meeting, mode, flag);
        break;
    case REDUCE:
        reduce(warp, meeting, mode, flag);
        break;
    case ELECT:
        elect(meeting);
        break;
    case MEET:
        break;
    }
}

static bool same_operation(const hdsoft_instruction *a, const hdsoft_instruction *b)
{
    return a->handler == b->handler && a->option[0] == b->option[0] && a->option[1] == b->option[1];
}

static void join(lane_meeting *meeting, const hdsoft_instruction *instruction, unsigned char *frame, uint32_t lanes)
{
    meeting->lanes |= lanes;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        meeting->instruction[__builtin_ctz(rest)] = instruction;
        meeting->frame[__builtin_ctz(rest)] = frame;
    }
}

static bool waits_for(const hdsoft_split *split, const hdsoft_instruction *instruction, uint32_t members)
{
    return split->state == HDSOFT_SPLIT_COLLECTIVE && split->members == members &&
           same_operation(split->next, instruction);
}

/* The meeting of all splits that wait for this one, and of the running split. */
static void gather(hdsoft_warp *warp, const hdsoft_instruction *instruction, uint32_t members, lane_meeting *meeting)
{
    for (uint32_t i = 0; i < warp->split_count; i++) {
        const hdsoft_split *split = &warp->splits[i];
        if (waits_for(split, instruction, members))
            join(meeting, split->next, split->activation->frame, split->lanes);
    }
}

static void release(hdsoft_warp *warp, const hdsoft_instruction *instruction, uint32_t members)
{
    for (uint32_t i = 0; i < warp->split_count; i++) {
        hdsoft_split *split = &warp->splits[i];
        if (waits_for(split, instruction, members)) {
            split->state = HDSOFT_SPLIT_RUNNABLE;
            split->next++;
        }
    }
}

static const hdsoft_instruction *meet(hdsoft_warp *warp, const hdsoft_instruction *instruction, meeting_kind kind)
{
    lane_meeting meeting;
    meeting.lanes = 0;
    uint32_t members = warp->mask;
    if (instruction->operand[5] != HDSOFT_ABSENT) {
        const uint32_t *masks = hdsoft_source(warp, instruction->operand[5]);
        members = masks[__builtin_ctz(warp->mask)];
        uint32_t others = 0;
        for (uint32_t rest = warp->mask; rest; rest &= rest - 1)
            if (masks[__builtin_ctz(rest)] != members)
                others |= rest & (0 - rest);
        if (others) /* they come here again, with a mask of their own */
            hdsoft_warp_part(warp, instruction, others);
        if (others)
            hdsoft_warp_leave(warp);
    }
    uint32_t needed = (members & warp->live) | warp->mask;
    join(&meeting, instruction, warp->frame, warp->mask);
    bool alone = (needed & ~warp->mask) == 0;
    if (!alone)
        gather(warp, instruction, members, &meeting);
    if (needed & ~meeting.lanes) {
        hdsoft_split *split = &warp->splits[warp->current];
        split->state = HDSOFT_SPLIT_COLLECTIVE;
        split->members = members;
        hdsoft_warp_leave(warp);
        return instruction;
    }
    perform(warp, &meeting, kind, instruction);
    if (!alone) {
        release(warp, instruction, members);
        hdsoft_warp_leave(warp);
    }
    return instruction + 1;
}

static const hdsoft_instruction *handle_shfl(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    return meet(warp, instruction, SHUFFLE);
}

static const hdsoft_instruction *handle_vote(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    return meet(warp, instruction, VOTE);
}

static const hdsoft_instruction *handle_match(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    return meet(warp, instruction, MATCH);
}

static const hdsoft_instruction *handle_redux(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    return meet(warp, instruction, REDUCE);
}

static const hdsoft_instruction *handle_elect(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    return meet(warp, instruction, ELECT);
}

static const hdsoft_instruction *handle_barrier_warp(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    return meet(warp, instruction, MEET);
}

static const hdsoft_instruction *handle_activemask(hdsoft_warp *warp, const hdsoft_instruction *instruction)
{
    uint32_t *to = (uint32_t *)(void *)(warp->frame + instruction->operand[0]);
    for (uint32_t rest = warp->mask; rest; rest &= rest - 1)
        to[__builtin_ctz(rest)] = warp->mask;
    return instruction + 1;
}

static meeting_kind kind_of(const hdsoft_instruction *instruction)
{
    return instruction->handler == handle_shfl    ? SHUFFLE
           : instruction->handler == handle_vote  ? VOTE
           : instruction->handler == handle_match ? MATCH
           : instruction->handler == handle_redux ? REDUCE
           : instruction->handler == handle_elect ? ELECT
                                                  : MEET;
}

/* Lanes have exited: some meeting may have been waiting for them only. */
void hdsoft_collective_check(hdsoft_warp *warp)
{
    for (uint32_t i = 0; i < warp->split_count; i++) {
        const hdsoft_split *split = &warp->splits[i];
        if (split->state != HDSOFT_SPLIT_COLLECTIVE)
            continue;
        const hdsoft_instruction *instruction = split->next;
        uint32_t members = split->members;
        lane_meeting meeting;
        meeting.lanes = 0;
        gather(warp, instruction, members, &meeting);
        if (members & warp->live & ~meeting.lanes)
            continue;
        perform(warp, &meeting, kind_of(instruction), instruction);
        release(warp, instruction, members);
    }
}

const hdsoft_form hdsoft_forms_collective[] = {
    {"shfl", handle_shfl, "wp:wwww"},
    {"vote", handle_vote, "wp:pwww"},
    {"match", handle_match, "wp:wwww"},
    {"redux", handle_redux, "wp:wwww"},
    {"elect", handle_elect, "wp:wwww"},
    {"barrier_warp", handle_barrier_warp, "wp:wwww"},
    {"activemask", handle_activemask, "wp:wwww"},
    {NULL, NULL, NULL},
};
