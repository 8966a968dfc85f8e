/* SPDX-License-Identifier: MIT */
#include "driver/scope.h"

#include "base/log.h"
#include "driver/error.h"

hdrt__call hdrt__scope_enter(const hdrt__driver_table *table, hdcu_context context, hdrt__scope *scope)
{
    scope->capture_mode = HDCU_STREAM_CAPTURE_MODE_RELAXED;
    scope->pushed = false;
    scope->resident = false;
    hdrt__call call = HDRT__CALL(table, cuThreadExchangeStreamCaptureMode, &scope->capture_mode);
    if (call.result || !context)
        return call;
    call = HDRT__CALL(table, cuCtxPushCurrent, context);
    if (call.result)
        table->cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
    else
        scope->pushed = true;
    return call;
}

void hdrt__scope_leave(const hdrt__driver_table *table, hdrt__scope *scope)
{
    if (scope->pushed) {
        hdcu_context ours;
        hdcu_result result = table->cuCtxPopCurrent(&ours);
        if (result)
            hdrt__log(HDRT_LOG_ERROR, "the caller's context could not be restored: cuCtxPopCurrent: %s (%u)",
                      hdrt__result_name(result), result);
    }
    hdcu_result result = table->cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
    if (result)
        hdrt__log(HDRT_LOG_ERROR, "the caller's capture mode could not be restored: %s (%u)", hdrt__result_name(result),
                  result);
}

hdrt__call hdrt__scope_relax_thread(const hdrt__driver_table *table)
{
    unsigned mode = HDCU_STREAM_CAPTURE_MODE_RELAXED;
    return HDRT__CALL(table, cuThreadExchangeStreamCaptureMode, &mode);
}
