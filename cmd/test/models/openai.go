package models

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// chatUsage is the usage of Chat Completions. Cached, written and reasoning tokens are inside of the two sums.
func chatUsage(u Usage) object {
	return object{
		"prompt_tokens": u.prompt(), "completion_tokens": u.completion(), "total_tokens": u.total(),
		"prompt_tokens_details":     object{"cached_tokens": u.Cached, "cache_write_tokens": u.Written, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning, "audio_tokens": 0},
	}
}

// chat is Chat Completions of OpenAI, and of Mistral, which states the usage in the last chunk without being asked for it.
func chat(c *call) bool {
	if c.streams() {
		return chatStream(c)
	}
	return c.json(http.StatusOK, object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": c.way.Model, "usage": chatUsage(c.usage),
		"choices": array{object{
			"index": 0, "finish_reason": "stop", "logprobs": nil,
			"message": object{"role": "assistant", "content": c.way.text(), "refusal": nil},
		}},
	})
}

func chatStream(c *call) bool {
	mistral := strings.HasPrefix(c.way.Model, "mistral")
	chunk := func(delta object, finish any) object {
		document := object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": c.way.Model,
			"choices": array{object{"index": 0, "delta": delta, "finish_reason": finish}},
		}
		if c.fields.StreamOptions.IncludeUsage {
			document["usage"] = nil
		}
		return document
	}
	o := c.sse()
	if !o.sse("", chunk(object{"role": "assistant", "content": ""}, nil)) {
		return false
	}
	for _, text := range c.way.texts() {
		if !o.sse("", chunk(object{"content": text}, nil)) {
			return false
		}
	}
	last := chunk(object{"content": ""}, "stop")
	if mistral {
		last["usage"] = chatUsage(c.usage)
	}
	o.sse("", last)
	if c.fields.StreamOptions.IncludeUsage {
		usage := chunk(nil, nil)
		usage["choices"], usage["usage"] = array{}, chatUsage(c.usage)
		o.sse("", usage)
	}
	o.event([]byte("data: [DONE]\n\n"))
	o.end()
	return true
}

// response is the document of the Responses API.
func response(c *call, status string) object {
	document := object{
		"id": "resp_1", "object": "response", "created_at": 1, "model": c.way.Model, "status": status, "output": array{}, "usage": nil,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true, "tools": array{},
	}
	if status == "completed" {
		document["output"] = array{message(c.way.text(), status)}
		document["usage"] = object{
			"input_tokens": c.usage.prompt(), "output_tokens": c.usage.completion(), "total_tokens": c.usage.total(),
			"input_tokens_details":  object{"cached_tokens": c.usage.Cached, "cache_write_tokens": c.usage.Written},
			"output_tokens_details": object{"reasoning_tokens": c.usage.Reasoning},
		}
	}
	return document
}

// message is an item of a response's output.
func message(text, status string) object {
	return object{"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": array{outputText(text)}}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": array{}}
}

// responses is the Responses API.
func responses(c *call) bool {
	if !c.streams() {
		return c.json(http.StatusOK, response(c, "completed"))
	}
	o, sequence := c.sse(), 0
	send := func(name string, more object) bool {
		more["type"], more["sequence_number"] = name, sequence
		sequence++
		return o.sse(name, more)
	}
	item := message("", "in_progress")
	item["content"] = array{}
	place := func(more object) object {
		more["item_id"], more["output_index"], more["content_index"] = "msg_1", 0, 0
		return more
	}
	send("response.created", object{"response": response(c, "in_progress")})
	send("response.in_progress", object{"response": response(c, "in_progress")})
	send("response.output_item.added", object{"output_index": 0, "item": item})
	send("response.content_part.added", place(object{"part": outputText("")}))
	for _, text := range c.way.texts() {
		if !send("response.output_text.delta", place(object{"delta": text, "logprobs": array{}})) {
			return false
		}
	}
	send("response.output_text.done", place(object{"text": c.way.text(), "logprobs": array{}}))
	send("response.content_part.done", place(object{"part": outputText(c.way.text())}))
	send("response.output_item.done", object{"output_index": 0, "item": message(c.way.text(), "completed")})
	send("response.completed", object{"response": response(c, "completed")})
	o.end()
	return true
}

// embeddings has input tokens alone.
func embeddings(c *call) bool {
	prompt := c.usage.prompt()
	var vector any = []float64{0.25, -1.5e-3, 3}
	if c.fields.EncodingFormat == "base64" {
		vector = base64.StdEncoding.EncodeToString(make([]byte, 12))
	}
	return c.json(http.StatusOK, object{
		"object": "list", "model": c.way.Model, "usage": object{"prompt_tokens": prompt, "total_tokens": prompt},
		"data": array{object{"object": "embedding", "index": 0, "embedding": vector}},
	})
}
