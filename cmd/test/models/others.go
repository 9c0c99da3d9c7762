package models

import "net/http"

// ollama is the native API of Ollama, which streams lines of JSON unless the request says no. It has no caches.
func ollama(c *call) bool {
	last := object{
		"model": c.way.Model, "created_at": "2026-11-01T00:00:00Z", "done": true, "done_reason": "stop", "total_duration": 5,
		"message": object{"role": "assistant", "content": ""}, "prompt_eval_count": c.usage.Input, "eval_count": c.usage.Output,
	}
	if c.fields.Stream != nil && !*c.fields.Stream {
		last["message"] = object{"role": "assistant", "content": c.way.text()}
		return c.json(http.StatusOK, last)
	}
	o := newWire(c.w, c.r, c.way, "application/x-ndjson", http.StatusOK)
	line := func(document object) bool { return o.event(append(encode(document), '\n')) }
	for _, text := range c.way.texts() {
		document := object{"model": c.way.Model, "created_at": "2026-11-01T00:00:00Z", "done": false}
		document["message"] = object{"role": "assistant", "content": text}
		if !line(document) {
			return false
		}
	}
	line(last)
	o.end()
	return true
}

// cohere is the chat of version 2 of Cohere's API. The billed tokens are fewer than those that the model has seen.
func cohere(c *call) bool {
	usage := object{
		"billed_units":  object{"input_tokens": c.usage.Input, "output_tokens": c.usage.Output},
		"tokens":        object{"input_tokens": c.usage.Input + seen, "output_tokens": c.usage.Output},
		"cached_tokens": 0,
	}
	if !c.streams() {
		return c.json(http.StatusOK, object{
			"id": "1", "finish_reason": "COMPLETE", "usage": usage,
			"message": object{"role": "assistant", "content": array{object{"type": "text", "text": c.way.text()}}},
		})
	}
	o := c.sse()
	send := func(name string, more object) bool {
		more["type"] = name
		return o.sse(name, more)
	}
	send("message-start", object{"id": "1", "delta": object{"message": object{"role": "assistant", "content": array{}}}})
	content := func(text string) object {
		return object{"message": object{"content": object{"type": "text", "text": text}}}
	}
	send("content-start", object{"index": 0, "delta": content("")})
	for _, text := range c.way.texts() {
		if !send("content-delta", object{"index": 0, "delta": content(text)}) {
			return false
		}
	}
	send("content-end", object{"index": 0})
	send("message-end", object{"id": "1", "delta": object{"finish_reason": "COMPLETE", "usage": usage}})
	o.end()
	return true
}

// seen are the tokens of Cohere's own preamble, which are not billed.
const seen = 60
