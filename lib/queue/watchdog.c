/* SPDX-License-Identifier: MIT */
#include "queue/watchdog.h"

#include "base/buffer.h"
#include "base/log.h"
#include "base/number.h"

static void tell(hdrt__stream *stream, uint64_t waited_ns)
{
    hdrt__buffer text = HDRT__BUFFER_INIT;
    if (!hdrt__device_stream_oldest(&stream->entry, &text)) {
        hdrt__buffer_text(&text, "work that is no launch, copy or fill");
    }
    hdrt__log(HDRT_LOG_WARN,
              "watchdog: device %u, stream %u: %s is in flight for %llu ms, and the stream does not go on",
              stream->device->index, stream->entry.index, text.failed ? "an operation" : (char *)text.bytes,
              (unsigned long long)(waited_ns / 1000000u));
    hdrt__buffer_free(&text);
}

void hdrt__watchdog_look(hdrt__stream *stream)
{
    uint64_t limit = stream->device->watchdog_ns, now = hdrt__now_ns();
    uint64_t completed = atomic_load(&stream->entry.completed);
    if (!limit) {
        return;
    }
    if (!hdrt__stream_outstanding(stream)) {
        stream->watched.since_ns = 0;
    } else if (!stream->watched.since_ns || stream->watched.completed != completed) {
        stream->watched.completed = completed;
        stream->watched.since_ns = now;
        stream->watched.told = false;
    } else if (!stream->watched.told && now - stream->watched.since_ns >= limit) {
        stream->watched.told = true;
        tell(stream, now - stream->watched.since_ns);
    }
}
