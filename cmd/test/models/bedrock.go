package models

import (
	"encoding/binary"
	"hash/crc32"
	"net/http"
)

// converseUsage has the input tokens beside those of the caches.
func converseUsage(u Usage) object {
	return object{
		"inputTokens": u.Input, "cacheReadInputTokens": u.Cached, "cacheWriteInputTokens": u.Written,
		"outputTokens": u.completion(), "totalTokens": u.total(),
	}
}

// converse is Converse of Bedrock.
func converse(c *call) bool {
	return c.json(http.StatusOK, object{
		"output":     object{"message": object{"role": "assistant", "content": array{object{"text": c.way.text()}}}},
		"stopReason": "end_turn", "usage": converseUsage(c.usage), "metrics": object{"latencyMs": 1},
	})
}

// converseStream is ConverseStream: frames of the AWS event stream encoding.
func converseStream(c *call) bool {
	o := newWire(c.w, c.r, c.way, "application/vnd.amazon.eventstream", http.StatusOK)
	o.frame("messageStart", object{"role": "assistant"})
	for _, text := range c.way.texts() {
		if !o.frame("contentBlockDelta", object{"contentBlockIndex": 0, "delta": object{"text": text}}) {
			return false
		}
	}
	o.frame("contentBlockStop", object{"contentBlockIndex": 0})
	o.frame("messageStop", object{"stopReason": "end_turn"})
	o.frame("metadata", object{"usage": converseUsage(c.usage), "metrics": object{"latencyMs": 1}})
	o.end()
	return true
}

// frame adds an event: the lengths of the frame and of its headers, their checksum, the headers, the payload, and the checksum of all.
func (o *wire) frame(event string, payload object) bool {
	const (
		stringValue = 7  // The type of a header's value.
		around      = 16 // The lengths and both checksums.
	)
	var headers []byte
	for _, h := range [][2]string{{":event-type", event}, {":content-type", "application/json"}, {":message-type", "event"}} {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, stringValue, 0, byte(len(h[1])))
		headers = append(headers, h[1]...)
	}
	body := encode(payload)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(headers)+len(body)+around))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(headers)))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(append(frame, headers...), body...)
	return o.event(binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame)))
}
