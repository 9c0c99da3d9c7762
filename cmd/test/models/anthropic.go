package models

import "net/http"

// messages is the Messages API of Anthropic. Its input tokens are those beside the caches, and the stream states them at its begin and
// the output at its end.
func messages(c *call) bool {
	usage := object{
		"input_tokens": c.usage.Input, "cache_read_input_tokens": c.usage.Cached, "cache_creation_input_tokens": c.usage.Written,
		"output_tokens": c.usage.completion(),
	}
	document := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": c.way.Model, "stop_sequence": nil,
		"content": array{object{"type": "text", "text": c.way.text()}}, "stop_reason": "end_turn", "usage": usage,
	}
	if !c.streams() {
		return c.json(http.StatusOK, document)
	}
	usage["output_tokens"] = 1
	document["content"], document["stop_reason"] = array{}, nil
	o := c.sse()
	send := func(name string, more object) bool {
		more["type"] = name
		return o.sse(name, more)
	}
	send("message_start", object{"message": document})
	send("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	send("ping", object{})
	for _, text := range c.way.texts() {
		if !send("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": text}}) {
			return false
		}
	}
	send("content_block_stop", object{"index": 0})
	send("message_delta", object{
		"delta": object{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": object{"output_tokens": c.usage.completion()},
	})
	send("message_stop", object{})
	o.end()
	return true
}
